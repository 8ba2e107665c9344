package io.lancegateway.flink.table;

import io.lancegateway.client.WriteHandle;
import io.lancegateway.proto.v1.ScanRequest;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.types.DataType;

/** What a table tells of its rows beside their columns, by the keys of METADATA columns. */
enum RowMetadataColumn {
    /** Stable over compactions if the table was made so, as the gateway makes them. */
    ROW_ID(WriteHandle.ROW_ID, DataTypes.BIGINT().notNull()) {
        @Override
        void ask(ScanRequest.Builder scan) {
            scan.getMetadataBuilder().setRowId(true);
        }
    };

    private final String key;
    private final DataType type;

    RowMetadataColumn(String key, DataType type) {
        this.key = key;
        this.type = type;
    }

    String key() {
        return key;
    }

    DataType type() {
        return type;
    }

    /** As the table declares it, or as one that it does not: Flink knows each at most once. */
    Column columnOf(ResolvedSchema schema) {
        return schema.getColumns().stream()
                .filter(column -> column instanceof Column.MetadataColumn)
                .filter(column -> isDeclaredBy((Column.MetadataColumn) column))
                .findFirst()
                .orElse(Column.metadata(key, type, null, true));
    }

    /** Whether a column of a table is of these. */
    static boolean declares(Column.MetadataColumn column) {
        return all().containsKey(keyOf(column));
    }

    private static String keyOf(Column.MetadataColumn column) {
        return column.getMetadataKey().orElse(column.getName());
    }

    private boolean isDeclaredBy(Column.MetadataColumn column) {
        return keyOf(column).equals(key) && column.getDataType().nullable().equals(type.nullable());
    }

    /** Makes a scan answer it. */
    abstract void ask(ScanRequest.Builder scan);

    static Map<String, DataType> all() {
        Map<String, DataType> all = new LinkedHashMap<>();
        Arrays.stream(values()).forEach(column -> all.put(column.key, column.type));
        return all;
    }

    static void ask(List<String> keys, ScanRequest.Builder scan) {
        Arrays.stream(values())
                .filter(column -> keys.contains(column.key))
                .forEach(column -> column.ask(scan));
    }
}
