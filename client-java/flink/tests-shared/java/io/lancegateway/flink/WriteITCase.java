package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.Tables;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DescribeTableResponse;
import io.lancegateway.proto.v1.TableVersion;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** INSERT through SQL. */
class WriteITCase extends FlinkAndGateway {

    private static final String COLUMNS = "id BIGINT, name STRING";

    private static StreamTableEnvironment env(String mode, int parallelism) {
        return mode.equals("batch") ? batch(parallelism) : streaming(parallelism);
    }

    private static DescribeTableResponse describe(String table) {
        return client().describeTable(
                        DescribeTableRequest.newBuilder().setTable(Tables.named(table)).build());
    }

    private static List<ArrowField> columns(String table) {
        return ArrowSchema.fromIpc(describe(table).getSchema().toByteArray()).fields();
    }

    private static List<String> operations(String table) {
        return versions(table).stream()
                .map(TableVersion::getOperation)
                .collect(Collectors.toList());
    }

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void twoWritersCreateATableOnceAndALaterJobAppends(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = env(mode, 2);
        declare(env, table, COLUMNS);
        numbers(env, "six", 1, 6);
        numbers(env, "three", 7, 9);

        insert(env, "INSERT INTO " + table + " SELECT n, CAST(n AS STRING) FROM six");
        assertThat(count(table)).isEqualTo(6);
        insert(env, "INSERT INTO " + table + " SELECT n, CAST(n AS STRING) FROM three");

        assertThat(count(table)).isEqualTo(9);
        assertThat(operations(table)).endsWith("Append", "Append").hasSize(3);
        assertThat(operations(table).subList(1, 3)).doesNotContain("Overwrite");
    }

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void aJobThatEndsBeforeItsFirstCheckpointCommitsItsRows(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = env(mode, 1);
        env.getConfig().set("execution.checkpointing.interval", "10 min");
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");

        assertThat(count(table)).isEqualTo(10);
    }

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void aJobWithoutCheckpointsCommitsAtItsEnd(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = env(mode, 2);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");

        assertThat(count(table)).isEqualTo(10);
    }

