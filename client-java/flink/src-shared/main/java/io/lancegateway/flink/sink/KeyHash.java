package io.lancegateway.flink.sink;

import java.util.Arrays;
import java.util.List;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/**
 * A number that rows of one key have in common, in every process. Values that a table may keep as
 * the same, such as 0.0 and -0.0, count as equal.
 */
final class KeyHash implements KeySelector<RowData, Integer> {

    private static final long serialVersionUID = 1L;

    private final String[] names;
    private final RowData.FieldGetter[] values;

    /** Milliseconds that a timestamp is told apart by. */
    private final long[] units;

    KeyHash(RowType rowType, List<String> key) {
        names = key.toArray(new String[0]);
        values = new RowData.FieldGetter[names.length];
        units = new long[names.length];
        for (int i = 0; i < names.length; i++) {
            int index = rowType.getFieldIndex(names[i]);
            LogicalType type = rowType.getTypeAt(index);
            // As if it could be null, so that one which is, is seen.
            values[i] = RowData.createFieldGetter(type.copy(true), index);
            units[i] = isInSeconds(type) ? 1_000L : 1L;
        }
    }

    private static boolean isInSeconds(LogicalType type) {
        return type.is(LogicalTypeFamily.TIMESTAMP) && LogicalTypeChecks.getPrecision(type) == 0;
    }

    @Override
    public Integer getKey(RowData row) {
        int hash = 0;
        for (int i = 0; i < values.length; i++) {
            Object value = values[i].getFieldOrNull(row);
            if (value == null) {
                throw new IllegalArgumentException(
                        String.format("primary key column '%s' is null", names[i]));
            }
            hash = 31 * hash + hash(value, units[i]);
        }
        return hash;
    }

    private static int hash(Object value, long unit) {
        if (value instanceof byte[]) {
            return Arrays.hashCode((byte[]) value);
        } else if (value instanceof DecimalData) {
            return ((DecimalData) value).toBigDecimal().stripTrailingZeros().hashCode();
        } else if (value instanceof TimestampData) {
            return Long.hashCode(Math.floorDiv(((TimestampData) value).getMillisecond(), unit));
        } else if (value instanceof Float) {
            return Float.hashCode((float) value + 0.0f);
        } else if (value instanceof Double) {
            return Double.hashCode((double) value + 0.0);
        }
        return value.hashCode();
    }
}
