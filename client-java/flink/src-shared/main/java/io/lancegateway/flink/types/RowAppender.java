package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Kind;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.BooleanBuilder;
import io.lancegateway.client.arrow.ColumnBuilder;
import io.lancegateway.client.arrow.FixedSizeListBuilder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.ListBuilder;
import io.lancegateway.client.arrow.StructBuilder;
import java.util.List;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/**
 * Appends rows of Flink to batches of a table. Columns are matched by name; what to do with each is
 * chosen once. A column of the table that Flink's row lacks becomes null.
 */
public final class RowAppender implements Appender {

    private static final long MILLIS_PER_DAY = 86_400_000L;

    private final ArrowBatchBuilder batch;
    private final int[] positions;
    private final Cell<?>[] cells;

    /**
     * @throws TypeMismatchException if a column cannot be written without loss, is missing in the
     *     table, or is missing in the row type and needed by the table
     */
    public RowAppender(RowType rowType, ArrowBatchBuilder batch) {
        this.batch = batch;
        ArrowSchema table = batch.schema();
        for (String name : rowType.getFieldNames()) {
            if (table.indexOf(name) < 0) {
                throw missing(name);
            }
        }
        ColumnBuilder[] builders = new ColumnBuilder[table.size()];
        for (int i = 0; i < builders.length; i++) {
            builders[i] = batch.column(i);
        }
        Fields fields = Fields.of("", table.fields(), builders, rowType);
        this.positions = fields.positions;
        this.cells = fields.cells;
    }

    @Override
    public void append(RowData row) {
        int column = 0;
        try {
            for (; column < cells.length; column++) {
                if (positions[column] < 0) {
                    batch.column(column).appendNull();
                } else {
                    cells[column].append(row, positions[column]);
                }
            }
        } catch (IllegalArgumentException | ArithmeticException unfit) {
            throw unfit(batch.schema().field(column), unfit);
        }
        batch.endRow();
    }

    static IllegalArgumentException unfit(ArrowField column, RuntimeException cause) {
        return new IllegalArgumentException(
                String.format("column '%s': %s", column.name(), cause.getMessage()), cause);
    }

    static TypeMismatchException missing(String column) {
        return new TypeMismatchException(
                String.format("column '%s' does not exist in the table", column));
    }

    /** The fields of a row or struct, in the order of the table. */
    static final class Fields {
        final int[] positions;
        final Cell<?>[] cells;

        private Fields(int[] positions, Cell<?>[] cells) {
            this.positions = positions;
            this.cells = cells;
        }

        static Fields of(
                String prefix, List<ArrowField> table, ColumnBuilder[] builders, RowType rowType) {
            int[] positions = new int[builders.length];
            Cell<?>[] cells = new Cell<?>[builders.length];
            for (int i = 0; i < builders.length; i++) {
                ArrowField field = table.get(i);
                String name = prefix + field.name();
                positions[i] = rowType.getFieldIndex(field.name());
                if (positions[i] >= 0) {
                    cells[i] = cell(name, builders[i], rowType.getTypeAt(positions[i]));
                } else if (!field.isNullable()) {
                    throw new TypeMismatchException(
                            String.format(
                                    "column '%s' of the table is not nullable: the statement must"
                                            + " write it",
                                    name));
                }
            }
            return new Fields(positions, cells);
        }
    }

    private static Cell<?> cell(String column, ColumnBuilder builder, LogicalType type) {
        Cell<?> cell = find(column, builder, type);
        if (cell == null) {
            throw new TypeMismatchException(
                    String.format(
                            "column '%s' is %s in Flink, but the table has %s there, which cannot"
                                    + " hold every value of it",
                            column, type.asSummaryString(), builder.field().type()));
        }
        return cell;
    }

