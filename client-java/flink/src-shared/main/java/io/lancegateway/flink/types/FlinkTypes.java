package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.BinaryType;
import org.apache.flink.table.types.logical.BooleanType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.FloatType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.SmallIntType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.TinyIntType;
import org.apache.flink.table.types.logical.VarBinaryType;
import org.apache.flink.table.types.logical.VarCharType;

/** From the columns of a table to Flink's types: the smallest type that holds every value. */
public final class FlinkTypes {

    private FlinkTypes() {}

    /** The row type of a table. */
    public static RowType rowType(ArrowSchema schema) {
        return rowType(schema.fields(), false);
    }

    private static RowType rowType(List<ArrowField> fields, boolean nullable) {
        List<RowType.RowField> result = new ArrayList<>(fields.size());
        for (ArrowField field : fields) {
            result.add(new RowType.RowField(field.name(), type(field)));
        }
        return new RowType(nullable, result);
    }

    /** The type of a column. */
    public static LogicalType type(ArrowField field) {
        return nullableType(field).copy(field.isNullable());
    }

    private static LogicalType nullableType(ArrowField field) {
        ArrowType type = field.type();
        switch (type.kind()) {
            case BOOL:
                return new BooleanType();
            case INT8:
                return new TinyIntType();
            case INT16:
            case UINT8:
                return new SmallIntType();
            case INT32:
            case UINT16:
                return new IntType();
            case INT64:
            case UINT32:
                return new BigIntType();
            case UINT64:
                return new DecimalType(20, 0);
            case FLOAT16:
            case FLOAT32:
                return new FloatType();
            case FLOAT64:
                return new DoubleType();
            case DECIMAL32:
            case DECIMAL64:
            case DECIMAL128:
            case DECIMAL256:
                if (type.precision() <= DecimalType.MAX_PRECISION
                        && type.scale() >= 0
                        && type.scale() <= type.precision()) {
                    return new DecimalType(type.precision(), type.scale());
                }
                break;
            case DATE32:
            case DATE64:
                return new DateType();
            case TIME32:
            case TIME64:
                return new TimeType(ArrowTypes.digits(type.unit()));
            case TIMESTAMP:
                int digits = ArrowTypes.digits(type.unit());
                return type.timeZone() == null
                        ? new TimestampType(digits)
                        : new LocalZonedTimestampType(digits);
            case UTF8:
            case LARGE_UTF8:
            case UTF8_VIEW:
                return VarCharType.STRING_TYPE;
            case BINARY:
            case LARGE_BINARY:
            case BINARY_VIEW:
                return new VarBinaryType(VarBinaryType.MAX_LENGTH);
            case FIXED_SIZE_BINARY:
                return type.size() > 0
                        ? new BinaryType(type.size())
                        : new VarBinaryType(VarBinaryType.MAX_LENGTH);
            case LIST:
            case LARGE_LIST:
            case FIXED_SIZE_LIST:
                return new ArrayType(type(field.child(0)));
            case STRUCT:
                return rowType(field.children(), true);
            case MAP:
                ArrowField entries = field.child(0);
                LogicalType key = type(entries.child(0));
                return ArrowTypes.MULTISET.equals(field.metadata().get(ArrowTypes.FLINK_TYPE))
                        ? new MultisetType(key)
                        : new MapType(key, type(entries.child(1)));
            default:
                break;
        }
        throw new TypeMismatchException(
                String.format("column '%s': Flink has no type for %s", field.name(), type));
    }
}
