package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.proto.v1.FullTextIndex;
import io.lancegateway.proto.v1.VectorIndex;
import io.lancegateway.proto.v1.VectorIndexType;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the search functions make of their options, and of what the gateway says. */
class SearchITCase extends SearchedTables {

    @Test
    void aFilterHoldsBeforeTheSearchUnlessItIsWishedBehind() throws Exception {
        String origin = "'embedding', ARRAY[0.0, 0.0, 0.0, 0.0], 5, 'filter', 'id % 2 = 0'";

        assertThat(ids(nearest(line, origin), nearest(line, origin + ", 'postfilter', 'true'")))
                .containsExactly(List.of(0L, 2L, 4L, 6L, 8L), List.of(0L, 2L, 4L));
    }

    @Test
    void optionsChooseColumnsAPartOfTheRanksAndTheVersion() throws Exception {
        String origin = "'embedding', ARRAY[0.0, 0.0, 0.0, 0.0], 3";

        assertThat(found("*", nearest(line, origin + ", 'columns', 'content, id', 'offset', '2'")))
                .containsExactly("+I[row 2, 2, 16.0]", "+I[row 3, 3, 36.0]", "+I[row 4, 4, 64.0]");
        long empty = versions(line).get(0).getVersion();
        assertThat(versions(line).get(0).getNumRows()).isZero();
        assertThat(
                        ids(
                                nearest(
                                        line,
                                        origin
                                                + ", 'lower-bound', '4', 'vector.metric', 'l2',"
                                                + " 'upper-bound', '36.0'"),
                                nearest(line, origin + ", 'version', '" + empty + "'")))
                .containsExactly(List.of(1L, 2L), List.of());
    }

    @Test
    void rowsWithoutAVectorNeverComeBackNorDoesTheZeroVectorByItsAngle() throws Exception {
        String table = newTable();
        declare(env, table, "id INT, v ARRAY<FLOAT>", "'write.vector-dimensions'='v:2'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " SELECT id, CASE WHEN x < 0 THEN CAST(NULL AS ARRAY<FLOAT>) ELSE"
                        + " CAST(ARRAY[x, 0] AS ARRAY<FLOAT>) END FROM (VALUES (1, -1), (2, 0),"
                        + " (3, 2), (4, -1)) AS t (id, x)");

        assertThat(
                        ids(
                                nearest(table, "'v', ARRAY[1.5, 0.0], 10"),
                                nearest(table, "'v', ARRAY[1.0, 0.0], 10, 'cosine'"),
                                nearest(table, "'v', ARRAY[1.0, 0.0], 9, 'filter', 'id > 4'")))
                .containsExactly(List.of(3L, 2L), List.of(3L), List.of());
        assertThat(found("id, _distance", nearest(table, "'v', ARRAY[1.0, 0.0], 1, 'Dot'")))
                .containsExactly("+I[3, -1.0]");
    }

    @Test
    void columnsOfAnyNameCanBeSearched() throws Exception {
        String table = newTable();
        declare(
                env,
                table,
                "id INT, `a.B` ARRAY<FLOAT>, `it's` ARRAY<FLOAT>, s ROW<`V` ARRAY<FLOAT>>",
                "'write.vector-dimensions'='a.B:2,it''s:2'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, ARRAY[1.0, 0.0], ARRAY[0.0, 1.0], ROW(ARRAY[0.0])),"
                        + " (2, ARRAY[0.0, 1.0], ARRAY[1.0, 0.0], ROW(ARRAY[0.0]))");

        assertThat(
                        ids(
                                nearest(table, "'a.B', ARRAY[1.0, 0.0], 1"),
                                nearest(table, "'it''s', ARRAY[1.0, 0.0], 1")))
                .containsExactly(List.of(1L), List.of(2L));
        assertThatThrownBy(() -> plan(nearest(table, "'A.b', ARRAY[1.0, 0.0], 1")))
                .hasStackTraceContaining("has no column 'A.b'; it has id, a.B, it's, s");
        assertThatThrownBy(() -> plan(nearest(table, "'s.V', ARRAY[1.0], 1")))
                .hasStackTraceContaining("column 's.V' of '" + table + "' is LIST");
    }

    @Test
    void defaultsOfOtherConnectorsMakeNoSearchFailAndWhatIsGivenIsSentAsItIs() throws Exception {
        String table = copyOf(line, "id BIGINT, content STRING, embedding ARRAY<FLOAT>");
        build(
                table,
                index("embedding")
                        .setVector(
                                VectorIndex.newBuilder()
                                        .setType(VectorIndexType.VECTOR_INDEX_TYPE_IVF_HNSW_FLAT)
                                        .setNumPartitions(2))
                        .build());
        String origin = "'embedding', ARRAY[0.0, 0.0, 0.0, 0.0], ";

        List<List<Long>> found =
                ids(
                        nearest(table, origin + "150"),
                        nearest(table, origin + "60, 'refine-factor', '2'"),
                        nearest(table, origin + "3, 'vector.ef', '50', 'nprobes', '2'"));
        assertThat(found.get(0)).hasSize(150);
        assertThat(found.get(1)).hasSize(60);
        assertThat(found.get(2)).containsExactly(0L, 1L, 2L);
        assertThatThrownBy(() -> found("id", nearest(table, origin + "20, 'ef', '10'")))
                .hasStackTraceContaining("ef is 10, less than the 20 candidates that are wanted");
        assertThatThrownBy(() -> found("id", nearest(table, origin + "3, 'COSINE'")))
                .hasStackTraceContaining("METRIC_MISMATCH")
                .hasStackTraceContaining("the query asks for the metric cosine")
                .hasStackTraceContaining("has l2");
    }

