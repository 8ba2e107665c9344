package io.lancegateway.flink.source;

import java.util.Arrays;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;

/** What a change tells besides its row. */
public enum ChangeMetadata {
    /** The version that made it. */
    VERSION("version", DataTypes.BIGINT().notNull()),
    /** When that was committed. */
    TIMESTAMP("timestamp", DataTypes.TIMESTAMP_LTZ(6).notNull());

    private final String key;
    private final DataType type;

    ChangeMetadata(String key, DataType type) {
        this.key = key;
        this.type = type;
    }

    /** What a METADATA column names it by. */
    public String key() {
        return key;
    }

    public DataType type() {
        return type;
    }

    LogicalType logicalType() {
        return type.getLogicalType();
    }

    /** The one of this key. */
    public static ChangeMetadata of(String key) {
        return Arrays.stream(values())
                .filter(column -> column.key.equals(key))
                .findFirst()
                .orElseThrow(
                        () ->
                                new ValidationException(
                                        String.format(
                                                "changes have no metadata '%s', but 'version' and"
                                                        + " 'timestamp'",
                                                key)));
    }
}
