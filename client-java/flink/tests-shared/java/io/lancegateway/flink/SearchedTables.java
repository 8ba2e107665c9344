package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.BeforeAll;

/** Tables to search in, and statements that do. */
abstract class SearchedTables extends FlinkAndGateway {

    /** 256 rows in 4 files, with vectors (id, id, id, id). */
    static String line;

    /** Three texts with vectors. */
    static String pages;

    static StreamTableEnvironment env;

    @BeforeAll
    static void fillTables() throws Exception {
        env = withFunctions(batch(1));
        line = newTable();
        declare(
                env,
                line,
                "id BIGINT, content STRING, embedding ARRAY<FLOAT>",
                "'write.max-rows-per-file'='64'");
        numbers(env, "numbers", 0, 255);
        insert(
                env,
                "INSERT INTO "
                        + line
                        + " SELECT n, 'row ' || CAST(n AS STRING), ARRAY[CAST(n AS FLOAT), CAST(n AS"
                        + " FLOAT), CAST(n AS FLOAT), CAST(n AS FLOAT)] FROM numbers");
        pages = newTable();
        declare(env, pages, "id BIGINT, title STRING, body STRING, v ARRAY<FLOAT>");
        insert(
                env,
                "INSERT INTO "
                        + pages
                        + " VALUES (1, 'cats', 'a small animal that purrs', ARRAY[1.0, 0.0]),"
                        + " (2, 'dogs', 'an animal that barks at cats', ARRAY[0.9, 0.3]),"
                        + " (3, 'cars', 'a machine with four wheels', ARRAY[-0.2, 1.0])");
    }

    static StreamTableEnvironment withFunctions(StreamTableEnvironment env) {
        // Since Flink 2.2 a function of its own is called VECTOR_SEARCH.
        env.executeSql(
                "CREATE TEMPORARY FUNCTION nearest AS"
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
    static List<String> found(StreamTableEnvironment env, String sql) throws Exception {
        List<String> rows = new ArrayList<>();
        try (CloseableIterator<Row> result = env.executeSql(sql).collect()) {
            result.forEachRemaining(row -> rows.add(row.toString()));
        }
        return rows;
    }

    /** What a function finds, of the columns that are named. */
    static List<String> found(String columns, String call) throws Exception {
        return found(env, "SELECT " + columns + " FROM TABLE(" + call + ")");
    }

    /** The ids that each call finds, in their order; all calls in one job. */
    static List<List<Long>> ids(String... calls) throws Exception {
        List<List<Long>> ids = new ArrayList<>();
        List<String> parts = new ArrayList<>();
        for (String call : calls) {
            parts.add("SELECT " + ids.size() + ", CAST(id AS BIGINT) FROM TABLE(" + call + ")");
            ids.add(new ArrayList<>());
        }
        try (CloseableIterator<Row> result =
                env.executeSql(String.join(" UNION ALL ", parts)).collect()) {
            result.forEachRemaining(
                    row -> ids.get((int) row.getField(0)).add((Long) row.getField(1)));
        }
        return ids;
    }

    /** A call that tells where the gateway is. */
    static String call(String function, String arguments) {
        return function + "(" + arguments + ", 'gateway.uri', '" + gateway().uri() + "')";
    }

    static String nearest(String table, String arguments) {
        return call("nearest", "'" + table + "', " + arguments);
    }

    static String texts(String table, String arguments) {
        return call("full_text_search", "'" + table + "', " + arguments);
    }

    static void plan(String call) {
        env.explainSql("SELECT * FROM TABLE(" + call + ")");
    }

    static void build(String table, IndexBuild build) throws Exception {
        Job job =
                client().createIndex(
                                CreateIndexRequest.newBuilder()
                                        .setTable(Tables.named(table))
                                        .setBuild(build)
                                        .build());
        assertThat(client().awaitJob(job, step -> {}).getState())
                .isEqualTo(JobState.JOB_STATE_SUCCEEDED);
    }

    static IndexBuild.Builder index(String column) {
        return IndexBuild.newBuilder().setColumn(Column.newBuilder().addPath(column));
    }

    static String copyOf(String table, String columns, String... options) throws Exception {
        String copy = newTable();
        declare(env, copy, columns, options);
        declareAs(env, copy + "_from", table, columns);
        insert(env, "INSERT INTO " + copy + " SELECT * FROM " + copy + "_from");
        return copy;
    }
}
