package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.LanceIndexBuilder.BuiltIndex;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.IndexStatistics;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.Metric;
import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;

/** Indexes from SQL and from programs. */
class IndexITCase extends FlinkAndGateway {

    private static final String COLUMNS = "id BIGINT, word STRING, v ARRAY<FLOAT>";

    @Test
    void functionsOfSqlBuildListOptimizeAndDropIndexes() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        insertVectors(env, table, 1, 300);
        functions(env);

        assertThat(
                        call(
                                env,
                                "create_index('%s', 'v', 'ivf_flat', 'num-partitions', '1',"
                                        + " 'metric', 'Cosine'",
                                table))
                .singleElement()
                .asString()
                .startsWith("+I[v_idx, ")
                .endsWith(", 300, 0, false]");
        assertThat(call(env, "create_index('%s', 'word', 'INVERTED', 'stem', 'false'", table))
                .hasSize(1);
        insertVectors(env, table, 301, 310);
        assertThat(call(env, "list_indexes('%s'", table))
                .hasSize(2)
                .anySatisfy(
                        row -> assertThat(row).contains("v_idx, [v], IVF_FLAT, COSINE, 300, 10"))
                .anySatisfy(row -> assertThat(row).contains("word_idx, [word], INVERTED, null"));
        assertThat(call(env, "optimize_index('%s', 'name', 'v_idx'", table))
                .singleElement()
                .asString()
                .endsWith(", 310, 0, false]");
        // The same words in another statement are another call.
        insertVectors(env, table, 311, 315);
        assertThat(call(env, "optimize_index('%s', 'name', 'v_idx'", table))
                .singleElement()
                .asString()
                .endsWith(", 315, 0, false]");
        assertThat(call(env, "drop_index('%s', 'v_idx'", table)).hasSize(1);
        assertThat(index(table)).extracting(IndexStatistics::getName).containsExactly("word_idx");
    }

    @Test
    void whatCannotBeBuiltIsRefusedWithTheReason() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        insertVectors(env, table, 1, 3);
        functions(env);

        assertThatThrownBy(() -> call(env, "create_index('%s', 'v', 'IVF_X'", table))
                .hasStackTraceContaining("'IVF_X' is no type of index; there are IVF_FLAT");
        assertThatThrownBy(() -> call(env, "create_index('%s', 'v', 'IVF_PQ', 'bits', '8'", table))
                .hasStackTraceContaining("an index of type IVF_PQ has no option 'bits'; it has");
        assertThatThrownBy(() -> call(env, "create_index('%s', 'v', 'IVF_PQ', 'm', 'x'", table))
                .hasStackTraceContaining("option 'm' is 'x'; it must be a whole number");
        assertThatThrownBy(() -> call(env, "create_index('%s', 'w', 'BTREE'", table))
                .hasStackTraceContaining("COLUMN_NOT_FOUND");
        assertThatThrownBy(() -> call(env, "drop_index('%s', 'none'", table))
                .hasStackTraceContaining("INDEX_NOT_FOUND");
        assertThatThrownBy(() -> call(env, "optimize_index('%s', 'names', 'a'", table))
                .hasStackTraceContaining("there is no option 'names'; there is gateway.uri, name");
    }

    @Test
    void aTableGetsTheIndexThatItsOptionsDeclareWithTheMetricOfItsVectors() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                COLUMNS,
                "'index.column'='v'",
                "'index.type'='IVF_FLAT'",
                "'index.num-partitions'='2'",
                "'vector.column'='v'",
                "'vector.metric'='Cosine'");
        insertVectors(env, table, 1, 300);
        awaitJobs(table);

        assertThat(
                        client().describeTable(
                                        DescribeTableRequest.newBuilder()
                                                .setTable(Tables.named(table))
                                                .build())
                                .getPropertiesMap())
                .containsEntry("vector.metric.v", "cosine");
        assertThat(index(table))
                .singleElement()
                .satisfies(
                        index -> {
                            assertThat(index.getName()).isEqualTo("v_idx");
                            assertThat(index.getMetric()).isEqualTo(Metric.METRIC_COSINE);
                            assertThat(index.getNumIndexedRows()).isEqualTo(300);
                        });

        // It is there: another job has nothing to do.
        int jobs = jobs(table).size();
        insertVectors(env, table, 301, 302);
        assertThat(jobs(table)).hasSize(jobs);
    }

    @Test
    void anIndexThatHasTooFewRowsIsBuiltOnceThereAreEnough() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS, "'index.column'='v'", "'index.num-sub-vectors'='2'");
        insertVectors(env, table, 1, 10);
        awaitJobs(table);
        assertThat(index(table)).singleElement().matches(IndexStatistics::getDeferred);

        insertVectors(env, table, 11, 600);
        awaitJobs(table);
        assertThat(index(table))
                .singleElement()
                .matches(index -> !index.getDeferred())
                .extracting(IndexStatistics::getType, IndexStatistics::getNumIndexedRows)
                .containsExactly("IVF_PQ", 600L);
    }

    @Test
    void indexOptionsThatMeanNothingAreRefusedAtPlanning() {
        StreamTableEnvironment env = batch(1);
        assertRefused(env, "'index.type'='IVF_PQ'", "need 'index.column'");
        assertRefused(env, "'index.column'='x'", "'index.column' = 'x' is no column");
        assertRefused(env, "'index.column'='v', 'index.type'='TREE'", "'TREE' is no type of index");
        assertRefused(
                env,
                "'index.column'='id', 'index.type'='BTREE', 'index.m'='4'",
                "an index of type BTREE has no option 'm'");
        assertRefused(
                env, "'index.column'='v', 'vector.metric'='far'", "'far' is no metric: L2, COSINE");
    }

    private static void assertRefused(StreamTableEnvironment env, String options, String why) {
        String table = newTable();
        declare(env, table, COLUMNS, options);
        assertThatThrownBy(() -> env.explainSql("INSERT INTO " + table + " SELECT * FROM " + table))
                .hasStackTraceContaining(why);
    }

    @Test
    void aProgramBuildsAnIndexAndHearsWhyNot() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        insertVectors(env, table, 1, 300);
        LanceIndexBuilder.Builder builder =
                LanceIndexBuilder.builder()
                        .path(table)
                        .gatewayUri(gateway().uri())
                        .column("v")
                        .type("IVF_HNSW")
                        .option("num-partitions", 1)
                        .option("num-sub-vectors", 2);
        BuiltIndex built = builder.build().buildIndex();

        assertThat(built.name()).isEqualTo("v_idx");
        assertThat(built.indexedRows()).isEqualTo(300);
        assertThat(built.isDeferred()).isFalse();
        assertThat(index(table)).singleElement().matches(i -> i.getType().equals("IVF_HNSW_PQ"));
        assertThatThrownBy(() -> builder.build().buildIndex())
                .isInstanceOf(IOException.class)
                .hasMessageContaining("INDEX_ALREADY_EXISTS");
        assertThat(builder.option("replace", true).build().buildIndex().version())
                .isGreaterThan(built.version());
    }

    private static void functions(StreamTableEnvironment env) {
        function(env, "create_index", CreateIndexFunction.class);
        function(env, "optimize_index", OptimizeIndexFunction.class);
        function(env, "drop_index", DropIndexFunction.class);
        function(env, "list_indexes", ListIndexesFunction.class);
    }

    private static void function(StreamTableEnvironment env, String name, Class<?> type) {
        env.executeSql(String.format("CREATE TEMPORARY FUNCTION %s AS '%s'", name, type.getName()));
    }

    private static List<String> call(StreamTableEnvironment env, String call, String table)
            throws Exception {
        return query(
                env,
                String.format(
                        "SELECT * FROM TABLE(" + call + ", 'gateway.uri', '%s'))",
                        table,
                        gateway().uri()));
    }

    private static void insertVectors(StreamTableEnvironment env, String table, int from, int to)
            throws Exception {
        numbers(env, "n_" + table + from, from, to);
        insert(
                env,
                String.format(
                        "INSERT INTO %s SELECT n, 'word ' || CAST(n AS STRING), ARRAY[CAST(n AS"
                                + " FLOAT), CAST(n * 7 %% 31 AS FLOAT), CAST(n * 13 %% 17 AS FLOAT),"
                                + " CAST(1 AS FLOAT)] FROM n_%s%d",
                        table, table, from));
    }

    private static List<IndexStatistics> index(String table) {
        return client().listIndexes(Tables.named(table));
    }

    private static List<Job> jobs(String table) {
        return client().listJobs().stream()
                .filter(job -> job.getTable().equals(Tables.named(table)))
                .collect(Collectors.toList());
    }

    private static void awaitJobs(String table) throws InterruptedException {
        List<Job> jobs = jobs(table);
        assertThat(jobs).isNotEmpty();
        for (Job job : jobs) {
            client().awaitJob(job, step -> {});
        }
    }
}
