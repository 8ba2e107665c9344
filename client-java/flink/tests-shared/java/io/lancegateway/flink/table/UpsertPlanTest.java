package io.lancegateway.flink.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which changes the planner sends to a table with a primary key. */
class UpsertPlanTest {

    private final TableEnvironment env =
            TableEnvironment.create(EnvironmentSettings.inStreamingMode());

    @BeforeEach
    void createSource() {
        env.executeSql(
                "CREATE TABLE source (id BIGINT NOT NULL, word STRING) WITH"
                        + " ('connector'='datagen', 'number-of-rows'='1')");
    }

    private static void create(TableEnvironment env, String columns, String options) {
        env.executeSql(
                String.format(
                        "CREATE TABLE counts (%s) WITH ('connector'='lance', 'path'='counts'%s)",
                        columns, options));
    }

    private String plan(String sql) {
        return env.explainSql(sql, ExplainDetail.CHANGELOG_MODE)
                .replaceAll("(?s).*== Optimized Physical Plan ==", "")
                .replaceAll("(?s)== Optimized Execution Plan ==.*", "");
    }

    @Test
    void updatesComeWithoutTheirOldRows() {
        create(env, "id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED", "");

        assertThat(plan("INSERT INTO counts SELECT id, COUNT(*) FROM source GROUP BY id"))
                .contains("changelogMode=[I,UA]")
                .doesNotContain("UB")
                .doesNotContain("upsertMaterialize");
    }

    @Test
    void oldRowsOfAFilteredChangelogComeSinceTheirNewRowsMayNot() {
        create(env, "id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED", "");

        assertThat(
                        plan(
                                "INSERT INTO counts SELECT id, COUNT(*) FROM source GROUP BY id"
                                        + " HAVING COUNT(*) < 3"))
                .containsPattern("Calc\\(.*changelogMode=\\[I,UB,UA")
                .doesNotContain("upsertMaterialize");
    }

    @Test
    void changesByAnotherKeyAreBroughtIntoOrderByFlink() {
        create(env, "id BIGINT, n BIGINT, PRIMARY KEY (n) NOT ENFORCED", "");
        // Flink 2.3 asks for an ON CONFLICT here, which others do not know.
        env.getConfig().set("table.exec.sink.require-on-conflict", "false");

        assertThat(plan("INSERT INTO counts SELECT id, COUNT(*) FROM source GROUP BY id"))
                .contains("upsertMaterialize=[true]");
    }

    @Test
    void aTableWithoutAKeyTakesNoChanges() {
        create(env, "id BIGINT, n BIGINT", "");

        assertThatThrownBy(
                        () ->
                                plan(
                                        "INSERT INTO counts SELECT id, COUNT(*) FROM source GROUP BY id"))
                .hasStackTraceContaining("doesn't support consuming update changes");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "SELECT id, COUNT(*) FROM source GROUP BY id | with rows, not with changes of rows",
                "SELECT id, id FROM source | a stream cannot overwrite a table with a primary key"
            })
    void aStreamThatOverwritesATableWithAKeyIsRefused(String query, String message) {
        create(
                env,
                "id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED",
                ", 'write.mode'='overwrite'");

        assertThatThrownBy(() -> env.executeSql("INSERT INTO counts " + query))
                .hasStackTraceContaining(message);
    }

    @Test
    void aBatchJobMayOverwriteATableWithAKey() {
        TableEnvironment batch = TableEnvironment.create(EnvironmentSettings.inBatchMode());
        create(batch, "id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED", "");

        assertThatCode(() -> batch.explainSql("INSERT OVERWRITE counts VALUES (1, 2)"))
                .doesNotThrowAnyException();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ARRAY<FLOAT> | 'id': ARRAY<FLOAT> NOT NULL is no scalar type",
                "ROW<x INT> | is no scalar type",
                "MAP<STRING, INT> | is no scalar type"
            })
    void aKeyOfNoScalarTypeIsRefused(String type, String message) {
        create(env, "id " + type + ", n BIGINT, PRIMARY KEY (id) NOT ENFORCED", "");

        assertThatThrownBy(() -> plan("INSERT INTO counts SELECT * FROM counts"))
                .hasStackTraceContaining(message);
    }

    @Test
    void theColumnOfTheKindIsTheGateways() {
        create(env, "id BIGINT, _change_kind TINYINT, PRIMARY KEY (id) NOT ENFORCED", "");

        assertThatThrownBy(() -> plan("INSERT INTO counts SELECT * FROM counts"))
                .hasStackTraceContaining("cannot have a column '_change_kind'");
    }
}
