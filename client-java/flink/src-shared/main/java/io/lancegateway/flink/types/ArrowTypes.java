package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Unit;
import java.util.Map;
import java.util.Set;
import java.util.function.ToIntFunction;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.BinaryType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/** From Flink's types to the fields of a new table. */
public final class ArrowTypes {

    /** Set on a map field that holds a multiset, so that it is read back as one. */
    static final String FLINK_TYPE = "lance-gateway.flink-type";

    static final String MULTISET = "MULTISET";

    /** The zone of instants. */
    static final String UTC = "UTC";

    /** Versions of Lance's file format that cannot hold maps. */
    private static final Set<String> WITHOUT_MAPS = Set.of("2.0", "2.1");

    private ArrowTypes() {}

    /** Whether every value of the row type can be kept in a table; throws if not. */
    public static void check(RowType rowType) {
        for (RowType.RowField field : rowType.getFields()) {
            field(field.getName(), field.getType(), false, 0);
        }
    }

    /**
     * Whether every value of the row type can be kept in a new table of this storage version;
     * throws if not.
     *
     * @param storageVersion empty: the gateway decides
     */
    public static void check(RowType rowType, String storageVersion) {
        check(rowType);
        if (!WITHOUT_MAPS.contains(storageVersion)) {
            return;
        }
        for (RowType.RowField field : rowType.getFields()) {
            if (holdsMap(field.getType())) {
                throw new TypeMismatchException(
                        String.format(
                                "column '%s': %s needs data storage version 2.2, not %s",
                                field.getName(),
                                field.getType().asSummaryString(),
                                storageVersion));
            }
        }
    }

    /** Whether these are columns of strings; throws if not. */
    public static void checkLargeStrings(RowType rowType, Set<String> columns) {
        for (String name : columns) {
            int index = rowType.getFieldIndex(name);
            if (index < 0 || !rowType.getTypeAt(index).is(LogicalTypeFamily.CHARACTER_STRING)) {
                throw new ValidationException(
                        String.format(
                                "'write.large-string-columns' names '%s', which is no STRING"
                                        + " column of the table",
                                name));
            }
        }
    }

    /** Whether these are columns of vectors, and lengths that vectors can have; throws if not. */
    public static void checkVectorDimensions(RowType rowType, Map<String, Integer> dimensions) {
        dimensions.forEach(
                (name, length) -> {
                    int index = rowType.getFieldIndex(name);
                    if (index < 0 || !isVector(rowType.getTypeAt(index))) {
                        throw new ValidationException(
                                String.format(
                                        "'write.vector-dimensions' names '%s', which is no"
                                                + " ARRAY<FLOAT> column of the table",
                                        name));
                    }
                    if (length <= 0) {
                        throw noLength(name, String.valueOf(length));
                    }
                });
    }

    /** What to throw for a length of vectors that is none. */
    public static ValidationException noLength(String column, String text) {
        return new ValidationException(
                String.format(
                        "'write.vector-dimensions' gives column '%s' the length '%s', which is no"
                                + " number of elements",
                        column, text));
    }

    private static boolean holdsMap(LogicalType type) {
        return type.is(LogicalTypeRoot.MAP)
                || type.is(LogicalTypeRoot.MULTISET)
                || type.getChildren().stream().anyMatch(ArrowTypes::holdsMap);
    }

    /**
     * The columns of a new table.
     *
     * @param largeStrings columns of strings that may take more than 2 GiB a batch
     * @param dimensions length of the vectors of a column of arrays of numbers; 0 if they have none
     */
    public static ArrowField[] columns(
            RowType rowType, Set<String> largeStrings, ToIntFunction<String> dimensions) {
        return rowType.getFields().stream()
                .map(
                        field ->
                                field(
                                        field.getName(),
                                        field.getType(),
                                        largeStrings.contains(field.getName()),
                                        isVector(field.getType())
                                                ? dimensions.applyAsInt(field.getName())
                                                : 0))
                .toArray(ArrowField[]::new);
    }

    /** Whether a column of this type holds vectors if all its arrays have one length. */
    public static boolean isVector(LogicalType type) {
        return type.is(LogicalTypeRoot.ARRAY)
                && ((ArrayType) type).getElementType().is(LogicalTypeRoot.FLOAT);
    }

