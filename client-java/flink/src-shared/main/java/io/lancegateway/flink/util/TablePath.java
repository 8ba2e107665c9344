package io.lancegateway.flink.util;

import io.lancegateway.client.Tables;
import io.lancegateway.proto.v1.Table;
import java.util.List;
import org.apache.flink.table.api.ValidationException;

/** The option {@code path}: a name below the gateway's warehouse, or a URI. */
public final class TablePath {

    private TablePath() {}

    /**
     * {@code vectors} and {@code ns.vectors} are names; what has a slash or a scheme is a URI,
     * which the gateway takes where its operator allows it.
     */
    public static Table parse(String path) {
        if (path.indexOf('/') >= 0 || path.indexOf(':') >= 0 || path.indexOf('\\') >= 0) {
            return Tables.at(path);
        }
        List<String> parts = List.of(path.split("\\.", -1));
        if (parts.stream().anyMatch(part -> part.trim().isEmpty())) {
            throw new ValidationException(
                    String.format(
                            "'path' = '%s' is no table: write 'table', 'namespace.table' or a URI",
                            path));
        }
        return Tables.named(parts);
    }
}
