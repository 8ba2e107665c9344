package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.BatchStream;
import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.ScanSplit;
import io.lancegateway.client.Tables;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.TableVersion;
import java.time.Instant;
import java.util.List;
import java.util.TimeZone;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** SELECT through SQL. */
class ReadITCase extends FlinkAndGateway {

    private static final String PUSH_DOWN = "table.optimizer.source.predicate-pushdown-enabled";

    @Test
    void aPlannedScanReadsItsVersionWhateverIsCommittedMeanwhile() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT");
        insertNumbers(env, table, 1, 100);
        ScanPlan plan =
                client().plan(ScanRequest.newBuilder().setTable(Tables.named(table)).build());

        insertNumbers(env, table, 101, 150);
        insert(env, "INSERT OVERWRITE " + table + " SELECT id FROM " + table + " WHERE id > 10");

        long rows = 0;
        for (ScanSplit split : plan.splits()) {
            try (BatchStream stream = client().read(split.ticket(), 0)) {
                for (ArrowBatch batch = stream.next(); batch != null; batch = stream.next()) {
                    rows += batch.rows();
                }
            }
        }
        assertThat(rows).isEqualTo(100);
        assertThat(count(table)).isEqualTo(140);
    }

    @Test
    void aVersionOrATimeChoosesWhatIsRead() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT");
        insertNumbers(env, table, 1, 3);
        TableVersion first = versions(table).get(versions(table).size() - 1);
        Instant committed =
                Instant.ofEpochSecond(
                        first.getCommittedAt().getSeconds(), first.getCommittedAt().getNanos());
        insertNumbers(env, table, 4, 5);

        assertThat(query(env, "SELECT COUNT(*) FROM " + table)).containsExactly("+I[5]");
        assertThat(
                        query(
                                env,
                                "SELECT id FROM "
                                        + table
                                        + " /*+ OPTIONS('read.version'='"
                                        + first.getVersion()
                                        + "') */"))
                .hasSize(3);
        assertThat(
                        query(
                                env,
                                "SELECT COUNT(*) FROM "
                                        + table
                                        + " /*+ OPTIONS('read.as-of-timestamp'='"
                                        + committed
                                        + "') */"))
                .containsExactly("+I[3]");
        // The time alone is refused, see below: the version wins.
        assertThat(
                        query(
                                env,
                                "SELECT COUNT(*) FROM "
                                        + table
                                        + " /*+ OPTIONS('read.version'='"
                                        + first.getVersion()
                                        + "', 'read.as-of-timestamp'='2001-01-01') */"))
                .containsExactly("+I[3]");
        assertThatThrownBy(
                        () ->
                                query(
                                        env,
                                        "SELECT id FROM "
                                                + table
                                                + " /*+ OPTIONS('read.as-of-timestamp'='2001-01-01')"
                                                + " */"))
                .hasStackTraceContaining("TABLE_VERSION_NOT_FOUND");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "(status = 'active' AND id = 1) OR status = 'archived'",
                "NOT (status = 'active')",
                "status IS NULL",
                "status IS NOT NULL AND id IN (2, 3, 9)",
                "id BETWEEN 2 AND 3",
                "id NOT BETWEEN 2 AND 3",
                "status LIKE 'a%e'",
                "status LIKE '_ctive'",
                "status NOT LIKE 'act%'",
                "score > CAST(1.5 AS DOUBLE)",
                // For Flink 1.20, and for it alone, NaN is greater than a DECIMAL.
                "id < 4 AND score > 1.5",
                "score <= 0.0",
                "score = 1.5",
                "score <> 1.5",
                "NOT flag",
                "flag IS NOT TRUE",
                "flag IS FALSE",
                "price = 1.50",
                "price < 2",
                "dt >= DATE '2024-01-01'",
                "ts >= TIMESTAMP '2024-01-01 00:00:00' AND ts < TIMESTAMP '2024-02-01 00:00:00.5'",
                "t > TIME '10:00:00'",
                "bin = x'01'",
                "bin <> x'01'",
                "code = 'ab '",
                "nested.x = 1",
                "nested.x IS NULL",
                "nested.x IS NOT NULL AND nested.y = 'p'",
                "nested IS NULL",
                "vector IS NULL",
                "id > 1 AND CHAR_LENGTH(status) = 6",
                "(id = 1 AND CHAR_LENGTH(status) = 6) OR id = 4"
            })
    void aConditionKeepsTheSameRowsInTheGatewayAndInFlink(String condition) throws Exception {
        StreamTableEnvironment env = batch(1);
        declareAs(
                env,
                "t",
                filterTable(),
                "id BIGINT, status STRING, flag BOOLEAN, score DOUBLE, price DECIMAL(8, 2), dt DATE,"
                        + " t TIME, ts TIMESTAMP(3), bin BYTES, code CHAR(3),"
                        + " nested ROW<x INT, y STRING>, vector ARRAY<FLOAT>");
        String sql = "SELECT id FROM t WHERE " + condition;
        List<String> pushed = query(env, sql);
        env.getConfig().set(PUSH_DOWN, "false");

        assertThat(pushed).isEqualTo(query(env, sql));
    }

    private static String filterTable;

    private static String filterTable() throws Exception {
        if (filterTable != null) {
            return filterTable;
        }
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id BIGINT, status STRING, flag BOOLEAN, score DOUBLE, price DECIMAL(8, 2), dt DATE,"
                        + " t TIME, ts TIMESTAMP(3), bin BYTES, code CHAR(3),"
                        + " nested ROW<x INT, y STRING>, vector ARRAY<FLOAT>");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, 'active', TRUE, 1.5, 1.5, DATE '2024-01-01',"
                        + " TIME '10:00:00', TIMESTAMP '2024-01-01 00:00:00', x'01', CAST('abc' AS CHAR(3)),"
                        + " CAST(ROW(1, 'p') AS ROW<x INT, y STRING>), ARRAY[CAST(1 AS FLOAT)]),"
                        + " (2, 'active', FALSE, -1.5, 2.0, DATE '2023-12-31',"
                        + " TIME '23:59:59', TIMESTAMP '2023-12-31 23:59:59.999', x'0102', CAST('ab' AS CHAR(3)),"
                        + " CAST(ROW(CAST(NULL AS INT), 'p') AS ROW<x INT, y STRING>),"
                        + " ARRAY[CAST(2 AS FLOAT)]),"
                        + " (3, 'archived', CAST(NULL AS BOOLEAN), 0.0, -1.5, CAST(NULL AS DATE),"
                        + " CAST(NULL AS TIME), CAST(NULL AS TIMESTAMP(3)), x'', CAST('x' AS CHAR(3)),"
                        + " CAST(NULL AS ROW<x INT, y STRING>), CAST(NULL AS ARRAY<FLOAT>)),"
                        + " (4, CAST(NULL AS STRING), TRUE, CAST('NaN' AS DOUBLE),"
                        + " CAST(NULL AS DECIMAL(8, 2)), DATE '1969-12-31', TIME '00:00:00',"
                        + " TIMESTAMP '1969-12-31 23:59:59.500', CAST(NULL AS BYTES),"
                        + " CAST(NULL AS CHAR(3)),"
                        + " CAST(ROW(CAST(NULL AS INT), CAST(NULL AS STRING)) AS"
                        + " ROW<x INT, y STRING>), ARRAY[CAST(4 AS FLOAT)])");
        filterTable = table;
        return table;
    }

    @Test
    void orBindsWeakerThanAnd() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, status STRING");
        insert(
                env,
                "INSERT INTO " + table + " VALUES (1, 'active'), (2, 'active'), (3, 'archived')");

        assertThat(
                        query(
                                env,
                                "SELECT id FROM "
                                        + table
                                        + " WHERE (status='active' AND id=1) OR status='archived'"))
                .containsExactly("+I[1]", "+I[3]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"America/Los_Angeles", "Asia/Kolkata"})
    void timesAreComparedAlikeInEveryZone(String zone) throws Exception {
        TimeZone before = TimeZone.getDefault();
        TimeZone.setDefault(TimeZone.getTimeZone(zone));
        try {
            String table = newTable();
            StreamTableEnvironment env = batch(1);
            declare(env, table, "id INT, ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3)");
            insert(
                    env,
                    "INSERT INTO "
                            + table
                            + " SELECT id, CAST(TO_TIMESTAMP_LTZ(ms, 3) AS TIMESTAMP(3)),"
                            + " TO_TIMESTAMP_LTZ(ms, 3) FROM (VALUES (1, 1704067199000),"
                            + " (2, 1704067200000), (3, -500)) AS t(id, ms)");

            assertThat(
                            query(
                                    env,
                                    "SELECT id FROM "
                                            + table
                                            + " WHERE ts >= TIMESTAMP '2024-01-01 00:00:00'"))
                    .containsExactly("+I[2]");
            assertThat(
                            query(
                                    env,
                                    "SELECT id FROM "
                                            + table
                                            + " WHERE ltz >= TO_TIMESTAMP_LTZ(1704067200000, 3)"))
                    .containsExactly("+I[2]");
            assertThat(
                            query(
                                    env,
                                    "SELECT id FROM "
                                            + table
                                            + " WHERE ts = TIMESTAMP '1969-12-31 23:59:59.500'"))
                    .containsExactly("+I[3]");
            assertThat(
                            query(
                                    env,
                                    "SELECT id FROM "
                                            + table
                                            + " WHERE ltz = TO_TIMESTAMP_LTZ(-500, 3)"))
                    .containsExactly("+I[3]");
        } finally {
            TimeZone.setDefault(before);
        }
    }

    @Test
    void onlyWhatIsAskedForIsRead() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, r ROW<a INT, b ROW<c STRING, d INT>>, s STRING");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, CAST(ROW(10, ROW('x', 100)) AS ROW<a INT, b ROW<c STRING, d"
                        + " INT>>), 'p'), (2, CAST(NULL AS ROW<a INT, b ROW<c STRING, d INT>>),"
                        + " 'q'), (3, CAST(ROW(30, CAST(NULL AS ROW<c STRING, d INT>)) AS ROW<a INT,"
                        + " b ROW<c STRING, d INT>>), 'r')");

        assertThat(query(env, "SELECT s, id FROM " + table))
                .containsExactly("+I[p, 1]", "+I[q, 2]", "+I[r, 3]");
        assertThat(query(env, "SELECT t.r.b.d, id, t.r.a FROM " + table + " AS t"))
                .containsExactly("+I[100, 1, 10]", "+I[null, 2, null]", "+I[null, 3, 30]");
        assertThat(query(env, "SELECT t.r.b.c, t.r.b.d FROM " + table + " AS t WHERE id = 1"))
                .containsExactly("+I[x, 100]");
        assertThat(query(env, "SELECT 7 FROM " + table)).hasSize(3);
    }

    @Test
    void readColumnsLeavesTheOthersNull() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, s STRING, x DOUBLE");
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a', 0.5)");
        declareAs(env, "picked", table, "id INT, s STRING, x DOUBLE", "'read.columns'='x, id'");

        assertThat(query(env, "SELECT * FROM picked")).containsExactly("+I[1, null, 0.5]");
        assertThat(query(env, "SELECT id FROM picked WHERE s IS NULL")).containsExactly("+I[1]");
    }

    @ParameterizedTest
    @CsvSource({"1", "2"})
    void aLimitHoldsForTheJob(int parallelism) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(parallelism);
        declare(env, table, "id BIGINT, topic STRING, flag BOOLEAN");
        for (int fragment = 0; fragment < 3; fragment++) {
            insert(
                    env,
                    String.format(
                            "INSERT INTO %s SELECT n, 'A', %s FROM %s",
                            table, fragment == 2, numbers(env, 1, 100)));
        }
        declareAs(
                env,
                "limited",
                table,
                "id BIGINT, topic STRING, flag BOOLEAN",
                "'read.limit'='10'",
                "'read.filter'='topic = ''A'' AND flag'");
        declareAs(env, "nothing", table, "id BIGINT", "'read.limit'='0'");

        assertThat(query(env, "SELECT id FROM " + table + " WHERE topic = 'A' AND flag LIMIT 10"))
                .hasSize(10);
        assertThat(query(env, "SELECT id FROM limited")).hasSize(10);
        assertThat(query(env, "SELECT id FROM " + table + " LIMIT 0")).isEmpty();
        assertThat(query(env, "SELECT id FROM nothing")).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void everyReaderReadsItsShare(int parallelism) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = streaming(parallelism);
        declare(env, table, "id BIGINT, text STRING");
        insert(
                env,
                String.format(
                        "INSERT INTO %s SELECT n, REPEAT(CAST(n AS STRING), 30) FROM %s",
                        table, numbers(env, 1, 200_000)));
        StreamTableEnvironment batch = batch(parallelism);
        declare(batch, table, "id BIGINT, text STRING");

        assertThat(
                        query(
                                batch,
                                "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id), SUM(CHAR_LENGTH(text))"
                                        + " FROM "
                                        + table))
                .containsExactly("+I[200000, 200000, 20000100000, 32666850]");
        assertThat(query(batch, "SELECT COUNT(*) FROM " + table)).containsExactly("+I[200000]");
        assertThat(query(batch, "SELECT COUNT(*) FROM " + table + " WHERE id <= 7"))
                .containsExactly("+I[7]");
    }

    @Test
    void aColumnThatTheTableLacksIsAnError() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT");
        insert(env, "INSERT INTO " + table + " VALUES (1)");
        declareAs(env, "wrong", table, "id INT, nope STRING");

        assertThatThrownBy(() -> query(env, "SELECT nope FROM wrong"))
                .hasStackTraceContaining("nope");
        assertThatThrownBy(() -> query(env, "SELECT id FROM wrong WHERE nope = 'x'"))
                .hasStackTraceContaining("nope");
    }

    @Test
    void aTableThatIsNotThereIsAnError() {
        StreamTableEnvironment env = batch(1);
        String table = newTable();
        declare(env, table, "id INT");

        assertThatThrownBy(() -> query(env, "SELECT id FROM " + table))
                .hasStackTraceContaining("TABLE_NOT_FOUND");
    }

    private static String numbers(StreamTableEnvironment env, long from, long to) {
        String name = newTable();
        numbers(env, name, from, to);
        return name;
    }

    private static void insertNumbers(StreamTableEnvironment env, String table, long from, long to)
            throws Exception {
        insert(env, "INSERT INTO " + table + " SELECT n FROM " + numbers(env, from, to));
    }
}
