package io.lancegateway.flink.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the planner hands to the gateway. No gateway is needed to plan. */
class PlanTest {

    private static final String COLUMNS =
            "id BIGINT, small SMALLINT, status STRING, topic VARCHAR(20), code CHAR(3), flag BOOLEAN,"
                    + " f FLOAT, d DOUBLE, price DECIMAL(10, 2), dt DATE, t TIME, ts TIMESTAMP(3),"
                    + " ltz TIMESTAMP_LTZ(3), bin BYTES, vector ARRAY<FLOAT>,"
                    + " r ROW<x INT, y STRING>";

    private static TableEnvironment env;

    @BeforeAll
    static void setUp() {
        env = TableEnvironment.create(EnvironmentSettings.inBatchMode());
        env.getConfig().set("table.local-time-zone", "UTC");
        create("t", "");
    }

    private static void create(String name, String options) {
        env.executeSql("DROP TABLE IF EXISTS " + name);
        env.executeSql(
                String.format(
                        "CREATE TABLE %s (%s) WITH ('connector'='lance', 'path'='db.t'%s)",
                        name, COLUMNS, options));
    }

    private static String plan(String sql) {
        return env.explainSql(sql, ExplainDetail.JSON_EXECUTION_PLAN)
                .replaceAll("(?s).*== Optimized Execution Plan ==", "")
                .replaceAll("(?s)== Physical Execution Plan ==.*", "");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "id = 5",
                "id > 5 AND id <= 10",
                "5 < id",
                "small = 7",
                "status = 'active' OR status = 'archived'",
                "(status = 'active' AND id = 1) OR status = 'archived'",
                "NOT (id = 5 OR status = 'x')",
                "id IN (1, 2, 3)",
                "id BETWEEN 3 AND 9",
                "id NOT BETWEEN 3 AND 9",
                "status IS NULL",
                "status IS NOT NULL",
                "flag",
                "NOT flag",
                "flag IS TRUE",
                "flag IS NOT TRUE",
                "status LIKE 'a%'",
                "status NOT LIKE '%b%'",
                "topic = 'x'",
                "price = 12.5",
                "price < 100",
                "dt >= DATE '2024-01-01'",
                "ts >= TIMESTAMP '2024-01-01 00:00:00'",
                "ts = TIMESTAMP '1969-12-31 23:59:59.500'",
                "f = 0.5",
                "d <> 0.1",
                "bin = x'0102'",
                "vector IS NOT NULL"
            })
    void anExactConditionIsLeftToTheGatewayAlone(String condition) {
        String plan = plan("SELECT id FROM t WHERE " + condition);

        assertThat(plan).contains("filter=[").doesNotContain("where=[");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "id + 1 = 5",
                "id = small",
                "CHAR_LENGTH(status) = 3",
                "code = 'abc'",
                "t = TIME '10:00:00'",
                "small = 100000",
                "price = 12.345",
                "f = 0.1",
                "d = 0.0",
                "d >= 0.0",
                "status LIKE 'a\\b%'",
                "ts = TIMESTAMP '2024-01-01 00:00:00.0001'",
                "id = 1 OR CHAR_LENGTH(status) = 3"
            })
    void aConditionWithAnotherMeaningThereStaysInFlink(String condition) {
        String plan = plan("SELECT id FROM t WHERE " + condition);

        assertThat(plan).doesNotContainPattern("filter=\\[[^\\]]").containsPattern("where=|Values");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "d > 1.5",
                "f BETWEEN 0.5 AND 2.5",
                "status LIKE 'a_'",
                "(id = 1 AND CHAR_LENGTH(status) = 3) OR id = 2"
            })
    void aConditionThatTheGatewayTakesTooGenerouslyIsCheckedAgain(String condition) {
        String plan = plan("SELECT id FROM t WHERE " + condition);

        assertThat(plan).containsPattern("filter=\\[[^\\]]").contains("where=[");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ltz >= CAST(TIMESTAMP '2024-01-01 05:30:00' AS TIMESTAMP_LTZ(3))",
                "ltz >= TO_TIMESTAMP_LTZ(1704067200000, 3)"
            })
    void anInstantIsComparedAsAnInstantInEverySessionZone(String condition) {
        env.getConfig().set("table.local-time-zone", "Asia/Kolkata");
        try {
            String plan = plan("SELECT id FROM t WHERE " + condition);

            assertThat(plan).contains("filter=[>=(ltz, 2024-01-01 00:00:00");
        } finally {
            env.getConfig().set("table.local-time-zone", "UTC");
        }
    }

    @Test
    void onlyTheColumnsOfTheStatementAreRead() {
        assertThat(plan("SELECT status, id FROM t")).contains("project=[status, id]");
    }

    @Test
    void onlyTheFieldsOfTheStatementAreRead() {
        assertThat(plan("SELECT t.r.y FROM t")).contains("project=[r_y]");
    }

    @Test
    void aLimitIsPushedDown() {
        assertThat(plan("SELECT id FROM t LIMIT 10")).contains("limit=[10]");
    }

    @Test
    void aLimitBehindAConditionOfFlinkIsNot() {
        assertThat(plan("SELECT id FROM t WHERE CHAR_LENGTH(status) = 3 LIMIT 10"))
                .doesNotContain("limit=[10]]");
    }

    @Test
    void countingRowsReadsNone() {
        assertThat(plan("SELECT COUNT(*) FROM t WHERE id > 5"))
                .contains("aggregates=[grouping=[], aggFunctions=[Count1AggFunction()]]");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "SELECT COUNT(status) FROM t",
                "SELECT COUNT(*) FROM t GROUP BY status",
                "SELECT SUM(id) FROM t",
                "SELECT COUNT(*) FROM t WHERE d > 1.5",
                "SELECT COUNT(DISTINCT id) FROM t"
            })
    void otherAggregatesReadRows(String sql) {
        assertThat(plan(sql)).doesNotContain("aggregates=[grouping");
    }

    @Test
    void aStaticFilterOrLimitComesBeforeTheCondition() {
        create("filtered", ", 'read.filter'='id > 3'");
        create("limited", ", 'read.limit'='3'");

        assertThat(plan("SELECT id FROM filtered WHERE id < 9")).contains("where=[");
        assertThat(plan("SELECT id FROM limited WHERE id < 9")).contains("where=[");
        assertThat(plan("SELECT COUNT(*) FROM limited")).doesNotContain("aggregates=[grouping");
    }

    @Test
    void everyOptionOfAnOldTableIsTaken() {
        create(
                "present",
                ", 'read.batch-size'='512', 'read.columns'='id, status', 'read.version'='3',"
                        + " 'read.as-of-timestamp'='2024-01-01', 'source.mode'='batch',"
                        + " 'source.discovery-interval'='10000', 'write.batch-size'='1024',"
                        + " 'write.mode'='OVERWRITE', 'write.max-rows-per-file'='1000',"
                        + " 'write.memory-cap-bytes'='-1', 'write.large-string-columns'='status',"
                        + " 'write.data-storage-version'='2.2', 'index.type'='IVF_PQ',"
                        + " 'index.column'='vector', 'index.num-partitions'='256',"
                        + " 'index.num-sub-vectors'='16', 'index.num-bits'='8',"
                        + " 'index.max-level'='7', 'index.m'='16', 'index.ef-construction'='100',"
                        + " 'vector.column'='vector', 'vector.metric'='Cosine',"
                        + " 'vector.nprobes'='20', 'vector.ef'='100', 'vector.refine-factor'='2',"
                        + " 's3-access-key'='k', 's3-secret-key'='planted-secret',"
                        + " 's3-session-token'='planted-secret', 's3-region'='r',"
                        + " 's3-endpoint'='http://e', 's3-virtual-hosted-style'='true',"
                        + " 's3-allow-http'='false', 'hadoop.fs.defaultFS'='hdfs://n',"
                        + " 'gateway.uri'='grpc://h:1', 'scan.parallelism'='2',"
                        + " 'sink.parallelism'='2'");

        assertThat(plan("SELECT id FROM present"))
                .contains("project=[id]")
                .doesNotContain("planted-secret");
        assertThat(plan("INSERT INTO present SELECT * FROM t"))
                .contains("Sink(table=")
                .doesNotContain("planted-secret");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'read.limit'='-1' | 'read.limit' must not be negative",
                "'read.batch-size'='0' | 'read.batch-size' must be positive",
                "'read.version'='0' | 'read.version' must be positive",
                "'read.as-of-timestamp'='soon' | 'soon' is no ISO-8601 time",
                "'read.columns'='id,nope' | 'read.columns' names 'nope'",
                "'no.such'='1' | Unsupported options found"
            })
    void aWrongReadOptionFailsWhenPlanned(String option, String message) {
        create("wrong", ", " + option);

        assertThatThrownBy(() -> plan("SELECT * FROM wrong")).hasStackTraceContaining(message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'write.mode'='merge' | write.mode",
                "'write.large-string-columns'='id' | names 'id', which is no STRING column",
                "'write.vector-dimensions'='id:3' | names 'id', which is no ARRAY<FLOAT> column",
                "'write.vector-dimensions'='vector:0' | the length '0', which is no number",
                "'write.vector-dimensions'='vector:wide' | the length 'wide', which is no number",
                "'write.max-rows-per-file'='0' | 'write.max-rows-per-file' must be positive"
            })
    void aWrongWriteOptionFailsWhenPlanned(String option, String message) {
        create("wrong", ", " + option);

        assertThatThrownBy(() -> plan("INSERT INTO wrong SELECT * FROM t"))
                .hasStackTraceContaining(message);
    }

    @Test
    void aTypeThatNoTableHoldsFailsWhenPlanned() {
        env.createTemporaryTable(
                "odd",
                TableDescriptor.forConnector("lance")
                        .schema(
                                Schema.newBuilder()
                                        .column("i", DataTypes.INTERVAL(DataTypes.YEAR()))
                                        .build())
                        .option("path", "odd")
                        .build());

        assertThatThrownBy(() -> plan("SELECT * FROM odd"))
                .hasStackTraceContaining("column 'i': a Lance table cannot hold INTERVAL YEAR");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "2.0 | MAP<STRING, INT> | MAP<STRING, INT>",
                "2.1 | MULTISET<INT> | MULTISET<INT>",
                "2.1 | ARRAY<ROW<a MAP<INT, INT>>> | ARRAY<ROW<`a` MAP<INT, INT>>>"
            })
    void aMapFailsWhenPlannedForAnOldStorageVersion(String storage, String type, String named) {
        env.executeSql("DROP TABLE IF EXISTS maps");
        env.executeSql(
                String.format(
                        "CREATE TABLE maps (id INT, m %s) WITH ('connector'='lance', 'path'='m',"
                                + " 'write.data-storage-version'='%s')",
                        type, storage));

        assertThatThrownBy(() -> plan("INSERT INTO maps SELECT * FROM maps"))
                .hasStackTraceContaining(
                        "column 'm': " + named + " needs data storage version 2.2, not " + storage);
        assertThat(plan("SELECT * FROM maps")).contains("fields=[id, m]");
    }

    @Test
    void changesAreRefusedWhenPlanned() {
        env.executeSql(
                "CREATE TABLE sums (id BIGINT, n BIGINT) WITH ('connector'='lance', 'path'='s')");
        TableEnvironment streaming = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        streaming.executeSql("CREATE TABLE source (id BIGINT) WITH ('connector'='datagen')");
        streaming.executeSql(
                "CREATE TABLE sums (id BIGINT, n BIGINT) WITH ('connector'='lance', 'path'='s')");

        assertThatThrownBy(
                        () ->
                                streaming.explainSql(
                                        "INSERT INTO sums SELECT id, COUNT(*) FROM source GROUP BY"
                                                + " id"))
                .hasStackTraceContaining("doesn't support consuming update changes");
    }

    @Test
    void anEndlessInsertWithoutCheckpointsIsRefused() {
        TableEnvironment streaming = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        streaming.executeSql("CREATE TABLE source (id BIGINT) WITH ('connector'='datagen')");
        streaming.executeSql(
                "CREATE TABLE target (id BIGINT) WITH ('connector'='lance', 'path'='s')");

        assertThatThrownBy(() -> streaming.executeSql("INSERT INTO target SELECT id FROM source"))
                .hasStackTraceContaining("set 'execution.checkpointing.interval'");
    }
}
