package io.lancegateway.flink.testing;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.Tables;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.TableVersion;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.runtime.testutils.InMemoryReporter;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A Flink cluster in this process, and a real gateway beside it. */
@NeedsGateway
public abstract class FlinkAndGateway {

    private static InMemoryReporter metrics;

    @RegisterExtension
    static final MiniClusterExtension FLINK =
            new MiniClusterExtension(
                    () -> {
                        metrics = InMemoryReporter.createWithRetainedMetrics();
                        return new MiniClusterResourceConfiguration.Builder()
                                .setConfiguration(metrics.addToConfiguration(new Configuration()))
                                .setNumberTaskManagers(1)
                                .setNumberSlotsPerTaskManager(4)
                                .build();
                    });

    private static GatewayProcess gateway;
    private static GatewayClient client;

    @BeforeAll
    static void startGateway() {
        gateway = GatewayProcess.start();
        client = gateway.connect();
    }

    @AfterAll
    static void stopGateway() {
        client.close();
        gateway.close();
    }

    protected static GatewayProcess gateway() {
        return gateway;
    }

    protected static GatewayClient client() {
        return client;
    }

    /** Metrics of all jobs of the cluster, also of those that have ended. */
    protected static InMemoryReporter metrics() {
        return metrics;
    }

    /** A name that no other test uses. */
    protected static String newTable() {
        return "t_" + UUID.randomUUID().toString().replace('-', '_');
    }

    protected static StreamTableEnvironment batch(int parallelism) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setRuntimeMode(RuntimeExecutionMode.BATCH);
        env.setParallelism(parallelism);
        StreamTableEnvironment tables =
                StreamTableEnvironment.create(
                        env, EnvironmentSettings.newInstance().inBatchMode().build());
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        return tables;
    }

    protected static StreamTableEnvironment streaming(int parallelism) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(parallelism);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        return tables;
    }

    /** Two at once; what fails starts again. */
    protected static StreamExecutionEnvironment restarting() {
        Configuration restarts = new Configuration();
        restarts.setString("restart-strategy.type", "fixed-delay");
        restarts.setString("restart-strategy.fixed-delay.attempts", "3");
        restarts.setString("restart-strategy.fixed-delay.delay", "10 ms");
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(restarts);
        env.setParallelism(2);
        return env;
    }

    /** Declares a source of the numbers {@code from..to} in a column {@code n}. */
    protected static void numbers(StreamTableEnvironment env, String name, long from, long to) {
        env.executeSql(
                String.format(
                        "CREATE TEMPORARY TABLE %s (n BIGINT) WITH ('connector'='datagen',"
                                + " 'number-of-rows'='%d', 'fields.n.kind'='sequence',"
                                + " 'fields.n.start'='%d', 'fields.n.end'='%d')",
                        name, to - from + 1, from, to));
    }

    /** Declares a table of the gateway under its own name. */
    protected static void declare(
            StreamTableEnvironment env, String table, String columns, String... options) {
        declareAs(env, table, table, columns, options);
    }

    /** Declares a table of the gateway under another name. */
    protected static void declareAs(
            StreamTableEnvironment env,
            String name,
            String table,
            String columns,
            String... options) {
        StringBuilder with = new StringBuilder("'connector'='lance'");
        with.append(", 'path'='").append(table).append("'");
        with.append(", 'gateway.uri'='").append(gateway.uri()).append("'");
        for (String option : options) {
            with.append(", ").append(option);
        }
        env.executeSql(
                String.format("CREATE TEMPORARY TABLE %s (%s) WITH (%s)", name, columns, with));
    }

    /** Runs an INSERT to its end. */
    protected static void insert(StreamTableEnvironment env, String sql) throws Exception {
        env.executeSql(sql).await();
    }

    /** All rows of a query, as text, sorted. */
    protected static List<String> query(StreamTableEnvironment env, String sql) throws Exception {
        List<String> rows = new ArrayList<>();
        try (CloseableIterator<Row> found = env.executeSql(sql).collect()) {
            found.forEachRemaining(row -> rows.add(row.toString()));
        }
        rows.sort(null);
        return rows;
    }

    protected static long count(String table) {
        return client.countRows(CountRowsRequest.newBuilder().setTable(Tables.named(table)).build())
                .getNumRows();
    }

    /** The history of a table, oldest first. */
    protected static List<TableVersion> versions(String table) {
        List<TableVersion> versions =
                new ArrayList<>(
                        client.listVersions(
                                        ListVersionsRequest.newBuilder()
                                                .setTable(Tables.named(table))
                                                .build())
                                .getVersionsList());
        Collections.reverse(versions);
        return versions;
    }

    /** A metric of an operator, of all its subtasks together. */
    protected static long sum(JobID job, String operator, String name) {
        return metrics(job, operator, name).stream().mapToLong(FlinkAndGateway::value).sum();
    }

    protected static List<Metric> metrics(JobID job, String operator, String name) {
        return metrics().findOperatorMetricGroups(job, operator).stream()
                .map(group -> metrics().getMetricsByGroup(group).get(name))
                .filter(Objects::nonNull)
                .collect(Collectors.toList());
    }

    protected static long value(Metric metric) {
        return metric instanceof Counter
                ? ((Counter) metric).getCount()
                : ((Number) ((Gauge<?>) metric).getValue()).longValue();
    }
}
