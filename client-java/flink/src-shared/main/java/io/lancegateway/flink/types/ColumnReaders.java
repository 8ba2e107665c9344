package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Kind;
import io.lancegateway.client.arrow.ArrowType.Unit;
import io.lancegateway.client.arrow.ArrowVector;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.BooleanVector;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.client.arrow.ListVector;
import io.lancegateway.client.arrow.StructVector;
import java.util.List;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/**
 * Chooses how a column of a table is read as a type of Flink. Types fit if no value is lost: a
 * smaller integer is read as a larger one, a timestamp of milliseconds as TIMESTAMP(6). The one
 * exception is TIME, which Flink holds in milliseconds whatever its precision.
 */
public final class ColumnReaders {

    private ColumnReaders() {}

    /**
     * How the column is read.
     *
     * @throws TypeMismatchException if the declared type cannot hold what the table may
     */
    public static ColumnReader of(ArrowField field, LogicalType declared) {
        return of(field.name(), field, declared);
    }

    /** The column of a struct's field, on its own: null where one of the structs is. */
    public static ColumnVector below(List<ArrowVector> structs, ColumnVector column) {
        return structs.isEmpty() || !(column instanceof Vectors.Of)
                ? column
                : ((Vectors.Of<?>) column).below(structs.toArray(new ArrowVector[0]));
    }

    private static ColumnReader of(String column, ArrowField field, LogicalType declared) {
        ColumnReader reader = find(column, field, declared);
        if (reader == null) {
            throw new TypeMismatchException(
                    String.format(
                            "column '%s' is declared as %s, but the table has %s there; %s",
                            column, declared.asSummaryString(), field.type(), advice(field)));
        }
        return reader;
    }

    private static String advice(ArrowField field) {
        try {
            return "declare it as " + FlinkTypes.type(field).copy(true).asSummaryString();
        } catch (TypeMismatchException unreadable) {
            return "Flink has no type for it: leave it out of the table's declaration";
        }
    }

    private static ColumnReader find(String column, ArrowField field, LogicalType declared) {
        ArrowType type = field.type();
        Kind kind = type.kind();
        if (kind == Kind.NULL) {
            return Vectors.Null::new;
        }
        switch (declared.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return kind == Kind.UTF8 || kind == Kind.LARGE_UTF8 || kind == Kind.UTF8_VIEW
                        ? v -> new Vectors.Binary((BinaryVector) v)
                        : null;
            case BOOLEAN:
                return kind == Kind.BOOL ? v -> new Vectors.Bool((BooleanVector) v) : null;
            case BINARY:
            case VARBINARY:
                return bytes(kind);
            case DECIMAL:
                return decimal(type, (DecimalType) declared);
            case TINYINT:
                return kind == Kind.INT8 ? v -> new Vectors.Int8((FixedWidthVector) v) : null;
            case SMALLINT:
                return small(kind);
            case INTEGER:
                return integer(kind);
            case BIGINT:
                return big(kind);
            case FLOAT:
                return real(kind);
            case DOUBLE:
                return kind == Kind.FLOAT64
                        ? v -> new Vectors.Float64((FixedWidthVector) v)
                        : widened(real(kind));
            case DATE:
                return date(kind);
            case TIME_WITHOUT_TIME_ZONE:
                return kind == Kind.TIME32 || kind == Kind.TIME64 ? time(type.unit()) : null;
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return kind == Kind.TIMESTAMP && type.timeZone() == null
                        ? timestamp(type.unit(), declared)
                        : null;
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return kind == Kind.TIMESTAMP && type.timeZone() != null
                        ? timestamp(type.unit(), declared)
                        : null;
            case ARRAY:
                return array(column, field, (ArrayType) declared);
            case ROW:
                return kind == Kind.STRUCT ? row(column, field, (RowType) declared) : null;
            case MAP:
                MapType map = (MapType) declared;
                return kind == Kind.MAP
                        ? map(column, field, map.getKeyType(), map.getValueType())
                        : null;
            case MULTISET:
                LogicalType element = ((MultisetType) declared).getElementType();
                return kind == Kind.MAP ? map(column, field, element, new IntType()) : null;
            default:
                return null;
        }
    }

    private static ColumnReader bytes(Kind kind) {
        switch (kind) {
            case BINARY:
            case LARGE_BINARY:
            case BINARY_VIEW:
                return v -> new Vectors.Binary((BinaryVector) v);
            case FIXED_SIZE_BINARY:
                return v -> new Vectors.FixedBinary((FixedWidthVector) v);
            default:
                return null;
        }
    }

    private static ColumnReader small(Kind kind) {
        switch (kind) {
            case INT16:
                return v -> new Vectors.Int16((FixedWidthVector) v);
            case INT8:
                return v -> new Vectors.Int8AsShort((FixedWidthVector) v);
            case UINT8:
                return v -> new Vectors.Unsigned8AsShort((FixedWidthVector) v);
            default:
                return null;
        }
    }

    private static ColumnReader integer(Kind kind) {
        if (kind == Kind.INT32) {
            return v -> new Vectors.Int32((FixedWidthVector) v);
        }
        if (kind == Kind.UINT16) {
            return v -> new Vectors.Unsigned16AsInt((FixedWidthVector) v);
        }
        ColumnReader smaller = small(kind);
        return smaller == null
                ? null
                : v -> new Vectors.ShortAsInt((Vectors.OfShort) smaller.read(v));
    }

