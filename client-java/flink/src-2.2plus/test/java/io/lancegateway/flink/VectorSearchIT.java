package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.flink.testing.FlinkAndGateway;
import java.util.List;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Flink's own VECTOR_SEARCH. */
class VectorSearchIT extends FlinkAndGateway {

    private static final String COLUMNS = "id BIGINT, `W.ord` STRING, v ARRAY<FLOAT>, f BOOLEAN";

    /** Points 0..9 on a line, the even ones marked. */
    private static String points(StreamTableEnvironment env, String... options) throws Exception {
        String table = newTable();
        StreamTableEnvironment batch = batch(1);
        declare(batch, table, COLUMNS, "'write.vector-dimensions'='v:2'");
        numbers(batch, "n_" + table, 0, 9);
        insert(
                batch,
                String.format(
                        "INSERT INTO %s SELECT n, 'w' || CAST(n AS STRING), ARRAY[CAST(n AS"
                                + " FLOAT), CAST(0 AS FLOAT)], MOD(n, 2) = 0 FROM n_%s",
                        table, table));
        declareAs(env, table, table, COLUMNS, options);
        return table;
    }

    private static String search(String table, String vector, int k, String... config) {
        String more = config.length == 0 ? "" : ", MAP['" + String.join("','", config) + "']";
        return String.format(
                "VECTOR_SEARCH(TABLE %s, DESCRIPTOR(v), %s, %d%s)", table, vector, k, more);
    }

    private static String origin() {
        return "ARRAY[CAST(0.1 AS FLOAT), CAST(0 AS FLOAT)]";
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void theNearestRowsComeWithTheirDistances(String async) throws Exception {
        StreamTableEnvironment env = batch(1);
        String table = points(env);
        String sql =
                "SELECT id, `W.ord`, v[1], ROUND(score, 2) FROM "
                        + search(table, origin(), 3, "async", async);
        assertThat(query(env, sql))
                .containsExactly(
                        "+I[0, w0, 0.0, 0.01]", "+I[1, w1, 1.0, 0.81]", "+I[2, w2, 2.0, 3.61]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void eachRowOfAnotherTableIsAQuery(String async) throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = points(env);
        String queries =
                "(SELECT q, CASE WHEN q = 3 THEN CAST(NULL AS ARRAY<FLOAT>) ELSE ARRAY[CAST(q * 4"
                        + " AS FLOAT), CAST(0 AS FLOAT)] END AS w FROM (VALUES (1), (2), (3)) AS t"
                        + " (q)) AS o";
        String near = "LATERAL TABLE(" + search(table, "o.w", 2, "async", async, "filter", "f");

        assertThat(query(env, "SELECT q, id FROM " + queries + ", " + near + ")"))
                .containsExactly("+I[1, 2]", "+I[1, 4]", "+I[2, 6]", "+I[2, 8]");
        assertThat(query(env, "SELECT q, id FROM " + queries + " LEFT JOIN " + near + ") ON TRUE"))
                .containsExactly("+I[1, 2]", "+I[1, 4]", "+I[2, 6]", "+I[2, 8]", "+I[3, null]");
    }

    @Test
    void configAndOptionsOfTheTableSayHowIsSearched() throws Exception {
        StreamTableEnvironment env = batch(1);
        String table = points(env, "'vector.metric'='dot'", "'read.filter'='id < 9'");
        // 1 - dot product: the farthest along the line is the nearest.
        assertThat(query(env, "SELECT id, score FROM " + search(table, unit(), 2)))
                .containsExactly("+I[7, -6.0]", "+I[8, -7.0]");
        assertThat(query(env, ids(table, 2, "metric", "L2"))).containsExactly("+I[0]", "+I[1]");
        assertThat(query(env, ids(table, 2, "metric", "L2", "filter", "NOT f", "offset", "1")))
                .containsExactly("+I[3]", "+I[5]");
        assertThat(query(env, ids(table, 4, "metric", "L2", "filter", "f", "postfilter", "true")))
                .containsExactly("+I[0]", "+I[2]");
        assertThat(query(env, ids(table, 9, "metric", "L2", "upper-bound", "2.5")))
                .containsExactly("+I[0]", "+I[1]", "+I[2]");
        assertThatThrownBy(() -> query(env, ids(table, 1, "version", "1000")))
                .hasStackTraceContaining("TABLE_VERSION_NOT_FOUND");
    }

    private static String unit() {
        return "ARRAY[CAST(1 AS FLOAT), CAST(0 AS FLOAT)]";
    }

    private static String ids(String table, int k, String... config) {
        return "SELECT id FROM " + search(table, unit(), k, config);
    }

    @Test
    void whatCannotBeSearchedIsRefusedWithTheReason() throws Exception {
        StreamTableEnvironment env = batch(1);
        String table = points(env);
        assertThatThrownBy(() -> query(env, ids(table, 1, "probes", "3")))
                .hasStackTraceContaining("there is no option 'probes'; there are ef, exact");
        assertThatThrownBy(() -> query(env, ids(table, 1, "metric", "far")))
                .hasStackTraceContaining("'far' is no metric: L2, COSINE");
        assertThatThrownBy(() -> query(env, ids(table, 1_000_000_000)))
                .hasStackTraceContaining("search.max-k");
        String flat = "ARRAY[CAST(1 AS FLOAT)]";
        assertThatThrownBy(() -> query(env, "SELECT id FROM " + search(table, flat, 1)))
                .hasStackTraceContaining("INVALID_ARGUMENT");
        String hole = "ARRAY[CAST(1 AS FLOAT), CAST(NULL AS FLOAT)]";
        assertThatThrownBy(() -> query(env, "SELECT id FROM " + search(table, hole, 1)))
                .hasStackTraceContaining("element 2 of 2 of the query vector is NULL");
        // Flink hands these over as if they were floats.
        for (String other : List.of("ARRAY[1.0, 0.0]", "ARRAY[1, 0]", "ARRAY[7, 9]")) {
            assertThatThrownBy(() -> query(env, "SELECT id FROM " + search(table, other, 1)))
                    .hasStackTraceContaining("write CAST(... AS ARRAY<FLOAT>)");
        }
        String cast = "CAST(ARRAY[1.0, 0.0] AS ARRAY<FLOAT>)";
        assertThat(query(env, "SELECT id FROM " + search(table, cast, 1))).containsExactly("+I[1]");
        String limited = points(env, "'read.limit'='3'");
        assertThatThrownBy(() -> query(env, ids(limited, 1)))
                .hasStackTraceContaining("'read.limit' has no meaning in a search");
    }

    @Test
    void manyQueriesAreAnsweredInTheirOrder() throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = points(env);
        numbers(env, "q_" + table, 0, 999);
        String sql =
                "SELECT n, id FROM (SELECT n, ARRAY[CAST(MOD(n, 10) AS FLOAT), CAST(0 AS FLOAT)] AS"
                        + " w FROM q_"
                        + table
                        + ") AS o, LATERAL TABLE("
                        + search(table, "o.w", 1, "async", "true")
                        + ")";
        long row = 0;
        try (CloseableIterator<Row> found = env.executeSql(sql).collect()) {
            while (found.hasNext()) {
                assertThat(found.next()).isEqualTo(Row.of(row, row % 10));
                row++;
            }
        }
        assertThat(row).isEqualTo(1000);
    }
}
