package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.Compaction;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.StartJobRequest;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** UPDATE, and DELETE where only Flink can tell the rows. */
class RowLevelITCase extends FlinkAndGateway {

    private static final String KEY = ", PRIMARY KEY (id) NOT ENFORCED";

    private static final String ROWS =
            "(1, 'a', 10), (2, 'b', CAST(NULL AS INT)), (3, CAST(NULL AS STRING), 30), (4, 'd', 40)";

    /** A table {@code t}, with a primary key or without one. */
    private static StreamTableEnvironment filled(String table, boolean keyed, String... options)
            throws Exception {
        StreamTableEnvironment env = batch(2);
        declareAs(env, "t", table, "id BIGINT, name STRING, n INT" + (keyed ? KEY : ""), options);
        insert(env, "INSERT INTO t VALUES " + ROWS);
        return env;
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void rowsOfAConditionAreUpdatedAsOneVersion(boolean keyed) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, keyed);
        int before = versions(table).size();
        env.executeSql("UPDATE t SET n = n + 1, name = UPPER(name) WHERE id < 3").await();
        assertThat(query(env, "SELECT * FROM t"))
                .containsExactly(
                        "+I[1, A, 11]", "+I[2, B, null]", "+I[3, null, 30]", "+I[4, d, 40]");
        assertThat(versions(table)).hasSize(before + 1);
    }

    @ParameterizedTest
    @CsvSource({
        "true, CHAR_LENGTH(name) = 1 AND n = 10",
        "false, CHAR_LENGTH(name) = 1 AND n = 10",
        "true, id IN (SELECT MIN(id) FROM t)",
        "false, id = (SELECT COUNT(*) - 3 FROM t)"
    })
    void aConditionMayBeOneThatOnlyFlinkCanTell(boolean keyed, String where) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, keyed);
        env.executeSql("UPDATE t SET name = NULL WHERE " + where).await();
        assertThat(query(env, "SELECT * FROM t WHERE id < 3"))
                .containsExactly("+I[1, null, 10]", "+I[2, b, null]");
        env.executeSql("DELETE FROM t WHERE " + where.replace("name", "'x'")).await();
        assertThat(query(env, "SELECT id FROM t")).containsExactly("+I[2]", "+I[3]", "+I[4]");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void allRowsAndNoneMayBeChanged(boolean keyed) throws Exception {
        String table = newTable();
        // Other writers than readers.
        StreamTableEnvironment env = filled(table, keyed, "'sink.parallelism'='3'");
        int before = versions(table).size();
        env.executeSql("UPDATE t SET n = 0 WHERE CHAR_LENGTH(name) > 5").await();
        env.executeSql("DELETE FROM t WHERE CHAR_LENGTH(name) > 5").await();
        assertThat(versions(table)).hasSize(before);
        env.executeSql("UPDATE t SET n = CAST(id * 2 AS INT)").await();
        assertThat(query(env, "SELECT id, n FROM t"))
                .containsExactly("+I[1, 2]", "+I[2, 4]", "+I[3, 6]", "+I[4, 8]");
        env.executeSql("DELETE FROM t WHERE CHAR_LENGTH(CAST(n AS STRING)) = 1").await();
        assertThat(count(table)).isZero();
    }

    @Test
    void ofRowsThatAreTheSameEachIsChangedForItself() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declareAs(env, "t", table, "id BIGINT, name STRING");
        insert(env, "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (1, 'b'), (2, 'a')");
        env.executeSql(
                        "UPDATE t SET name = 'x' WHERE id = 1 AND CHAR_LENGTH(name) = 1 AND name <> 'b'")
                .await();
        assertThat(query(env, "SELECT * FROM t"))
                .containsExactly("+I[1, b]", "+I[1, x]", "+I[1, x]", "+I[2, a]");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void columnsOfAnyTypeAndNameAreSet(boolean keyed) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declareAs(
                env,
                "t",
                table,
                "id BIGINT, `Vec.tor` ARRAY<FLOAT>, place ROW<city STRING, zip INT>, home ROW<city"
                        + " STRING, zip INT>, `SELECT` STRING NOT NULL, tags ARRAY<STRING>, m"
                        + " MAP<STRING, INT>"
                        + (keyed ? KEY : ""),
                "'write.vector-dimensions'='Vec.tor:2'");
        insert(
                env,
                "INSERT INTO t VALUES (1, ARRAY[CAST(1 AS FLOAT), CAST(2 AS FLOAT)], ROW('Rome', 1),"
                        + " ROW('Bonn', CAST(NULL AS INT)), 's', ARRAY['x'], MAP['k', 1]), (2,"
                        + " ARRAY[CAST(3 AS FLOAT), CAST(4 AS FLOAT)], ROW('Oslo', 2), CAST(NULL AS ROW<city STRING, zip INT>), 't',"
                        + " ARRAY['y'], MAP['l', 2])");
        env.executeSql(
                        "UPDATE t SET `Vec.tor` = ARRAY[CAST(9 AS FLOAT), CAST(8 AS FLOAT)], place ="
                                + " home, `SELECT` = `SELECT` || '!' WHERE id = 1")
                .await();
        env.executeSql(
                        "UPDATE t SET tags = ARRAY['z', CAST(NULL AS STRING)], m = CAST(NULL AS"
                                + " MAP<STRING, INT>), place = home WHERE place.city = 'Oslo'")
                .await();
        assertThat(query(env, "SELECT id, `Vec.tor`, place, `SELECT`, tags, m FROM t"))
                .containsExactly(
                        "+I[1, [9.0, 8.0], +I[Bonn, null], s!, [x], {k=1}]",
                        "+I[2, [3.0, 4.0], null, t, [z, null], null]");
    }

    @Test
    void columnsThatFlinkDoesNotKnowStay() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        declareAs(env, "narrow", table, "n INT");
        env.executeSql("UPDATE narrow SET n = 7 WHERE n = 10").await();
        env.executeSql("DELETE FROM narrow WHERE ABS(n) = 40").await();
        assertThat(query(env, "SELECT * FROM t"))
                .containsExactly("+I[1, a, 7]", "+I[2, b, null]", "+I[3, null, 30]");
    }

    @Test
    void whatATableDoesNotShowIsNotChanged() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        declareAs(env, "few", table, "id BIGINT, name STRING, n INT", "'read.filter'='id > 2'");
        env.executeSql("UPDATE few SET name = 'x'").await();
        env.executeSql("DELETE FROM few WHERE id <> 4").await();
        assertThat(query(env, "SELECT * FROM t"))
                .containsExactly("+I[1, a, 10]", "+I[2, b, null]", "+I[4, x, 40]");
    }

    @Test
    void aColumnOfThePrimaryKeyIsNotSet() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, true);
        assertThatThrownBy(() -> env.executeSql("UPDATE t SET id = 9 WHERE n = 10").await())
                .hasStackTraceContaining("column 'id' is of the primary key");
        declareAs(env, "keyless", table, "id BIGINT, n INT");
        assertThatThrownBy(() -> env.executeSql("UPDATE keyless SET id = 9 WHERE n = 10").await())
                .hasStackTraceContaining("column 'id' is of the primary key");
        assertThat(query(env, "SELECT id FROM t WHERE n = 10")).containsExactly("+I[1]");
    }

    @Test
    void theVersionIsPinnedWhenPlannedAndOtherRowsSinceAreAConflict() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        long version = versions(table).size();
        // Planned on one version, and run on the next.
        String old = "'read.version'='" + version + "'";
        insert(env, "INSERT INTO t VALUES (5, 'e', 50)");
        declareAs(env, "earlier", table, "id BIGINT, name STRING, n INT", old);
        assertThatThrownBy(
                        () -> env.executeSql("UPDATE earlier SET n = 0 WHERE ABS(n) = 10").await())
                .hasStackTraceContaining("COMMIT_CONFLICT")
                .hasStackTraceContaining(
                        "the rows were chosen in version "
                                + version
                                + ", and version "
                                + (version + 1)
                                + " changed rows");
        assertThatThrownBy(() -> env.executeSql("DELETE FROM earlier WHERE ABS(n) = 10").await())
                .hasStackTraceContaining("COMMIT_CONFLICT");
        assertThat(query(env, "SELECT id, n FROM t WHERE n = 10")).containsExactly("+I[1, 10]");
        assertThat(count(table)).isEqualTo(5);
    }

    @Test
    void aStatementOnTwoVersionsOfItsTableIsRefused() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        insert(env, "INSERT INTO t VALUES (5, 'e', 50)");
        declareAs(env, "earlier", table, "id BIGINT, name STRING, n INT", "'read.version'='1'");
        assertThatThrownBy(
                        () ->
                                env.executeSql(
                                                "DELETE FROM t WHERE id NOT IN (SELECT id FROM earlier)")
                                        .await())
                .hasStackTraceContaining("leave out 'read.version'");
    }

    @Test
    void aCompactionInBetweenIsNoConflict() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        insert(env, "INSERT INTO t VALUES (5, 'e', 50)");
        long version = versions(table).size();
        compact(table);
        assertThat(versions(table).size()).isGreaterThan((int) version);
        declareAs(
                env,
                "earlier",
                table,
                "id BIGINT, name STRING, n INT",
                "'read.version'='" + version + "'");
        env.executeSql("UPDATE earlier SET n = -n WHERE ABS(n) > 40").await();
        env.executeSql("DELETE FROM t WHERE ABS(n) = 40").await();
        assertThat(query(env, "SELECT id, n FROM t"))
                .containsExactly("+I[1, 10]", "+I[2, null]", "+I[3, 30]", "+I[5, -50]");
    }

    private static void compact(String table) throws InterruptedException {
        StartJobRequest request =
                StartJobRequest.newBuilder()
                        .setTable(Tables.named(table))
                        .setCompaction(Compaction.getDefaultInstance())
                        .build();
        Job job = client().awaitJob(client().startJob(request), step -> {});
        assertThat(job.getState()).isEqualTo(JobState.JOB_STATE_SUCCEEDED);
    }

    @Test
    void aTableThatIsReadAsChangesIsRefusedByFlink() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, true);
        declareAs(env, "changes", table, "id BIGINT, n INT" + KEY, "'scan.mode'='changelog'");
        assertThatThrownBy(
                        () -> env.executeSql("UPDATE changes SET n = 0 WHERE ABS(n) = 10").await())
                .hasStackTraceContaining("batch mode");
        assertThat(query(env, "SELECT n FROM t WHERE id = 1")).containsExactly("+I[10]");
    }

    @Test
    void aStreamIsRefusedByFlink() throws Exception {
        String table = newTable();
        filled(table, false);
        StreamTableEnvironment env = streaming(1);
        declareAs(env, "t", table, "id BIGINT, n INT");
        assertThatThrownBy(() -> env.executeSql("UPDATE t SET n = 1 WHERE ABS(id) = 1"))
                .hasStackTraceContaining("streaming");
        assertThatThrownBy(() -> env.executeSql("DELETE FROM t WHERE ABS(id) = 1"))
                .hasStackTraceContaining("streaming");
    }

    @Test
    void theIdOfARowIsAMetadataColumn() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table, false);
        declareAs(env, "ids", table, "n INT, rid BIGINT METADATA FROM '_rowid' VIRTUAL, id BIGINT");
        assertThat(query(env, "SELECT COUNT(DISTINCT rid), MIN(rid) >= 0 FROM ids"))
                .containsExactly("+I[4, true]");
        declareAs(env, "other", table, "id BIGINT, pt AS PROCTIME()");
        assertThat(
                        query(
                                env,
                                "SELECT o.id, i.rid >= 0 FROM other AS o JOIN ids FOR SYSTEM_TIME"
                                        + " AS OF o.pt AS i ON o.id = i.id"))
                .hasSize(4)
                .allMatch(row -> row.endsWith(", true]"));
        env.executeSql(
                        "UPDATE ids SET n = CAST(rid AS INT) WHERE rid IN (SELECT MAX(rid) FROM ids)")
                .await();
        assertThat(query(env, "SELECT rid - n, id FROM ids WHERE n < 10 ")).hasSize(1);
    }
}