    @ParameterizedTest
    @ValueSource(strings = {"streaming", "batch"})
    void aJobWithoutRowsMakesNoVersion(String mode) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = env(mode, 2);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);
        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");
        List<String> before = operations(table);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten WHERE n > 10");

        assertThat(operations(table)).isEqualTo(before);
    }

    @Test
    void aJobWithoutRowsCreatesNoTable() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten WHERE n > 10");

        assertThatThrownBy(() -> count(table))
                .isInstanceOfSatisfying(
                        LanceGatewayException.class,
                        e -> assertThat(e.reason()).isEqualTo(Reason.TABLE_NOT_FOUND));
    }

    @Test
    void insertOverwriteReplacesTheRowsOnce() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);
        numbers(env, "four", 11, 14);
        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");

        insert(env, "INSERT OVERWRITE " + table + " SELECT n, 'y' FROM four");

        assertThat(query(env, "SELECT id FROM " + table))
                .containsExactly("+I[11]", "+I[12]", "+I[13]", "+I[14]");
    }

    @Test
    void insertOverwriteWithoutRowsEmptiesTheTable() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);
        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");

        insert(env, "INSERT OVERWRITE " + table + " SELECT n, 'y' FROM ten WHERE n > 10");

        assertThat(count(table)).isZero();
    }

    @Test
    void insertOverwriteCanChangeTheColumns() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);
        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");
        declareAs(env, "other", table, "id BIGINT, score DOUBLE");

        insert(env, "INSERT OVERWRITE other SELECT n, n / 2.0 FROM ten WHERE n < 3");

        assertThat(query(env, "SELECT * FROM other")).containsExactly("+I[1, 0.5]", "+I[2, 1.0]");
    }

    @Test
    void anOverwritingStreamReplacesOnceAndThenAppends() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = streaming(2);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);
        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM ten");
        env.getConfig().set("execution.checkpointing.interval", "50 ms");
        env.executeSql(
                "CREATE TEMPORARY TABLE slow (n BIGINT) WITH ('connector'='datagen',"
                        + " 'rows-per-second'='40', 'fields.n.kind'='sequence',"
                        + " 'fields.n.start'='100', 'fields.n.end'='139')");
        declareAs(env, "replaced", table, COLUMNS, "'write.mode'='overwrite'");

        insert(env, "INSERT INTO replaced SELECT n, 'y' FROM slow");

        assertThat(count(table)).isEqualTo(40);
        assertThat(operations(table).stream().filter("Overwrite"::equals))
                .hasSizeLessThanOrEqualTo(2);
    }

    @Test
    void eachCheckpointMakesOneVersionWhateverTheParallelism() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = streaming(3);
        declare(env, table, COLUMNS);
        numbers(env, "numbers", 1, 300_000);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM numbers");

        assertThat(count(table)).isEqualTo(300_000);
        assertThat(operations(table)).hasSize(2);
    }

    @Test
    void aFileHoldsAsManyRowsAsTheOptionSays() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS, "'write.max-rows-per-file'='10'");
        numbers(env, "numbers", 1, 25);

        insert(env, "INSERT INTO " + table + " SELECT n, 'x' FROM numbers");

        assertThat(describe(table).getNumFragments()).isEqualTo(3);
        assertThat(count(table)).isEqualTo(25);
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.0", "2.1", "2.2"})
    void aNewTableHasTheStorageVersionOfTheOption(String storage) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS, "'write.data-storage-version'='" + storage + "'");

        insert(env, "INSERT INTO " + table + " VALUES (1, 'a')");

        assertThat(describe(table).getDataStorageVersion()).isEqualTo(storage);
    }

    @Test
    void theJobIsNamedOnTheVersion() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        numbers(env, "ten", 1, 10);

        JobClient job =
                env.executeSql("INSERT INTO " + table + " SELECT n, 'x' FROM ten")
                        .getJobClient()
                        .get();
        job.getJobExecutionResult().get();

        List<TableVersion> versions = versions(table);
        assertThat(versions.get(versions.size() - 1).getPropertiesMap())
                .containsEntry("flink.job-id", job.getJobID().toHexString());
    }

    @Test
    void literalsMakeATableOfVectors() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT, content STRING, embedding ARRAY<FLOAT>");

        insert(
                env,
                "INSERT INTO " + table + " VALUES (1, 'Hello World', ARRAY[0.1, 0.2, 0.3, 0.4])");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, Hello World, [0.1, 0.2, 0.3, 0.4]]");
        assertThat(columns(table))
                .containsExactly(
                        ArrowField.nullable("id", ArrowType.INT64),
                        ArrowField.nullable("content", ArrowType.UTF8),
                        ArrowField.nullable(
                                "embedding",
                                ArrowType.fixedSizeList(4),
                                ArrowField.nullable("item", ArrowType.FLOAT32)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.0", "2.1", "2.2"})
    void aNewTableWhoseFirstVectorIsNullKeepsListsOfAnyLength(String storage) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id BIGINT, v ARRAY<FLOAT>",
                "'write.data-storage-version'='" + storage + "'");

        insert(
                env,
                "INSERT INTO "
                        + table
                        + " SELECT id, CASE id WHEN 1 THEN CAST(NULL AS ARRAY<FLOAT>)"
                        + " ELSE ARRAY[CAST(0.5 AS FLOAT), CAST(1.5 AS FLOAT)] END"
                        + " FROM (VALUES (1), (2)) AS t(id)");
        insert(env, "INSERT INTO " + table + " VALUES (3, ARRAY[2.5])");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, null]", "+I[2, [0.5, 1.5]]", "+I[3, [2.5]]");
        assertThat(columns(table).get(1).type()).isEqualTo(ArrowType.LIST);
    }

    @Test
    void vectorsOfANewTableHaveTheLengthOfTheFirst() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT, v ARRAY<FLOAT>");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, ARRAY[CAST(0.5 AS FLOAT), CAST(1 AS FLOAT)])");

        assertThatThrownBy(
                        () ->
                                insert(
                                        env,
                                        "INSERT INTO "
                                                + table
                                                + " VALUES (2, ARRAY[CAST(0.5 AS FLOAT)])"))
                .hasStackTraceContaining(
                        "row 0 of this writer, column 'v': the vector has 1 elements, the column"
                                + " takes 2");
        assertThat(count(table)).isEqualTo(1);
    }

    @Test
    void columnsThatAStatementLeavesOutAreNull() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT, name STRING, score DOUBLE");
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a', 0.5)");
        declareAs(env, "narrow", table, "score DOUBLE, id BIGINT");

        insert(env, "INSERT INTO narrow VALUES (1.5, 2)");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, a, 0.5]", "+I[2, null, 1.5]");
    }

    @Test
    void aColumnThatTheTableLacksIsRefused() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        insert(env, "INSERT INTO " + table + " VALUES (1, 'a')");
        declareAs(env, "wider", table, "id BIGINT, name STRING, more INT");

        assertThatThrownBy(() -> insert(env, "INSERT INTO wider VALUES (1, 'a', 2)"))
                .hasStackTraceContaining("column 'more' does not exist in the table");
    }

    @Test
    void valuesNeedNoCheckpointsInAStreamingSession() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = streaming(1);
        declare(env, table, COLUMNS);

        insert(env, "INSERT INTO " + table + " VALUES (1, 'a'), (2, 'b')");

        assertThat(count(table)).isEqualTo(2);
    }

    @Test
    void anEndlessJobWithoutCheckpointsIsRefused() {
        String table = newTable();
        StreamTableEnvironment env = streaming(1);
        declare(env, table, COLUMNS);
        env.executeSql(
                "CREATE TEMPORARY TABLE endless (n BIGINT, word STRING)"
                        + " WITH ('connector'='datagen')");

        assertThatThrownBy(() -> insert(env, "INSERT INTO " + table + " SELECT * FROM endless"))
                .hasStackTraceContaining("checkpointing is off and source 'endless")
                .hasStackTraceContaining("never ends: set 'execution.checkpointing.interval'");
    }

    @Test
    void vectorsHaveTheLengthOfTheOptionWhateverTheFirstRowHolds() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id BIGINT, v ARRAY<FLOAT>, w ARRAY<FLOAT>",
                "'write.vector-dimensions'='v:2,w:1'");

        insert(env, "INSERT INTO " + table + " VALUES (1, CAST(NULL AS ARRAY<FLOAT>), ARRAY[5])");
        insert(env, "INSERT INTO " + table + " VALUES (2, ARRAY[0.5, 1], ARRAY[6])");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, null, [5.0]]", "+I[2, [0.5, 1.0], [6.0]]");
        assertThatThrownBy(
                        () ->
                                insert(
                                        env,
                                        "INSERT INTO " + table + " VALUES (3, ARRAY[1], ARRAY[1])"))
                .hasStackTraceContaining("the vector has 1 elements, the column takes 2");
    }

    @Test
    void anOverwriteCanChangeTheLengthOfVectorsByTheOption() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT, v ARRAY<FLOAT>");
        insert(env, "INSERT INTO " + table + " VALUES (1, ARRAY[0.5, 1])");
        declareAs(
                env,
                "other",
                table,
                "id BIGINT, v ARRAY<FLOAT>",
                "'write.vector-dimensions'='v:3'");

        insert(env, "INSERT OVERWRITE other VALUES (1, CAST(NULL AS ARRAY<FLOAT>))");
        insert(env, "INSERT INTO other VALUES (2, ARRAY[1, 2, 3])");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, null]", "+I[2, [1.0, 2.0, 3.0]]");
    }
}
