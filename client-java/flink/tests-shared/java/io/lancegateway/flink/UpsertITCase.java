package io.lancegateway.flink;

import static org.apache.flink.types.RowKind.DELETE;
import static org.apache.flink.types.RowKind.INSERT;
import static org.apache.flink.types.RowKind.UPDATE_AFTER;
import static org.apache.flink.types.RowKind.UPDATE_BEFORE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.Changelog;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.DescribeTableRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Changes of rows that land in a table with a primary key. */
class UpsertITCase extends FlinkAndGateway {

    private static final String COLUMNS = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED";

    private static final DataType ROW =
            DataTypes.ROW(
                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                    DataTypes.FIELD("name", DataTypes.STRING()));

    /** Of case, key and value: what becomes of a row that changes several times at once. */
    private static final List<Row> CHANGES =
            List.of(
                    // Comes and goes.
                    Row.ofKind(INSERT, 1L, "a"),
                    Row.ofKind(DELETE, 1L, "a"),
                    // Goes and comes.
                    Row.ofKind(DELETE, 2L, "old"),
                    Row.ofKind(INSERT, 2L, "b"),
                    // Comes, is updated, and goes.
                    Row.ofKind(INSERT, 3L, "a"),
                    Row.ofKind(UPDATE_BEFORE, 3L, "a"),
                    Row.ofKind(UPDATE_AFTER, 3L, "c"),
                    Row.ofKind(DELETE, 3L, "c"),
                    // Comes and is updated.
                    Row.ofKind(INSERT, 4L, "a"),
                    Row.ofKind(UPDATE_BEFORE, 4L, "a"),
                    Row.ofKind(UPDATE_AFTER, 4L, "c"),
                    // Is updated twice.
                    Row.ofKind(UPDATE_AFTER, 5L, "a"),
                    Row.ofKind(UPDATE_AFTER, 5L, "b"),
                    // Was never there.
                    Row.ofKind(DELETE, 6L, "a"));

