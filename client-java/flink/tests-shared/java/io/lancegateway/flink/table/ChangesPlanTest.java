package io.lancegateway.flink.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the planner makes of a table whose changes are followed. No gateway is needed to plan. */
class ChangesPlanTest {

    private static final String CHANGELOG = "'scan.mode'='changelog'";

    private final TableEnvironment env =
            TableEnvironment.create(EnvironmentSettings.inStreamingMode());

    private static void create(TableEnvironment env, String options) {
        env.executeSql(
                String.format(
                        "CREATE TABLE users (id BIGINT, name STRING, r ROW<x INT, y STRING>,"
                                + " v BIGINT NOT NULL METADATA FROM 'version' VIRTUAL,"
                                + " `timestamp` TIMESTAMP_LTZ(6) NOT NULL METADATA VIRTUAL,"
                                + " PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='lance',"
                                + " 'path'='users', %s)",
                        options));
    }

    private static String plan(TableEnvironment env, String sql) {
        return env.explainSql(sql, ExplainDetail.CHANGELOG_MODE)
                .replaceAll("(?s).*== Optimized Physical Plan ==", "")
                .replaceAll("(?s)== Optimized Execution Plan ==.*", "");
    }

    @Test
    void aChangelogHasAllKindsOfChanges() {
        create(env, CHANGELOG);

        assertThat(plan(env, "SELECT id, name FROM users"))
                .contains("changelogMode=[I,UB,UA,D]")
                .doesNotContain("ChangelogNormalize");
    }

    @Test
    void rowsThatAreAppendedAreInsertsAlone() {
        create(env, "'source.mode'='streaming'");

        assertThat(plan(env, "SELECT id, name FROM users")).contains("changelogMode=[I]");
    }

    @Test
    void onlyTheColumnsAndFieldsOfTheStatementAreRead() {
        create(env, CHANGELOG);

        assertThat(plan(env, "SELECT users.r.y, v, id FROM users"))
                .contains("project=[r_y, id], metadata=[version]");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "SELECT id FROM users WHERE id > 5",
                "SELECT id FROM users LIMIT 3",
                "SELECT COUNT(*) FROM users"
            })
    void conditionsLimitsAndCountsStayInFlink(String sql) {
        create(env, CHANGELOG);

        assertThat(plan(env, sql))
                .doesNotContain("filter=[>")
                .doesNotContain("limit=[3]]")
                .doesNotContain("aggregates=[grouping");
    }

    @Test
    void aBatchTakesNoChangelog() {
        TableEnvironment batch = TableEnvironment.create(EnvironmentSettings.inBatchMode());
        create(batch, CHANGELOG + ", 'scan.bounded.version'='3'");

        assertThatThrownBy(() -> plan(batch, "SELECT id FROM users"))
                .hasStackTraceContaining("only possible for INSERT-only table sources");
    }

    @Test
    void aScanThatEndsHasNoMetadata() {
        create(env, "'source.mode'='batch'");

        assertThatThrownBy(() -> plan(env, "SELECT id FROM users"))
                .hasStackTraceContaining("column 'v' is metadata, which only changes have");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'read.version'='3' | 'read.version' has no meaning for a streaming source",
                "'read.as-of-timestamp'='2024-01-01' | 'read.as-of-timestamp' has no meaning",
                "'read.limit'='3' | 'read.limit' has no meaning for a streaming source",
                "'read.filter'='id > 3' | 'read.filter' has no meaning for a streaming source",
                "'scan.startup.version'='3' | 'scan.startup.version' is for 'scan.startup.mode' = 'version'",
                "'scan.startup.mode'='version' | 'scan.startup.version' is missing",
                "'scan.startup.mode'='version','scan.startup.version'='-1' | there is no version -1",
                "'scan.startup.timestamp'='2024-01-01' | 'scan.startup.timestamp' is for",
                "'scan.startup.mode'='timestamp' | 'scan.startup.timestamp' is missing",
                "'scan.startup.mode'='timestamp','scan.startup.timestamp'='soon' | 'soon' is no ISO-8601 time",
                "'scan.startup.mode'='version','scan.startup.version'='5','scan.bounded.version'='4' | nothing would be read",
                "'scan.bounded.version'='0' | there is no version 0",
                "'scan.bounded.mode'='version' | 'scan.bounded.version' is missing",
                "'scan.bounded.mode'='latest','scan.bounded.version'='3' | 'scan.bounded.version' is for 'scan.bounded.mode' = 'version'",
                "'source.discovery-interval'='0' | 'source.discovery-interval': the discovery interval must be positive",
                "'scan.consumer-id'='a b' | 'a b' names no consumer"
            })
    void aWrongOptionOfAFeedFailsWhenPlanned(String options, String message) {
        create(env, CHANGELOG + ", " + options);

        assertThatThrownBy(() -> plan(env, "SELECT id FROM users"))
                .hasStackTraceContaining(message);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "'scan.startup.mode'='latest'",
                "'scan.bounded.version'='3'",
                "'scan.missing-versions'='skip'",
                "'scan.consumer-id'='a'"
            })
    void anOptionOfAFeedIsRefusedForAScanThatEnds(String option) {
        env.executeSql(
                "CREATE TABLE users (id BIGINT) WITH ('connector'='lance', 'path'='users', "
                        + option
                        + ")");

        assertThatThrownBy(() -> plan(env, "SELECT id FROM users"))
                .hasStackTraceContaining("is for a streaming source: set 'source.mode'");
    }
}
