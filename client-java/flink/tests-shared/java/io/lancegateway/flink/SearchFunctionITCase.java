package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The search functions as Flink plans and runs them, and the search of Java programs. */
class SearchFunctionITCase extends SearchedTables {

    @Test
    void theNearestRowsComeWithTheirDistance() throws Exception {
        assertThat(found("*", nearest(line, "'embedding', ARRAY[1.0, 1.0, 1.0, 1.5], 2")))
                .containsExactly(
                        "+I[1, row 1, [1.0, 1.0, 1.0, 1.0], 0.25]",
                        "+I[2, row 2, [2.0, 2.0, 2.0, 2.0], 3.25]");
    }

    @Test
    void aQueryMayHaveNumbersOfAnyType() throws Exception {
        assertThat(
                        ids(
                                nearest(line, "'embedding', ARRAY[7, 7, 7, 7], 1"),
                                nearest(line, "'embedding', ARRAY[7, 7, 7, 7.3], 1"),
                                nearest(
                                        line,
                                        "'embedding', CAST(ARRAY[7, 7, 7, 7] AS ARRAY<DOUBLE>), 1"),
                                nearest(
                                        line,
                                        "'embedding', CAST(ARRAY[7, 7, 7, 7] AS ARRAY<FLOAT>), 1"),
                                nearest(
                                        line,
                                        "'embedding', CAST(ARRAY[7, 7, 7, 7] AS ARRAY<BIGINT>),"
                                                + " CAST(1 AS SMALLINT)")))
                .containsOnly(List.of(7L));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void eachRowOfALeftTableSearchesAndRowsThatAreKeptStayWhatTheyWere(boolean streaming)
            throws Exception {
        StreamTableEnvironment env = withFunctions(streaming ? streaming(2) : batch(2));
        String queries =
                "(VALUES (1, CAST(ARRAY[0.1, 0.0, 0.0, 0.0] AS ARRAY<FLOAT>)), (2, ARRAY[200.0, 200.0,"
                        + " 200.0, 200.1]), (3, CAST(NULL AS ARRAY<FLOAT>))) AS q (id, v)";
        String call = nearest(line, "'embedding', q.v, 3, 'L2'");

        assertThat(
                        query(
                                env,
                                "SELECT q.id, v.id, v.content, v.embedding FROM "
                                        + queries
                                        + ", LATERAL TABLE("
                                        + call
                                        + ") AS v"))
                .containsExactly(
                        "+I[1, 0, row 0, [0.0, 0.0, 0.0, 0.0]]",
                        "+I[1, 1, row 1, [1.0, 1.0, 1.0, 1.0]]",
                        "+I[1, 2, row 2, [2.0, 2.0, 2.0, 2.0]]",
                        "+I[2, 199, row 199, [199.0, 199.0, 199.0, 199.0]]",
                        "+I[2, 200, row 200, [200.0, 200.0, 200.0, 200.0]]",
                        "+I[2, 201, row 201, [201.0, 201.0, 201.0, 201.0]]");
        if (!streaming) {
            // The sort holds all rows before it gives the first.
            assertThat(
                            found(
                                    env,
                                    "SELECT q.id, v.content FROM "
                                            + queries
                                            + " LEFT JOIN LATERAL TABLE("
                                            + call
                                            + ") AS v ON TRUE ORDER BY q.id DESC, v.content"))
                    .containsExactly(
                            "+I[3, null]",
                            "+I[2, row 199]",
                            "+I[2, row 200]",
                            "+I[2, row 201]",
                            "+I[1, row 0]",
                            "+I[1, row 1]",
                            "+I[1, row 2]");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "'no', ARRAY[1.0], 3 | has no column 'no'; it has id, content, embedding",
                "'content', ARRAY[1.0], 3 | column 'content' of",
                "'embedding', 'text', 3 | The argument 'query' must be an array of numbers",
                "'embedding', ARRAY['a'], 3 | The argument 'query' must be an array of numbers",
                "'embedding', ARRAY[1.0], 'x' | The argument 'k' must be a whole number",
                "'embedding', ARRAY[1.0], 3, 'near' | 'near' is no metric: L2, COSINE, DOT or HAMMING",
                "UPPER('e'), ARRAY[1.0], 3 | the argument 'column' must be a literal",
                "'embedding', ARRAY[1.0], 3, UPPER('l2') | the argument 'metric' must be a literal",
                "'embedding', ARRAY[1.0], 3, 'ef', UPPER('1') | the value of option 'ef' must be a"
                        + " literal",
                "'embedding', ARRAY[1.0], 3, 'probes', '1' | there is no option 'probes'; there are"
                        + " columns, ef, exact, filter, gateway.uri, lower-bound, metric,",
                "'embedding', ARRAY[1.0], 3, 'vector.slop', '1' | there is no option 'vector.slop'",
                "'embedding', ARRAY[1.0], 3, 'ef', '0' | option 'ef' is '0'; it must be a whole number"
                        + " of 1 to 2147483647",
                "'embedding', ARRAY[1.0], 3, 'ef', '5', 'vector.ef', '6' | option 'ef' is given twice",
                "'embedding', ARRAY[1.0], 3, 'l2', 'metric', 'l2' | the metric is given twice",
                "'embedding', ARRAY[1.0], 3, 'postfilter', 'maybe' | it must be true or false",
                "'embedding', ARRAY[1.0], 3, 'columns', 'id,no' | has no column 'no'",
                "'embedding', ARRAY[1.0], 3, 'version', '99' | has no version 99",
                "'embedding', ARRAY[1.0], 3, 's3-secret-key', 'x' | keys do not belong there"
            })
    void aCallThatCannotBeIsRefusedWhenItIsPlanned(String arguments, String message) {
        assertThatThrownBy(() -> plan(nearest(line, arguments))).hasStackTraceContaining(message);
    }

    @Test
    void aTableThatIsNotThereOrIsNoLiteralIsRefusedWhenItIsPlanned() {
        assertThatThrownBy(() -> plan(nearest("nowhere", "'v', ARRAY[1.0], 1")))
                .hasStackTraceContaining("there is no table nowhere");
        assertThatThrownBy(() -> plan(call("nearest", "UPPER('t'), 'v', ARRAY[1.0], 1")))
                .hasStackTraceContaining("the argument 'path' must be a literal");
    }

    @Test
    void vectorsAndTextsMakeOneRanking() throws Exception {
        String both = "'" + pages + "', 'v', ARRAY[1.0, 0.0], 'body', 'barks', 2";

        assertThat(
                        found(
                                "id, _distance < 1, _score > 0, _relevance_score > 0",
                                call("hybrid_search", both)))
                .containsExactly("+I[2, true, true, true]", "+I[1, true, null, true]");
        assertThat(
                        found(
                                "id",
                                call(
                                        "hybrid_search",
                                        both
                                                + ", 'text-weight', '0', 'rrf-k', '1', 'candidates',"
                                                + " '3', 'metric', 'L2'")))
                .containsExactly("+I[1]", "+I[2]");
        assertThat(
                        query(
                                env,
                                "SELECT q.id, r.id FROM (VALUES (1, ARRAY[1.0, 0.0], 'purrs'), (2,"
                                        + " ARRAY[0.0, 1.0], 'wheels'), (3, ARRAY[0.0, 1.0],"
                                        + " CAST(NULL AS STRING))) AS q (id, v, t), LATERAL TABLE("
                                        + call(
                                                "hybrid_search",
                                                "'" + pages + "', 'v', q.v, 'body', q.t, 1")
                                        + ") AS r"))
                .containsExactly("+I[1, 1]", "+I[2, 3]");
    }

    @Test
    void programsSearchWithoutSql() throws Exception {
        try (LanceVectorSearch search =
                LanceVectorSearch.builder()
                        .path(line)
                        .column("embedding")
                        .metric(Metric.L2)
                        .nprobes(10)
                        .ef(50)
                        .refineFactor(2)
                        .columns(List.of("id"))
                        .filter("id > 1")
                        .gatewayUri(gateway().uri())
                        .build()) {
            assertThat(search.rowType().getFieldNames()).containsExactly("id", "_distance");
            List<RowData> rows = search.search(new float[4], 2);
            List<RowData> others = search.search(new float[4], 1, "id > 9");

            assertThat(rows).extracting(row -> row.getLong(0)).containsExactly(2L, 3L);
            assertThat(rows).extracting(row -> row.getDouble(1)).containsExactly(16.0, 36.0);
            assertThat(others).extracting(row -> row.getLong(0)).containsExactly(10L);
            assertThatThrownBy(() -> search.search(new float[3], 2))
                    .hasMessageContaining("3")
                    .hasMessageContaining("4");
        }
    }
}
