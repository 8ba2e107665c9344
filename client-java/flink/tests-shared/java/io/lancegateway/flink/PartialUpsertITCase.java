package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import org.apache.flink.api.common.JobID;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Changes of some columns: the others stay as they are. */
class PartialUpsertITCase extends FlinkAndGateway {

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void columnsThatAStatementLeavesOutStayAsTheyAre(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = UpsertITCase.tables(mode, 2);
        declare(
                env,
                table,
                "id INT, a STRING, b STRING, v ARRAY<FLOAT>, PRIMARY KEY (id) NOT ENFORCED");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, 'a1', 'b1', ARRAY[1, 2]), (2, 'a2', 'b2', ARRAY[3, 4])");

        insert(env, "INSERT INTO " + table + " (a, id) VALUES ('a3', 1), ('a4', 3)");
        insert(env, "INSERT INTO " + table + " (id, v) VALUES (2, ARRAY[5, 6])");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1, a3, b1, [1.0, 2.0]]",
                        "+I[2, a2, b2, [5.0, 6.0]]",
                        "+I[3, a4, null, null]");
    }

    @Test
    void columnsThatFlinkDoesNotKnowStayAsTheyAre() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, a STRING, b STRING, PRIMARY KEY (id) NOT ENFORCED");
        declareAs(env, "narrow", table, "b STRING, id INT, PRIMARY KEY (id) NOT ENFORCED");
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a1', 'b1')");

        insert(env, "INSERT INTO narrow VALUES ('b2', 1), ('b3', 2)");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, a1, b2]", "+I[2, null, b3]");
    }

    @Test
    void theFirstStatementMakesAllColumnsAndALaterOneOfItsJobSetsOnlyItsOwn() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, a STRING, b STRING, PRIMARY KEY (id) NOT ENFORCED");

        insert(env, "INSERT INTO " + table + " (id, a) VALUES (1, 'a1')");
        insert(env, "INSERT INTO " + table + " (id, b) VALUES (1, 'b1')");

        assertThat(query(env, "SELECT * FROM " + table)).containsExactly("+I[1, a1, b1]");
    }

    @ParameterizedTest
    @CsvSource({"streaming, false", "streaming, true", "batch, false"})
    void statementsOfOneJobSetTheirOwnColumns(String mode, boolean reuse) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = UpsertITCase.tables(mode, 2);
        // Of Flink 2.1 and newer: sinks of one table become one, unless they set other columns.
        env.getConfig().set("table.optimizer.reuse-sink-enabled", String.valueOf(reuse));
        declare(env, table, "id BIGINT, a STRING, b STRING, PRIMARY KEY (id) NOT ENFORCED");
        numbers(env, "numbers", 1, 3);

        env.createStatementSet()
                .addInsertSql("INSERT INTO " + table + " (id, a) SELECT n, 'a' FROM numbers")
                .addInsertSql("INSERT INTO " + table + " (id, b) SELECT n + 1, 'b' FROM numbers")
                .execute()
                .await();

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, a, null]", "+I[2, a, b]", "+I[3, a, b]", "+I[4, null, b]");
    }

    @Test
    void someColumnsOfRowsThatAnIndexFindsAreUpdatedAndNoRowIsAdded() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(
                env,
                table,
                "vector ARRAY<FLOAT>, path STRING, status STRING, size BIGINT,"
                        + " PRIMARY KEY (path) NOT ENFORCED");
        numbers(env, "all64", 1, 64);
        numbers(env, "ten", 21, 30);
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " SELECT ARRAY[CAST(n AS FLOAT), CAST(n AS FLOAT)],"
                        + " 'p' || CAST(n AS STRING), 'new', n FROM all64");
        LanceIndexBuilder.builder()
                .path(table)
                .gatewayUri(gateway().uri())
                .column("path")
                .type("BTREE")
                .build()
                .buildIndex();

        for (int round = 1; round <= 3; round++) {
            JobID job =
                    env.executeSql(
                                    String.format(
                                            "INSERT INTO %s (path, status, size) SELECT"
                                                    + " 'p' || CAST(n AS STRING), 'done', n * %d"
                                                    + " FROM ten",
                                            table, 100 * round))
                            .getJobClient()
                            .get()
                            .getJobExecutionResult()
                            .get()
                            .getJobID();
            assertThat(sum(job, "Committer", "lastCommitUpdated")).isEqualTo(10);
            assertThat(sum(job, "Committer", "lastCommitInserted")).isZero();
            assertThat(
                            query(
                                    env,
                                    String.format(
                                            "SELECT path FROM %s WHERE status = 'done' AND size ="
                                                    + " %d * CAST(SUBSTRING(path, 2) AS BIGINT) AND"
                                                    + " vector[1] = CAST(SUBSTRING(path, 2) AS FLOAT)",
                                            table, 100 * round)))
                    .hasSize(10);
            assertThat(count(table)).isEqualTo(64);
            if (round == 1) {
                optimize(env, table);
            }
        }
    }

    private static void optimize(StreamTableEnvironment env, String table) throws Exception {
        env.executeSql(
                "CREATE TEMPORARY FUNCTION optimize AS"
                        + " 'io.lancegateway.flink.OptimizeIndexFunction'");
        String call =
                String.format(
                        "SELECT * FROM TABLE(optimize('%s', 'gateway.uri', '%s'))",
                        table, gateway().uri());
        query(env, call);
    }
}