    private static Cell<?> find(String column, ColumnBuilder builder, LogicalType type) {
        ArrowType stored = RowIds.shown(builder.field()).type();
        Kind kind = stored.kind();
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                return kind == Kind.UTF8 || kind == Kind.LARGE_UTF8 || kind == Kind.UTF8_VIEW
                        ? new Cells.Text((BinaryBuilder) builder)
                        : null;
            case BOOLEAN:
                return kind == Kind.BOOL ? new Cells.Bool((BooleanBuilder) builder) : null;
            case BINARY:
            case VARBINARY:
                return binary(builder, kind, type);
            case DECIMAL:
                return decimal(builder, stored, (DecimalType) type);
            case TINYINT:
                return kind == Kind.INT8
                        ? new Cells.Int8((FixedWidthBuilder) builder)
                        : widened(builder, kind, 1);
            case SMALLINT:
                return kind == Kind.INT16
                        ? new Cells.Int16((FixedWidthBuilder) builder)
                        : widened(builder, kind, 2);
            case INTEGER:
                return kind == Kind.INT32
                        ? new Cells.Int32((FixedWidthBuilder) builder)
                        : widened(builder, kind, 4);
            case BIGINT:
                return kind == Kind.INT64 ? new Cells.Int64((FixedWidthBuilder) builder) : null;
            case FLOAT:
                if (kind == Kind.FLOAT32) {
                    return new Cells.Float32((FixedWidthBuilder) builder);
                }
                return kind == Kind.FLOAT64
                        ? new Cells.FloatAsDouble((FixedWidthBuilder) builder)
                        : null;
            case DOUBLE:
                return kind == Kind.FLOAT64 ? new Cells.Float64((FixedWidthBuilder) builder) : null;
            case DATE:
                if (kind == Kind.DATE32) {
                    return new Cells.Int32((FixedWidthBuilder) builder);
                }
                return kind == Kind.DATE64
                        ? new Cells.Scaled((FixedWidthBuilder) builder, MILLIS_PER_DAY)
                        : null;
            case TIME_WITHOUT_TIME_ZONE:
                return time(builder, stored);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return kind == Kind.TIMESTAMP && stored.timeZone() == null
                        ? timestamp(builder, stored, type)
                        : null;
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return kind == Kind.TIMESTAMP && stored.timeZone() != null
                        ? timestamp(builder, stored, type)
                        : null;
            case ARRAY:
                return array(column, builder, kind, ((ArrayType) type).getElementType());
            case MAP:
                MapType map = (MapType) type;
                return kind == Kind.MAP
                        ? map(column, builder, map.getKeyType(), map.getValueType())
                        : null;
            case MULTISET:
                return kind == Kind.MAP
                        ? map(
                                column,
                                builder,
                                ((MultisetType) type).getElementType(),
                                new IntType(false))
                        : null;
            case ROW:
                return kind == Kind.STRUCT
                        ? struct(column, (StructBuilder) builder, (RowType) type)
                        : null;
            default:
                return null;
        }
    }

    private static Cell<?> binary(ColumnBuilder builder, Kind kind, LogicalType type) {
        switch (kind) {
            case BINARY:
            case LARGE_BINARY:
            case BINARY_VIEW:
                return new Cells.Binary((BinaryBuilder) builder);
            case FIXED_SIZE_BINARY:
                int size = ((FixedWidthBuilder) builder).width();
                return LogicalTypeChecks.getLength(type) >= size
                        ? new Cells.FixedBinary((FixedWidthBuilder) builder)
                        : null;
            default:
                return null;
        }
    }

    private static Cell<?> decimal(ColumnBuilder builder, ArrowType stored, DecimalType type) {
        switch (stored.kind()) {
            case DECIMAL32:
            case DECIMAL64:
            case DECIMAL128:
            case DECIMAL256:
                boolean fits =
                        stored.scale() >= type.getScale()
                                && stored.precision() - stored.scale()
                                        >= type.getPrecision() - type.getScale();
                return fits
                        ? new Cells.Decimal(
                                (FixedWidthBuilder) builder, type.getPrecision(), type.getScale())
                        : null;
            default:
                return null;
        }
    }

    private static Cell<?> widened(ColumnBuilder builder, Kind kind, int width) {
        switch (kind) {
            case INT16:
            case INT32:
            case INT64:
                return ((FixedWidthBuilder) builder).width() > width
                        ? new Cells.WidenedInteger((FixedWidthBuilder) builder, width)
                        : null;
            default:
                return null;
        }
    }

    private static Cell<?> time(ColumnBuilder builder, ArrowType stored) {
        if (stored.kind() != Kind.TIME32 && stored.kind() != Kind.TIME64) {
            return null;
        }
        switch (stored.unit()) {
            case MILLISECOND:
                return new Cells.Int32((FixedWidthBuilder) builder);
            case MICROSECOND:
                return new Cells.Scaled((FixedWidthBuilder) builder, 1_000L);
            case NANOSECOND:
                return new Cells.Scaled((FixedWidthBuilder) builder, 1_000_000L);
            default:
                return null;
        }
    }

    private static Cell<?> timestamp(ColumnBuilder builder, ArrowType stored, LogicalType type) {
        int precision = LogicalTypeChecks.getPrecision(type);
        return ArrowTypes.digits(stored.unit()) >= precision
                ? new Cells.Timestamp((FixedWidthBuilder) builder, precision)
                : null;
    }

    private static Cell<?> array(
            String column, ColumnBuilder builder, Kind kind, LogicalType element) {
        switch (kind) {
            case LIST:
            case LARGE_LIST:
                ListBuilder list = (ListBuilder) builder;
                return new Cells.ListOf(list, cell(column, list.child(), element));
            case FIXED_SIZE_LIST:
                FixedSizeListBuilder vectors = (FixedSizeListBuilder) builder;
                return new Cells.FixedSizeListOf(vectors, cell(column, vectors.child(), element));
            default:
                return null;
        }
    }

    private static Cell<?> map(
            String column, ColumnBuilder builder, LogicalType key, LogicalType value) {
        ListBuilder list = (ListBuilder) builder;
        StructBuilder entries = (StructBuilder) list.child();
        return new Cells.MapOf(
                list, cell(column, entries.child(0), key), cell(column, entries.child(1), value));
    }

    private static Cell<?> struct(String column, StructBuilder builder, RowType type) {
        for (String name : type.getFieldNames()) {
            if (ColumnReaders.childNamed(builder.field(), name) < 0) {
                throw new TypeMismatchException(
                        String.format("column '%s' of the table has no field '%s'", column, name));
            }
        }
        ColumnBuilder[] children = new ColumnBuilder[builder.size()];
        for (int i = 0; i < children.length; i++) {
            children[i] = builder.child(i);
        }
        Fields fields = Fields.of(column + ".", builder.field().children(), children, type);
        return new Cells.Struct(builder, fields.positions, fields.cells, type.getFieldCount());
    }
}
