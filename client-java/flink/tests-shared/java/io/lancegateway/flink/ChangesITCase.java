package io.lancegateway.flink;

import static org.apache.flink.runtime.testutils.CommonTestUtils.waitUntilCondition;
import static org.apache.flink.types.RowKind.DELETE;
import static org.apache.flink.types.RowKind.UPDATE_AFTER;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.testing.GatewayProcess;
import io.lancegateway.flink.testing.KeyedTable;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.TableVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The changes of a table, as a query sees them. */
class ChangesITCase extends FlinkAndGateway {

    private static final DataType ROW =
            DataTypes.ROW(
                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                    DataTypes.FIELD("name", DataTypes.STRING()));

    private static final String COLUMNS = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED";

    private static final String WITH_VERSION =
            "id BIGINT, name STRING, version BIGINT NOT NULL METADATA VIRTUAL,"
                    + " committed TIMESTAMP_LTZ(6) NOT NULL METADATA FROM 'timestamp' VIRTUAL,"
                    + " PRIMARY KEY (id) NOT ENFORCED";

    private static final String OFTEN = "'source.discovery-interval'='50'";

    private static Row insert(long id, String name) {
        return Row.of(id, name);
    }

    private static Row update(long id, String name) {
        return Row.ofKind(UPDATE_AFTER, id, name);
    }

    private static Row delete(long id) {
        return Row.ofKind(DELETE, id, null);
    }

    /** Of versions 2 to 5: rows that come, an update beside an insert, a delete, an update. */
    private static KeyedTable history(String table) throws Exception {
        KeyedTable keyed = KeyedTable.create(client(), table, ROW, List.of("id"));
        keyed.change(insert(1, "a"), insert(2, "b"), insert(3, null));
        keyed.change(update(2, "B"), insert(4, "d"));
        keyed.change(delete(3));
        keyed.change(update(4, "D"));
        return keyed;
    }

    /** What a query gives, to its end. */
    private static List<String> all(StreamTableEnvironment env, String sql) throws Exception {
        List<String> rows = new ArrayList<>();
        try (CloseableIterator<Row> found = env.executeSql(sql).collect()) {
            found.forEachRemaining(row -> rows.add(row.toString()));
        }
        return rows;
    }