    private static ColumnReader big(Kind kind) {
        if (kind == Kind.INT64) {
            return v -> new Vectors.Int64((FixedWidthVector) v);
        }
        if (kind == Kind.UINT32) {
            return v -> new Vectors.Unsigned32AsLong((FixedWidthVector) v);
        }
        ColumnReader smaller = integer(kind);
        return smaller == null ? null : v -> new Vectors.IntAsLong((Vectors.OfInt) smaller.read(v));
    }

    private static ColumnReader real(Kind kind) {
        switch (kind) {
            case FLOAT32:
                return v -> new Vectors.Float32((FixedWidthVector) v);
            case FLOAT16:
                return v -> new Vectors.Float16((FixedWidthVector) v);
            default:
                return null;
        }
    }

    private static ColumnReader widened(ColumnReader real) {
        return real == null ? null : v -> new Vectors.FloatAsDouble((Vectors.OfFloat) real.read(v));
    }

    private static ColumnReader decimal(ArrowType type, DecimalType declared) {
        int precision;
        int scale;
        switch (type.kind()) {
            case DECIMAL32:
            case DECIMAL64:
            case DECIMAL128:
            case DECIMAL256:
                precision = type.precision();
                scale = type.scale();
                break;
            case UINT64:
                return declared.getPrecision() - declared.getScale() >= 20
                        ? v -> new Vectors.Unsigned64((FixedWidthVector) v)
                        : null;
            default:
                return null;
        }
        boolean fits =
                declared.getScale() >= scale
                        && declared.getPrecision() - declared.getScale() >= precision - scale;
        if (!fits) {
            return null;
        }
        return scale == declared.getScale()
                ? v -> new Vectors.Decimal((FixedWidthVector) v)
                : v -> new Vectors.RescaledDecimal((FixedWidthVector) v, scale);
    }

    private static ColumnReader date(Kind kind) {
        switch (kind) {
            case DATE32:
                return v -> new Vectors.Int32((FixedWidthVector) v);
            case DATE64:
                return v -> new Vectors.Date64((FixedWidthVector) v);
            default:
                return null;
        }
    }

    private static ColumnReader time(Unit unit) {
        switch (unit) {
            case SECOND:
                return v -> new Vectors.SecondsOfDay((FixedWidthVector) v);
            case MILLISECOND:
                return v -> new Vectors.Int32((FixedWidthVector) v);
            case MICROSECOND:
                return v -> new Vectors.FineTimeOfDay((FixedWidthVector) v, 1_000);
            default:
                return v -> new Vectors.FineTimeOfDay((FixedWidthVector) v, 1_000_000);
        }
    }

    private static ColumnReader timestamp(Unit unit, LogicalType declared) {
        if (ArrowTypes.digits(unit) > LogicalTypeChecks.getPrecision(declared)) {
            return null;
        }
        switch (unit) {
            case SECOND:
                return v -> new Vectors.Seconds((FixedWidthVector) v);
            case MILLISECOND:
                return v -> new Vectors.Millis((FixedWidthVector) v);
            case MICROSECOND:
                return v -> new Vectors.Micros((FixedWidthVector) v);
            default:
                return v -> new Vectors.Nanos((FixedWidthVector) v);
        }
    }

    private static ColumnReader array(String column, ArrowField field, ArrayType declared) {
        switch (field.type().kind()) {
            case LIST:
            case LARGE_LIST:
            case FIXED_SIZE_LIST:
                ColumnReader element = of(column, field.child(0), declared.getElementType());
                return v -> {
                    ListVector list = (ListVector) v;
                    return new Vectors.Array(list, element.read(list.child()));
                };
            default:
                return null;
        }
    }

    private static ColumnReader map(
            String column, ArrowField field, LogicalType key, LogicalType value) {
        ArrowField entries = field.child(0);
        ColumnReader keys = of(column, entries.child(0), key);
        ColumnReader values = of(column, entries.child(1), value);
        return v -> {
            ListVector list = (ListVector) v;
            StructVector entry = (StructVector) list.child();
            return new Vectors.MapOf(list, keys.read(entry.child(0)), values.read(entry.child(1)));
        };
    }

    private static ColumnReader row(String column, ArrowField field, RowType declared) {
        List<RowType.RowField> wanted = declared.getFields();
        int[] positions = new int[wanted.size()];
        ColumnReader[] readers = new ColumnReader[wanted.size()];
        for (int i = 0; i < readers.length; i++) {
            String name = wanted.get(i).getName();
            positions[i] = childNamed(field, name);
            if (positions[i] < 0) {
                throw new TypeMismatchException(
                        String.format(
                                "column '%s' is declared with a field '%s' that the table does not"
                                        + " have there",
                                column, name));
            }
            readers[i] =
                    of(column + "." + name, field.child(positions[i]), wanted.get(i).getType());
        }
        return v -> {
            StructVector struct = (StructVector) v;
            ColumnVector[] children = new ColumnVector[readers.length];
            for (int i = 0; i < children.length; i++) {
                children[i] = readers[i].read(struct.child(positions[i]));
            }
            return new Vectors.Struct(struct, children);
        };
    }

    /** Position of a field of a struct, or -1. */
    static int childNamed(ArrowField struct, String name) {
        for (int i = 0; i < struct.children().size(); i++) {
            if (struct.child(i).name().equals(name)) {
                return i;
            }
        }
        return -1;
    }
}