    @Test
    void aMetricOfTheIndexHoldsForAQueryThatNamesNone() throws Exception {
        String table = copyOf(line, "id BIGINT, content STRING, embedding ARRAY<FLOAT>");
        build(
                table,
                index("embedding")
                        .setVector(
                                VectorIndex.newBuilder()
                                        .setType(VectorIndexType.VECTOR_INDEX_TYPE_IVF_FLAT)
                                        .setMetric(io.lancegateway.proto.v1.Metric.METRIC_DOT)
                                        .setNumPartitions(1))
                        .build());

        assertThat(found("id", nearest(table, "'embedding', ARRAY[1.0, 0.0, 0.0, 0.0], 2")))
                .containsExactly("+I[255]", "+I[254]");
        assertThatThrownBy(
                        () ->
                                found(
                                        "id",
                                        nearest(
                                                table,
                                                "'embedding', ARRAY[1.0, 0.0, 0.0, 0.0], 2,"
                                                        + " 'L2'")))
                .hasStackTraceContaining("the query asks for the metric l2")
                .hasStackTraceContaining("has dot");
    }

    @Test
    void aQueryThatCannotBeIsRefusedWhenItComes() {
        assertThatThrownBy(() -> found("id", nearest(line, "'embedding', ARRAY[1.0, 2.0], 3")))
                .hasStackTraceContaining("INVALID_ARGUMENT")
                .hasStackTraceContaining("2")
                .hasStackTraceContaining("4");
        assertThatThrownBy(
                        () ->
                                found(
                                        "id",
                                        nearest(
                                                line,
                                                "'embedding', ARRAY[1.0, 2.0, 3.0, 4.0],"
                                                        + " 1000000000")))
                .hasStackTraceContaining("search.max-k");
        assertThatThrownBy(
                        () ->
                                found(
                                        "id",
                                        nearest(
                                                line,
                                                "'embedding', ARRAY[1.0, CAST(NULL AS DOUBLE), 3.0,"
                                                        + " 4.0], 3")))
                .hasStackTraceContaining("element 2 of 4 of the query vector is NULL");
        assertThatThrownBy(
                        () ->
                                found(
                                        "id",
                                        nearest(
                                                line,
                                                "'embedding', ARRAY[1.0, 2.0, 3.0, 4.0], -1")))
                .hasStackTraceContaining("k is -1; it must be 1 or more");
    }

    @Test
    void theBestTextsComeWithTheirScore() throws Exception {
        assertThat(found("id, _score > 0", texts(pages, "'body', 'animal', 10")))
                .containsExactlyInAnyOrder("+I[1, true]", "+I[2, true]");
        assertThat(
                        ids(
                                texts(pages, "'body', 'purrs wheels', 1, 'offset', '1'"),
                                texts(pages, "'body', 'animal purrs', 10, 'operator', 'all'"),
                                texts(pages, "'body', 'that barks', 10, 'phrase', 'true'"),
                                texts(
                                        pages,
                                        "'body', 'animal', 10, 'filter', 'id < 2', 'columns', 'id'"),
                                texts(pages, "'body', CAST(NULL AS STRING), 10")))
                .satisfiesExactly(
                        second -> assertThat(second).hasSize(1),
                        all -> assertThat(all).containsExactly(1L),
                        phrase -> assertThat(phrase).containsExactly(2L),
                        filtered -> assertThat(filtered).containsExactly(1L),
                        none -> assertThat(none).isEmpty());
    }

    @Test
    void textsAreFoundInSeveralColumnsWhichMayWeighMore() throws Exception {
        assertThat(
                        ids(
                                texts(pages, "'title, body', 'cats', 10, 'boost', '10, 0.1'"),
                                texts(pages, "'title, body', 'cats', 10, 'boost', '0.1, 10'")))
                .containsExactly(List.of(1L, 2L), List.of(2L, 1L));
        assertThatThrownBy(() -> plan(texts(pages, "'title, body', 'cats', 10, 'boost', '1'")))
                .hasStackTraceContaining("it must be a number for each of the 2 columns");
        assertThatThrownBy(() -> plan(texts(pages, "'title, id', 'cats', 10")))
                .hasStackTraceContaining("texts are found in columns of strings");
        assertThatThrownBy(() -> plan(texts(pages, "'title', 'cats', 10, 'slop', '1'")))
                .hasStackTraceContaining("option 'slop' has a meaning only with 'phrase'");
        assertThatThrownBy(() -> plan(texts(pages, "'title', 'cats', 10, 'operator', 'or'")))
                .hasStackTraceContaining("it must be any or all");
        assertThatThrownBy(() -> plan(texts(pages, "'title', 'cats', 10, 'nprobes', '1'")))
                .hasStackTraceContaining("there is no option 'nprobes'");
    }

    @Test
    void aFuzzyTextIsFoundByAnIndex() throws Exception {
        String table = copyOf(pages, "id BIGINT, title STRING, body STRING, v ARRAY<FLOAT>");
        assertThatThrownBy(() -> found("id", texts(table, "'body', 'anymal', 9, 'fuzziness', '1'")))
                .hasStackTraceContaining("UNSUPPORTED");
        build(table, index("body").setFullText(FullTextIndex.newBuilder().setStem(false)).build());

        assertThat(found("id", texts(table, "'body', 'anymal', 9, 'fuzziness', '1'")))
                .containsExactlyInAnyOrder("+I[1]", "+I[2]");
    }
}
