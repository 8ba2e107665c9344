package io.lancegateway.flink;

import io.lancegateway.flink.index.IndexFunction;
import io.lancegateway.flink.index.Indexes;
import io.lancegateway.proto.v1.IndexOptimization;
import io.lancegateway.proto.v1.IndexResult;
import java.io.IOException;
import java.util.Map;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.api.ValidationException;

/**
 * Brings rows that came later into the indexes of a table, and waits until they are there.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION optimize_index AS 'io.lancegateway.flink.OptimizeIndexFunction';
 * SELECT * FROM TABLE(optimize_index('vectors', 'name', 'embedding_idx'));
 * }</pre>
 *
 * <p>Without {@code name} all indexes; {@code num-segments-to-merge} and {@code retrain} are those
 * of {@code lgw index optimize}.
 */
@FunctionHint(
        output =
                @DataTypeHint(
                        "ROW<name STRING, version BIGINT, num_indexed_rows BIGINT,"
                                + " num_unindexed_rows BIGINT, deferred BOOLEAN>"))
public class OptimizeIndexFunction extends IndexFunction {

    private static final long serialVersionUID = 1L;

    private static final String NAME = "name";
    private static final String MERGE = "num-segments-to-merge";
    private static final String RETRAIN = "retrain";

    /**
     * @param options names and values
     */
    public void eval(String path, String... options) throws IOException {
        Map<String, String> given = options(options);
        String id = requestId(path, given);
        try (Indexes indexes = connect(path, given)) {
            check(given, NAME, MERGE, RETRAIN);
            for (IndexResult index :
                    indexes.optimize(id, what(given)).getOptimizationResult().getIndexesList()) {
                collect(CreateIndexFunction.row(index));
            }
        }
    }

    private static IndexOptimization what(Map<String, String> options) {
        IndexOptimization.Builder what = IndexOptimization.newBuilder();
        if (options.containsKey(NAME)) {
            what.addNames(options.get(NAME));
        }
        if (options.containsKey(MERGE)) {
            try {
                what.setNumSegmentsToMerge(Integer.parseUnsignedInt(options.get(MERGE).trim()));
            } catch (NumberFormatException none) {
                throw new ValidationException(
                        String.format(
                                "option '%s' is '%s'; it must be a whole number of 0 or more",
                                MERGE, options.get(MERGE)));
            }
        }
        return what.setRetrain(flag(RETRAIN, options)).build();
    }
}
