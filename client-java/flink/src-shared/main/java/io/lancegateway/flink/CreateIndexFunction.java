package io.lancegateway.flink;

import io.lancegateway.flink.index.IndexFunction;
import io.lancegateway.flink.index.Indexes;
import io.lancegateway.proto.v1.IndexResult;
import java.io.IOException;
import java.util.Map;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.types.Row;

/**
 * Builds an index, and waits until it is there.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION create_index AS 'io.lancegateway.flink.CreateIndexFunction';
 * SELECT * FROM TABLE(create_index('vectors', 'embedding', 'IVF_PQ', 'metric', 'cosine'));
 * }</pre>
 */
@FunctionHint(
        output =
                @DataTypeHint(
                        "ROW<name STRING, version BIGINT, num_indexed_rows BIGINT,"
                                + " num_unindexed_rows BIGINT, deferred BOOLEAN>"))
public class CreateIndexFunction extends IndexFunction {

    private static final long serialVersionUID = 1L;

    /**
     * @param options names and values
     */
    public void eval(String path, String column, String type, String... options)
            throws IOException {
        Map<String, String> given = options(options);
        String id = requestId(path, column, type, given);
        try (Indexes indexes = connect(path, given)) {
            collect(row(indexes.create(id, column, type, given).getIndexResult()));
        }
    }

    static Row row(IndexResult result) {
        return Row.of(
                result.getName(),
                result.getVersion(),
                result.getNumIndexedRows(),
                result.getNumUnindexedRows(),
                result.getDeferred());
    }
}