    private static StreamExecutionEnvironment streams(int parallelism) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(parallelism);
        return env;
    }

    static StreamTableEnvironment tables(String mode, int parallelism) {
        return mode.equals("batch") ? batch(parallelism) : withoutConflicts(streaming(parallelism));
    }

    /** Flink 2.3 asks for an ON CONFLICT where rows have no key of their own. Others know none. */
    private static StreamTableEnvironment withoutConflicts(StreamTableEnvironment env) {
        env.getConfig().set("table.exec.sink.require-on-conflict", "false");
        return env;
    }

    /** Brings changes into a table by the Table API, in one checkpoint. */
    private static void insertChanges(String table, List<Row> changes, String where, int writers)
            throws Exception {
        StreamExecutionEnvironment env = streams(writers);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        declare(tables, table, COLUMNS);
        tables.createTemporaryView(
                "changes",
                tables.fromChangelogStream(
                        Changelog.rows(env, ROW, changes),
                        Schema.newBuilder()
                                .column("id", DataTypes.BIGINT().notNull())
                                .column("name", DataTypes.STRING())
                                .primaryKey("id")
                                .build(),
                        ChangelogMode.all()));
        insert(tables, "INSERT INTO " + table + " SELECT * FROM changes " + where);
    }

    /** The same by the DataStream API. */
    private static void sinkChanges(String table, List<Row> changes, int writers) throws Exception {
        sinkChanges(table, ROW, List.of("id"), changes, writers);
    }

    private static void sinkChanges(
            String table, DataType type, List<String> key, List<Row> changes, int writers)
            throws Exception {
        StreamExecutionEnvironment env = streams(writers);
        Changelog.rowData(Changelog.rows(env, type, changes), type)
                .sinkTo(
                        LanceSink.builder()
                                .path(table)
                                .gatewayUri(gateway().uri())
                                .rowType((RowType) type.getLogicalType())
                                .primaryKey(key)
                                .build());
        env.execute();
    }

    private static List<String> rows(String table) throws Exception {
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        return query(env, "SELECT * FROM " + table);
    }

    @ParameterizedTest
    @CsvSource({"sql, 1", "sql, 4", "stream, 1", "stream, 4"})
    void ofEachKeyTheLastChangeOfACheckpointCounts(String api, int writers) throws Exception {
        String table = newTable();
        sinkChanges(table, List.of(Row.of(2L, "old"), Row.of(7L, "stays")), writers);
        int before = versions(table).size();

        if (api.equals("sql")) {
            insertChanges(table, CHANGES, "", writers);
        } else {
            sinkChanges(table, CHANGES, writers);
        }

        assertThat(rows(table)).containsExactly("+I[2, b]", "+I[4, c]", "+I[5, b]", "+I[7, stays]");
        assertThat(versions(table)).hasSize(before + 1);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void theSameIntoATableThatIsNotThereYet(int writers) throws Exception {
        String table = newTable();

        sinkChanges(table, CHANGES, writers);

        assertThat(rows(table)).containsExactly("+I[2, b]", "+I[4, c]", "+I[5, b]");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void aRowWhoseUpdateIsFilteredAwayIsDeleted(int writers) throws Exception {
        String table = newTable();
        List<Row> first = List.of(Row.of(1L, "keep"), Row.of(2L, "keep"), Row.of(3L, "keep"));
        List<Row> updates =
                List.of(
                        Row.ofKind(UPDATE_BEFORE, 1L, "keep"),
                        Row.ofKind(UPDATE_AFTER, 1L, "out"),
                        Row.ofKind(UPDATE_BEFORE, 2L, "keep"),
                        Row.ofKind(UPDATE_AFTER, 2L, "keep too"));

        insertChanges(table, first, "WHERE name LIKE 'keep%'", writers);
        insertChanges(table, updates, "WHERE name LIKE 'keep%'", writers);

        assertThat(rows(table)).containsExactly("+I[2, keep too]", "+I[3, keep]");
    }

    @Test
    void anOldRowAloneDeletesIt() throws Exception {
        String table = newTable();
        sinkChanges(table, List.of(Row.of(1L, "a"), Row.of(2L, "b")), 2);

        sinkChanges(table, List.of(Row.ofKind(UPDATE_BEFORE, 1L, "a")), 2);

        assertThat(rows(table)).containsExactly("+I[2, b]");
    }

    @Test
    void deletingFromATableThatIsNotThereDoesNotMakeIt() throws Exception {
        String table = newTable();

        sinkChanges(table, List.of(Row.ofKind(DELETE, 1L, null), Row.ofKind(DELETE, 2L, null)), 1);

        assertThatThrownBy(() -> count(table))
                .isInstanceOfSatisfying(
                        LanceGatewayException.class,
                        e -> assertThat(e.reason()).isEqualTo(Reason.TABLE_NOT_FOUND));
    }

    @Test
    void deletingAnUnknownKeyDeletesNothing() throws Exception {
        String table = newTable();
        sinkChanges(table, List.of(Row.of(1L, "a")), 1);

        sinkChanges(table, List.of(Row.ofKind(DELETE, 2L, null)), 1);

        assertThat(rows(table)).containsExactly("+I[1, a]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"STRING", "STRING NOT NULL"})
    void aDeletedRowMayBeItsKeyAlone(String type) throws Exception {
        String table = newTable();
        StreamExecutionEnvironment env = streams(2);
        StreamTableEnvironment tables = withoutConflicts(StreamTableEnvironment.create(env));
        declare(tables, table, "id BIGINT, name " + type + ", PRIMARY KEY (id) NOT ENFORCED");
        insert(tables, "INSERT INTO " + table + " VALUES (1, 'a'), (2, 'b')");
        tables.createTemporaryView(
                "changes",
                tables.fromChangelogStream(
                        Changelog.rows(
                                env,
                                ROW,
                                List.of(
                                        Row.ofKind(UPDATE_AFTER, 2L, "c"),
                                        Row.ofKind(UPDATE_AFTER, 3L, "d"),
                                        Row.ofKind(DELETE, 3L, null),
                                        Row.ofKind(DELETE, 2L, null))),
                        Schema.newBuilder()
                                .column("id", DataTypes.BIGINT().notNull())
                                .column("name", DataTypes.STRING())
                                .primaryKey("id")
                                .build(),
                        ChangelogMode.upsert()));

        insert(tables, "INSERT INTO " + table + " SELECT * FROM changes");

        assertThat(rows(table)).containsExactly("+I[1, a]");
    }

    @Test
    void aNullWhereTheTableTakesNoneChangesNothing() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declareAs(
                env,
                "strict",
                table,
                "id BIGINT, name STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED");
        insert(env, "INSERT INTO strict VALUES (1, 'a')");
        int before = versions(table).size();

        assertThatThrownBy(
                        () ->
                                sinkChanges(
                                        table,
                                        List.of(
                                                Row.ofKind(DELETE, 1L, null),
                                                Row.ofKind(INSERT, 2L, null)),
                                        1))
                .hasStackTraceContaining("name");
        assertThat(versions(table)).hasSize(before);
        assertThat(rows(table)).containsExactly("+I[1, a]");
    }

    @Test
    void aNewRowNeedsTheColumnsThatTheTableTakesNoNullsIn() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declareAs(
                env,
                "strict",
                table,
                "id BIGINT, name STRING NOT NULL, n INT, PRIMARY KEY (id) NOT ENFORCED");
        declareAs(env, "narrow", table, "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED");
        insert(env, "INSERT INTO strict VALUES (1, 'a', 1)");

        assertThatThrownBy(() -> insert(env, "INSERT INTO narrow VALUES (1, 5), (2, 6)"))
                .hasStackTraceContaining("name");

        assertThat(query(env, "SELECT * FROM strict")).containsExactly("+I[1, a, 1]");
    }

    @Test
    void aKeyMayHaveADotInItsName() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "`a.b` INT, v INT, PRIMARY KEY (`a.b`) NOT ENFORCED");

        insert(env, "INSERT INTO " + table + " VALUES (1, 1)");
        insert(env, "INSERT INTO " + table + " VALUES (1, 2)");

        assertThat(query(env, "SELECT v FROM " + table)).containsExactly("+I[2]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void insertReplacesTheRowsOfItsKeys(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = tables(mode, 2);
        declare(env, table, COLUMNS);
        numbers(env, "numbers", 1, 6);
        numbers(env, "others", 4, 9);

        insert(env, "INSERT INTO " + table + " SELECT n, 'first' FROM numbers");
        insert(env, "INSERT INTO " + table + " SELECT n, 'second' FROM others");

        assertThat(rows(table))
                .containsExactly(
                        "+I[1, first]",
                        "+I[2, first]",
                        "+I[3, first]",
                        "+I[4, second]",
                        "+I[5, second]",
                        "+I[6, second]",
                        "+I[7, second]",
                        "+I[8, second]",
                        "+I[9, second]");
    }

    @Test
    void structsStayWithTheirKeys() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id INT, place ROW<city STRING, country STRING>, PRIMARY KEY (id) NOT ENFORCED");
        String upsert =
                "INSERT INTO "
                        + table
                        + " VALUES (1, ROW('Beijing', 'CN')),"
                        + " (2, CAST(NULL AS ROW<city STRING, country STRING>)),"
                        + " (3, ROW('NY', 'US'))";

        insert(env, upsert);
        insert(env, upsert);

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, +I[Beijing, CN]]", "+I[2, null]", "+I[3, +I[NY, US]]");
    }

    @Test
    void aKeyMayHaveManyColumnsOfAnyNames() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(
                env,
                table,
                "v INT, `Order Id` BIGINT, `Größe` STRING, `select` INT,"
                        + " PRIMARY KEY (`Größe`, `Order Id`, `select`) NOT ENFORCED");
        insert(
                env,
                "INSERT INTO " + table + " VALUES (1, 1, 'L', 1), (2, 1, 'L', 2), (3, 1, 'M', 1)");

        insert(env, "INSERT INTO " + table + " VALUES (4, 1, 'L', 2), (5, 2, 'L', 1)");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1, 1, L, 1]", "+I[3, 1, M, 1]", "+I[4, 1, L, 2]", "+I[5, 2, L, 1]");
        assertThat(primaryKey(table)).containsExactly("Größe", "Order Id", "select");
    }

    @Test
    void caseTellsColumnsApart() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, ID INT, Id INT, PRIMARY KEY (ID) NOT ENFORCED");
        insert(env, "INSERT INTO " + table + " VALUES (1, 2, 3), (1, 3, 3)");

        insert(env, "INSERT INTO " + table + " VALUES (5, 3, 7)");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, 2, 3]", "+I[5, 3, 7]");
    }

    @Test
    void aTableWithAnotherPrimaryKeyIsRefused() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT NOT NULL, a INT NOT NULL, PRIMARY KEY (id) NOT ENFORCED");
        declareAs(env, "other", table, "id INT, a INT, PRIMARY KEY (a) NOT ENFORCED");
        insert(env, "INSERT INTO " + table + " VALUES (1, 1)");

        assertThatThrownBy(() -> insert(env, "INSERT INTO other VALUES (2, 1)"))
                .hasStackTraceContaining(
                        "the table has the primary key [id], but [a] was declared");
        assertThat(count(table)).isEqualTo(1);
    }

    @Test
    void aTableThatWasMadeWithoutAKeyTakesChangesByTheDeclaredOne() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declareAs(env, "plain", table, "id BIGINT NOT NULL, name STRING");
        insert(env, "INSERT INTO plain VALUES (1, 'a'), (2, 'b')");

        sinkChanges(table, List.of(Row.of(1L, "c"), Row.ofKind(DELETE, 2L, null)), 2);

        assertThat(rows(table)).containsExactly("+I[1, c]");
    }

    @Test
    void insertOverwriteReplacesAllRowsAndLaterChangesFindTheNewOnes() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(env, table, COLUMNS);
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a'), (2, 'b')");

        insert(env, "INSERT OVERWRITE " + table + " VALUES (3, 'c'), (4, 'd')");
        insert(env, "INSERT INTO " + table + " VALUES (4, 'e'), (5, 'f')");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[3, c]", "+I[4, e]", "+I[5, f]");
    }

    @Test
    void aRowThatDoesNotFitChangesNothing() throws Exception {
        String table = newTable();
        DataType vectors =
                DataTypes.ROW(
                        DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                        DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())));
        sinkChanges(table, vectors, List.of("id"), List.of(Row.of(1L, new Float[] {1f, 2f})), 1);
        int before = versions(table).size();

        assertThatThrownBy(
                        () ->
                                sinkChanges(
                                        table,
                                        vectors,
                                        List.of("id"),
                                        List.of(
                                                Row.ofKind(DELETE, 1L, null),
                                                Row.of(2L, new Float[] {1f, 2f, 3f})),
                                        1))
                .hasStackTraceContaining("the vector has 3 elements, the column takes 2");
        assertThat(versions(table)).hasSize(before);
        assertThat(count(table)).isEqualTo(1);
    }

    @Test
    void anOverwriteWithOtherColumnsKeepsTheKey() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a')");
        declareAs(env, "other", table, "id BIGINT, score DOUBLE, PRIMARY KEY (id) NOT ENFORCED");

        insert(env, "INSERT OVERWRITE other VALUES (1, 0.5), (2, 1.5)");
        insert(env, "INSERT INTO other VALUES (2, 2.5)");

        assertThat(query(env, "SELECT * FROM other")).containsExactly("+I[1, 0.5]", "+I[2, 2.5]");
        assertThat(primaryKey(table)).containsExactly("id");
    }

    @Test
    void aQueryByAnotherKeyEndsAsItsRowsSay() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = withoutConflicts(streaming(4));
        env.getConfig().set("execution.checkpointing.interval", "50 ms");
        declare(env, table, "k BIGINT, total BIGINT, PRIMARY KEY (total) NOT ENFORCED");
        numbers(env, "numbers", 0, 19_999);
        // Each sum is of one k alone.
        String sums = "SELECT n % 97 AS k, SUM(n) * 100 + n % 97 FROM numbers GROUP BY n % 97";

        insert(env, "INSERT INTO " + table + " " + sums);

        assertThat(query(env, "SELECT * FROM " + table)).isEqualTo(materialized(env, sums));
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 3})
    void aFilteredAggregateEndsAsFlinkItselfSaysItDoes(int writers) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = streaming(4);
        env.getConfig().set("execution.checkpointing.interval", "50 ms");
        declare(
                env,
                table,
                "k BIGINT, n BIGINT, total BIGINT, PRIMARY KEY (k) NOT ENFORCED",
                "'sink.parallelism'='" + writers + "'");
        env.executeSql(
                "CREATE TEMPORARY TABLE numbers (n BIGINT) WITH ('connector'='datagen',"
                        + " 'rows-per-second'='20000', 'fields.n.kind'='sequence',"
                        + " 'fields.n.start'='0', 'fields.n.end'='29999')");
        String sums =
                "SELECT k, n, total FROM (SELECT n % 97 AS k, COUNT(*) AS n, SUM(n) AS total"
                        + " FROM numbers GROUP BY n % 97) WHERE total % 3 <> 0";

        insert(env, "INSERT INTO " + table + " " + sums);

        assertThat(query(env, "SELECT * FROM " + table)).isEqualTo(materialized(env, sums));
    }

    private static List<String> primaryKey(String table) {
        return client().describeTable(
                        DescribeTableRequest.newBuilder().setTable(Tables.named(table)).build())
                .getPrimaryKeyList();
    }

    private static List<String> materialized(StreamTableEnvironment env, String sql)
            throws Exception {
        TreeMap<Object, Row> rows = new TreeMap<>();
        try (CloseableIterator<Row> changes = env.executeSql(sql).collect()) {
            changes.forEachRemaining(
                    row -> {
                        if (row.getKind() == INSERT || row.getKind() == UPDATE_AFTER) {
                            rows.put(row.getField(0), row);
                        } else {
                            rows.remove(row.getField(0));
                        }
                    });
        }
        List<String> result = new ArrayList<>();
        rows.values()
                .forEach(
                        row -> {
                            row.setKind(INSERT);
                            result.add(row.toString());
                        });
        result.sort(null);
        return result;
    }
}
