package io.lancegateway.flink;

import io.lancegateway.flink.index.IndexFunction;
import io.lancegateway.flink.index.Indexes;
import java.util.Map;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.types.Row;

/**
 * Removes an index.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION drop_index AS 'io.lancegateway.flink.DropIndexFunction';
 * SELECT * FROM TABLE(drop_index('vectors', 'embedding_idx'));
 * }</pre>
 */
@FunctionHint(output = @DataTypeHint("ROW<name STRING, version BIGINT>"))
public class DropIndexFunction extends IndexFunction {

    private static final long serialVersionUID = 1L;

    /**
     * @param options names and values
     */
    public void eval(String path, String name, String... options) {
        Map<String, String> given = options(options);
        String id = requestId(path, name, given);
        try (Indexes indexes = connect(path, given)) {
            check(given);
            collect(Row.of(name, indexes.drop(id, name)));
        }
    }
}