    private static ArrowField field(
            String name, LogicalType type, boolean largeString, int dimension) {
        return build(name, name, type, largeString, dimension);
    }

    private static ArrowField build(
            String column, String name, LogicalType type, boolean largeString, int dimension) {
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return leaf(name, type, largeString ? ArrowType.LARGE_UTF8 : ArrowType.UTF8);
            case BOOLEAN:
                return leaf(name, type, ArrowType.BOOL);
            case BINARY:
                return leaf(name, type, ArrowType.fixedSizeBinary(((BinaryType) type).getLength()));
            case VARBINARY:
                return leaf(name, type, ArrowType.BINARY);
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return leaf(
                        name,
                        type,
                        ArrowType.decimal128(decimal.getPrecision(), decimal.getScale()));
            case TINYINT:
                return leaf(name, type, ArrowType.INT8);
            case SMALLINT:
                return leaf(name, type, ArrowType.INT16);
            case INTEGER:
                return leaf(name, type, ArrowType.INT32);
            case BIGINT:
                return leaf(name, type, ArrowType.INT64);
            case FLOAT:
                return leaf(name, type, ArrowType.FLOAT32);
            case DOUBLE:
                return leaf(name, type, ArrowType.FLOAT64);
            case DATE:
                return leaf(name, type, ArrowType.DATE32);
            case TIME_WITHOUT_TIME_ZONE:
                // Flink's rows hold a time in milliseconds whatever its precision.
                return leaf(name, type, ArrowType.time32(Unit.MILLISECOND));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return leaf(name, type, ArrowType.timestamp(unit(type)));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return leaf(name, type, ArrowType.timestamp(unit(type), UTC));
            case ARRAY:
                return node(
                        name,
                        type,
                        dimension > 0 ? ArrowType.fixedSizeList(dimension) : ArrowType.LIST,
                        child(column, "item", ((ArrayType) type).getElementType()));
            case MAP:
                MapType map = (MapType) type;
                return map(column, name, type, map.getKeyType(), map.getValueType());
            case MULTISET:
                LogicalType counted = ((MultisetType) type).getElementType();
                return map(
                                column,
                                name,
                                type,
                                counted,
                                new org.apache.flink.table.types.logical.IntType(false))
                        .withMetadata(Map.of(FLINK_TYPE, MULTISET));
            case ROW:
                return node(
                        name,
                        type,
                        ArrowType.STRUCT,
                        ((RowType) type)
                                .getFields().stream()
                                        .map(f -> child(column, f.getName(), f.getType()))
                                        .toArray(ArrowField[]::new));
            default:
                throw new TypeMismatchException(
                        String.format(
                                "column '%s': a Lance table cannot hold %s; cast it to a type that"
                                        + " it can, for example STRING or BYTES",
                                column, type.asSummaryString()));
        }
    }

    private static ArrowField child(String column, String name, LogicalType type) {
        return build(column, name, type, false, 0);
    }

    private static ArrowField map(
            String column, String name, LogicalType type, LogicalType key, LogicalType value) {
        return node(
                name,
                type,
                ArrowType.MAP,
                ArrowField.required(
                        "entries",
                        ArrowType.STRUCT,
                        child(column, "key", key.copy(false)),
                        child(column, "value", value)));
    }

    private static ArrowField leaf(String name, LogicalType type, ArrowType arrow) {
        return node(name, type, arrow);
    }

    private static ArrowField node(
            String name, LogicalType type, ArrowType arrow, ArrowField... children) {
        return type.isNullable()
                ? ArrowField.nullable(name, arrow, children)
                : ArrowField.required(name, arrow, children);
    }

    /** The coarsest unit that holds all digits of a timestamp. */
    private static Unit unit(LogicalType type) {
        int precision = LogicalTypeChecks.getPrecision(type);
        if (precision == 0) {
            return Unit.SECOND;
        } else if (precision <= 3) {
            return Unit.MILLISECOND;
        } else if (precision <= 6) {
            return Unit.MICROSECOND;
        }
        return Unit.NANOSECOND;
    }

    /** Digits behind the second that a unit holds. */
    static int digits(Unit unit) {
        switch (unit) {
            case SECOND:
                return 0;
            case MILLISECOND:
                return 3;
            case MICROSECOND:
                return 6;
            default:
                return 9;
        }
    }
}
