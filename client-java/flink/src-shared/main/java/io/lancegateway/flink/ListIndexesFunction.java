package io.lancegateway.flink;

import io.lancegateway.flink.index.IndexFunction;
import io.lancegateway.flink.index.Indexes;
import io.lancegateway.proto.v1.IndexStatistics;
import java.time.Instant;
import java.util.Map;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.types.Row;

/**
 * The indexes of a table, and how far they reach.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION list_indexes AS 'io.lancegateway.flink.ListIndexesFunction';
 * SELECT * FROM TABLE(list_indexes('vectors'));
 * }</pre>
 */
@FunctionHint(
        output =
                @DataTypeHint(
                        "ROW<name STRING, `columns` ARRAY<STRING>, type STRING, metric STRING,"
                                + " num_indexed_rows BIGINT, num_unindexed_rows BIGINT,"
                                + " num_segments INT, num_bytes BIGINT, created_at TIMESTAMP_LTZ(3),"
                                + " deferred BOOLEAN>"))
public class ListIndexesFunction extends IndexFunction {

    private static final long serialVersionUID = 1L;

    private static final String METRIC = "METRIC_";

    /**
     * @param options names and values
     */
    public void eval(String path, String... options) {
        Map<String, String> given = options(options);
        try (Indexes indexes = connect(path, given)) {
            check(given);
            indexes.list().forEach(index -> collect(row(index)));
        }
    }

    private static Row row(IndexStatistics index) {
        return Row.of(
                index.getName(),
                index.getColumnsList().toArray(new String[0]),
                index.getType(),
                index.getMetricValue() == 0
                        ? null
                        : index.getMetric().name().substring(METRIC.length()),
                index.getNumIndexedRows(),
                index.getNumUnindexedRows(),
                index.getNumSegments(),
                index.getNumBytes(),
                index.hasCreatedAt()
                        ? Instant.ofEpochSecond(
                                index.getCreatedAt().getSeconds(), index.getCreatedAt().getNanos())
                        : null,
                index.getDeferred());
    }
}