    private static List<String> next(CloseableIterator<Row> rows, int count) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            texts.add(rows.next().toString());
        }
        return texts;
    }

    @Test
    void aBoundedReadGivesWhatChangedBetweenTwoVersionsInTheirOrder() throws Exception {
        String table = newTable();
        history(table).change(insert(9, "later"));
        StreamTableEnvironment env = streaming(1);
        declare(
                env,
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='2'",
                "'scan.bounded.version'='5'");

        List<String> changes = all(env, "SELECT * FROM " + table);

        assertThat(changes.subList(0, 3))
                .containsExactlyInAnyOrder("-U[2, b]", "+U[2, B]", "+I[4, d]")
                .containsSubsequence("-U[2, b]", "+U[2, B]");
        assertThat(changes.subList(3, changes.size()))
                .containsExactly("-D[3, null]", "-U[4, d]", "+U[4, D]");
    }

    @ParameterizedTest
    @CsvSource({"initial, 3", "earliest, 9", "latest, 0", "version, 4", "timestamp, 4"})
    void theFeedBeginsWhereItsModeSays(String mode, int changes) throws Exception {
        String table = newTable();
        history(table);
        List<TableVersion> versions = versions(table);
        Instant third =
                Instant.ofEpochSecond(
                        versions.get(2).getCommittedAt().getSeconds(),
                        versions.get(2).getCommittedAt().getNanos());
        List<String> options =
                new ArrayList<>(
                        List.of(
                                "'scan.mode'='changelog'",
                                "'scan.startup.mode'='" + mode + "'",
                                "'scan.bounded.mode'='latest'"));
        if (mode.equals("version")) {
            options.add("'scan.startup.version'='3'");
        } else if (mode.equals("timestamp")) {
            options.add("'scan.startup.timestamp'='" + third + "'");
        }
        StreamTableEnvironment env = streaming(1);
        declare(env, table, COLUMNS, options.toArray(new String[0]));

        List<String> found = all(env, "SELECT * FROM " + table);

        if (mode.equals("initial")) {
            assertThat(found).containsExactlyInAnyOrder("+I[1, a]", "+I[2, B]", "+I[4, D]");
        } else if (mode.equals("earliest")) {
            assertThat(found).hasSize(3 + 3 + 1 + 2).contains("+I[3, null]", "-D[3, null]");
        } else if (mode.equals("latest")) {
            assertThat(found).isEmpty();
        } else {
            assertThat(found).containsExactly("-D[3, null]", "-U[4, d]", "+U[4, D]");
        }
        assertThat(found.size()).isLessThanOrEqualTo(changes);
    }

    @Test
    void aStreamGoesOnWithEachNewVersion() throws Exception {
        String table = newTable();
        KeyedTable keyed = KeyedTable.create(client(), table, ROW, List.of("id"));
        keyed.change(insert(1, "a"), insert(2, "b"));
        StreamTableEnvironment env = streaming(2);
        declare(env, table, COLUMNS, "'scan.mode'='changelog'", OFTEN);

        try (CloseableIterator<Row> rows = env.executeSql("SELECT * FROM " + table).collect()) {
            assertThat(next(rows, 2)).containsExactlyInAnyOrder("+I[1, a]", "+I[2, b]");
            keyed.change(update(1, "A"));
            assertThat(next(rows, 2)).containsExactly("-U[1, a]", "+U[1, A]");
            keyed.compact();
            keyed.change(delete(2), insert(3, "c"));
            assertThat(next(rows, 2)).containsExactlyInAnyOrder("-D[2, b]", "+I[3, c]");
        }
    }

    @Test
    void appendedRowsAreFollowedUntilAVersionUpdatesSome() throws Exception {
        String table = newTable();
        KeyedTable keyed = KeyedTable.create(client(), table, ROW, List.of("id"));
        keyed.change(insert(1, "a"));
        StreamTableEnvironment env = streaming(1);
        declare(env, table, COLUMNS, "'source.mode'='streaming'", OFTEN);

        try (CloseableIterator<Row> rows = env.executeSql("SELECT * FROM " + table).collect()) {
            assertThat(next(rows, 1)).containsExactly("+I[1, a]");
            keyed.change(insert(2, "b"));
            assertThat(next(rows, 1)).containsExactly("+I[2, b]");
            long version = keyed.change(update(2, "B"));

            assertThatThrownBy(rows::next)
                    .hasStackTraceContaining(
                            "version "
                                    + version
                                    + " of table "
                                    + table
                                    + " updates or deletes rows, and only inserted ones are read"
                                    + " here: set 'scan.mode' = 'changelog'");
        }
    }

    @Test
    void aChangeTellsItsVersionAndItsTime() throws Exception {
        String table = newTable();
        history(table);
        StreamTableEnvironment env = streaming(1);
        declare(
                env,
                table,
                WITH_VERSION,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='3'",
                "'scan.bounded.mode'='latest'");

        List<Row> rows = new ArrayList<>();
        try (CloseableIterator<Row> found =
                env.executeSql("SELECT version, name, committed, id FROM " + table).collect()) {
            found.forEachRemaining(rows::add);
        }

        assertThat(rows).extracting(row -> row.getField(0)).containsExactly(4L, 5L, 5L);
        assertThat(rows).extracting(row -> row.getField(3)).containsExactly(3L, 4L, 4L);
        TableVersion fourth = versions(table).get(3);
        Instant committed =
                Instant.ofEpochSecond(
                        fourth.getCommittedAt().getSeconds(), fourth.getCommittedAt().getNanos());
        assertThat(rows.get(0).<Instant>getFieldAs(2).toEpochMilli())
                .isEqualTo(committed.toEpochMilli());
    }

    @Test
    void onlyWhatTheStatementNamesIsRead() throws Exception {
        DataType type =
                DataTypes.ROW(
                        DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                        DataTypes.FIELD(
                                "r",
                                DataTypes.ROW(
                                        DataTypes.FIELD("x", DataTypes.INT()),
                                        DataTypes.FIELD("y", DataTypes.STRING()))),
                        DataTypes.FIELD("name", DataTypes.STRING()));
        String table = newTable();
        KeyedTable keyed = KeyedTable.create(client(), table, type, List.of("id"));
        keyed.change(Row.of(1L, Row.of(7, "seven"), "a"));
        keyed.change(Row.ofKind(UPDATE_AFTER, 1L, Row.of(8, "eight"), "b"));
        StreamTableEnvironment env = streaming(1);
        declare(
                env,
                table,
                "id BIGINT, r ROW<x INT, y STRING>, name STRING,"
                        + " version BIGINT NOT NULL METADATA VIRTUAL",
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='earliest'",
                "'scan.bounded.mode'='latest'",
                "'read.columns'='id,r'");

        assertThat(all(env, "SELECT t.r.y, version FROM " + table + " AS t"))
                .containsExactly("+I[seven, 2]", "-U[seven, 3]", "+U[eight, 3]");
        assertThat(all(env, "SELECT name, id FROM " + table + " AS t WHERE id + 0 = 1"))
                .containsExactly("+I[null, 1]", "-U[null, 1]", "+U[null, 1]");
        assertThat(all(env, "SELECT COUNT(*) FROM " + table)).last().asString().endsWith("[1]");
    }

    @Test
    void aTableThatIsFollowedIsLookedUpAsAnyOther() throws Exception {
        String table = newTable();
        history(table);
        StreamTableEnvironment env = streaming(1);
        declareAs(
                env,
                "lookups",
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='latest'");
        env.executeSql(
                "CREATE TEMPORARY VIEW asked AS SELECT CAST(4 AS BIGINT) AS id, PROCTIME() AS p");

        assertThat(
                        all(
                                env,
                                "SELECT a.id, c.name FROM asked AS a JOIN lookups"
                                        + " FOR SYSTEM_TIME AS OF a.p AS c ON a.id = c.id"))
                .containsExactly("+I[4, D]");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void aTableThatIsFedByAnotherOneEndsEqual(int parallelism) throws Exception {
        String source = newTable();
        String copy = newTable();
        KeyedTable keyed = KeyedTable.create(client(), source, ROW, List.of("id"));
        Random random = new Random(parallelism);
        for (int version = 0; version < 12; version++) {
            Map<Long, Row> changes = new HashMap<>();
            for (int i = 0; i < 20; i++) {
                long id = random.nextInt(40);
                changes.put(
                        id, random.nextInt(4) == 0 ? delete(id) : update(id, "v" + version + i));
            }
            keyed.change(new ArrayList<>(changes.values()));
            if (version % 5 == 4) {
                keyed.compact();
            }
        }
        StreamTableEnvironment env = streaming(parallelism);
        declareAs(
                env,
                "source",
                source,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='0'",
                "'scan.bounded.mode'='latest'",
                "'read.batch-size'='7'");
        declareAs(env, "copy", copy, COLUMNS);

        insert(env, "INSERT INTO copy SELECT * FROM source");

        StreamTableEnvironment batch = batch(1);
        declareAs(batch, "source", source, COLUMNS);
        declareAs(batch, "copy", copy, COLUMNS);
        assertThat(query(batch, "SELECT * FROM copy"))
                .isNotEmpty()
                .isEqualTo(query(batch, "SELECT * FROM source"));
    }

    @Test
    void changesOfACompositeKeyComeInTheOrderOfTheVersionsAtAnyParallelism() throws Exception {
        DataType type =
                DataTypes.ROW(
                        DataTypes.FIELD("a", DataTypes.STRING().notNull()),
                        DataTypes.FIELD("b", DataTypes.INT().notNull()),
                        DataTypes.FIELD("n", DataTypes.BIGINT()));
        String table = newTable();
        KeyedTable keyed = KeyedTable.create(client(), table, type, List.of("a", "b"));
        int keys = 30;
        long versions = 10;
        for (long n = 0; n < versions; n++) {
            List<Row> changes = new ArrayList<>();
            for (int key = 0; key < keys; key++) {
                changes.add(Row.ofKind(UPDATE_AFTER, "k" + key % 5, key, n));
            }
            keyed.change(changes);
        }
        StreamTableEnvironment env = streaming(3);
        declare(
                env,
                table,
                "a STRING, b INT, n BIGINT, PRIMARY KEY (b, a) NOT ENFORCED",
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='1'",
                "'scan.bounded.mode'='latest'",
                "'read.batch-size'='4'");

        Map<Object, List<String>> byKey = new HashMap<>();
        try (CloseableIterator<Row> rows = env.executeSql("SELECT * FROM " + table).collect()) {
            rows.forEachRemaining(
                    row ->
                            byKey.computeIfAbsent(row.getField(1), key -> new ArrayList<>())
                                    .add(row.getKind().shortString() + row.getField(2)));
        }

        List<String> expected = new ArrayList<>();
        for (long n = 0; n < versions; n++) {
            if (n > 0) {
                expected.add("-U" + (n - 1));
            }
            expected.add((n == 0 ? "+I" : "+U") + n);
        }
        assertThat(byKey).hasSize(keys);
        assertThat(byKey.values()).allSatisfy(found -> assertThat(found).isEqualTo(expected));
    }

    @Test
    void aFeedThatBeginsAtARemovedVersionFailsOnceWithBothVersions() throws Exception {
        String table = newTable();
        history(table).cleanUp(1);
        StreamTableEnvironment env = streaming(2);
        env.getConfig().set("restart-strategy.type", "fixed-delay");
        env.getConfig().set("restart-strategy.fixed-delay.attempts", "1000000");
        declare(
                env,
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='2'");

        TableResult result = env.executeSql("SELECT * FROM " + table);

        assertThatThrownBy(() -> result.collect().next())
                .hasStackTraceContaining("version 2 of table")
                .hasStackTraceContaining("the oldest version that there is now is 5")
                .hasStackTraceContaining("SuppressRestarts");
    }

    @Test
    void aFeedThatSkipsBeginsAfterTheOldestVersion() throws Exception {
        String table = newTable();
        KeyedTable keyed = history(table);
        keyed.change(insert(5, "e"));
        keyed.cleanUp(2);
        StreamTableEnvironment env = streaming(2);
        declare(
                env,
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='2'",
                "'scan.bounded.mode'='latest'",
                "'scan.missing-versions'='skip'");

        assertThat(all(env, "SELECT * FROM " + table)).containsExactly("+I[5, e]");
    }

    @Test
    void rowsThatCameBetweenTwoVersionsAreReadInBatchModeToo() throws Exception {
        String table = newTable();
        KeyedTable keyed = KeyedTable.create(client(), table, ROW, List.of("id"));
        for (long id = 1; id <= 4; id++) {
            keyed.change(insert(id, "n" + id));
        }
        StreamTableEnvironment env = batch(2);
        declare(
                env,
                table,
                COLUMNS,
                "'source.mode'='streaming'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='2'",
                "'scan.bounded.version'='4'");

        assertThat(query(env, "SELECT * FROM " + table)).containsExactly("+I[2, n2]", "+I[3, n3]");
    }

    @Test
    void aFeedThatEndsBeforeItsFirstRowsFails() throws Exception {
        String table = newTable();
        history(table);
        StreamTableEnvironment env = streaming(1);
        declare(env, table, COLUMNS, "'scan.mode'='changelog'", "'scan.bounded.version'='3'");

        assertThatThrownBy(() -> all(env, "SELECT * FROM " + table))
                .hasStackTraceContaining(
                        "begin with the rows of version 5, which is behind version 3, where they"
                                + " end: set 'scan.startup.mode'");
    }

    @Test
    void versionsThatARunningJobHasNotReadAreKeptFromCleanups() throws Exception {
        String table = newTable();
        KeyedTable keyed = history(table);
        StreamTableEnvironment env = streaming(2);
        env.getConfig().set("execution.checkpointing.interval", "100 ms");
        declare(
                env,
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.startup.mode'='version'",
                "'scan.startup.version'='3'",
                "'scan.consumer-id'='it'",
                // It stands there until the test is over.
                "'source.discovery-interval'='3600000'");

        try (CloseableIterator<Row> rows = env.executeSql("SELECT * FROM " + table).collect()) {
            assertThat(next(rows, 3)).hasSize(3);
            waitUntilCondition(() -> held(gateway(), table) == 5);
            keyed.change(insert(5, "e"));
            keyed.change(insert(6, "f"));

            keyed.cleanUp(1);

            assertThat(versions(table))
                    .extracting(TableVersion::getVersion)
                    .containsExactly(5L, 6L, 7L);
        }
    }

    @Test
    void aBoundedFeedLetsGoOfItsVersionsAtItsEnd() throws Exception {
        String table = newTable();
        history(table);
        StreamTableEnvironment env = streaming(2);
        declare(
                env,
                table,
                COLUMNS,
                "'scan.mode'='changelog'",
                "'scan.bounded.mode'='latest'",
                "'scan.consumer-id'='it'");

        assertThat(all(env, "SELECT * FROM " + table)).hasSize(3);

        waitUntilCondition(() -> held(gateway(), table) == 0);
    }

    @Test
    void aJobThatStandsStillRenewsWhatItHolds(@TempDir Path folder) throws Exception {
        Path config =
                Files.writeString(folder.resolve("gateway.yaml"), "changes:\n  hold-age: 2s\n");
        String table = newTable();
        try (GatewayProcess gateway = GatewayProcess.start("--config", config.toString());
                GatewayClient client = gateway.connect()) {
            KeyedTable keyed = KeyedTable.create(client, table, ROW, List.of("id"));
            StreamTableEnvironment env = streaming(1);
            env.executeSql(
                    String.format(
                            "CREATE TEMPORARY TABLE %s (%s) WITH ('connector'='lance',"
                                    + " 'path'='%s', 'gateway.uri'='%s',"
                                    + " 'scan.mode'='changelog', 'scan.consumer-id'='it',"
                                    + " 'source.discovery-interval'='3600000')",
                            table, COLUMNS, table, gateway.uri()));
            TableResult job = env.executeSql("SELECT * FROM " + table);
            waitUntilCondition(() -> held(gateway, table) == 1);
            keyed.change(insert(1, "a"));
            keyed.change(insert(2, "b"));
            Instant first = Files.getLastModifiedTime(hold(gateway, table)).toInstant();
            waitUntilCondition(
                    () ->
                            Files.getLastModifiedTime(hold(gateway, table))
                                    .toInstant()
                                    .isAfter(first.plusSeconds(3)));

            keyed.cleanUp(1);

            job.getJobClient().orElseThrow().cancel().get();
            assertThat(
                            client.listVersions(
                                            ListVersionsRequest.newBuilder()
                                                    .setTable(Tables.named(table))
                                                    .build())
                                    .getVersionsCount())
                    .isEqualTo(3);
        }
    }

    /** What the consumer of these tests holds, or 0. */
    private static long held(GatewayProcess gateway, String table) throws IOException {
        try {
            Matcher version =
                    Pattern.compile("\"version\":\\s*(\\d+)")
                            .matcher(Files.readString(hold(gateway, table)));
            return version.find() ? Long.parseLong(version.group(1)) : 0;
        } catch (NoSuchFileException none) {
            return 0;
        }
    }

    private static Path hold(GatewayProcess gateway, String table) {
        return gateway.warehouse().resolve(table + ".lance/_refs/tags/lance-gateway.hold.it.json");
    }
}
