package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;

/** The search functions through SQL. */
class SearchITCase extends FlinkAndGateway {

    private static StreamTableEnvironment env() {
        return withFunctions(batch(1));
    }

    private static StreamTableEnvironment withFunctions(StreamTableEnvironment env) {
        env.executeSql(
                "CREATE TEMPORARY FUNCTION vector_search AS"
                        + " 'io.lancegateway.flink.VectorSearchFunction' LANGUAGE JAVA");
        env.executeSql(
                "CREATE TEMPORARY FUNCTION full_text_search AS"
                        + " 'io.lancegateway.flink.FullTextSearchFunction' LANGUAGE JAVA");
        env.executeSql(
                "CREATE TEMPORARY FUNCTION hybrid_search AS"
                        + " 'io.lancegateway.flink.HybridSearchFunction' LANGUAGE JAVA");
        return env;
    }

    /** Rows in the order in which they come. */
    private static List<String> found(StreamTableEnvironment env, String sql) throws Exception {
        List<String> rows = new ArrayList<>();
        try (CloseableIterator<Row> result = env.executeSql(sql).collect()) {
            result.forEachRemaining(row -> rows.add(row.toString()));
        }
        return rows;
    }

    /** The arguments that say where the gateway is. */
    private static String here() {
        return "'gateway.uri', '" + gateway().uri() + "'";
    }

    /** A table of vectors (i, i, i, i), so that the nearest to the origin are those of few. */
    private static String line(StreamTableEnvironment env, int rows) throws Exception {
        String table = newTable();
        declare(env, table, "id BIGINT, content STRING, embedding ARRAY<FLOAT>");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES "
                        + IntStream.range(0, rows)
                                .mapToObj(
                                        i ->
                                                String.format(
                                                        "(%d, 'row %d', ARRAY[%d.0, %d.0, %d.0,"
                                                                + " %d.0])",
                                                        i, i, i, i, i, i))
                                .collect(Collectors.joining(", ")));
        return table;
    }

    @Test
    void theNearestRowsComeWithTheirDistance() throws Exception {
        StreamTableEnvironment env = env();
        String table = line(env, 5);

        assertThat(
                        found(
                                env,
                                "SELECT * FROM TABLE(vector_search('"
                                        + table
                                        + "', 'embedding', ARRAY[1.0, 1.0, 1.0, 1.5], 2, "
                                        + here()
                                        + "))"))
                .containsExactly(
                        "+I[1, row 1, [1.0, 1.0, 1.0, 1.0], 0.25]",
                        "+I[2, row 2, [2.0, 2.0, 2.0, 2.0], 3.25]");
    }
}
