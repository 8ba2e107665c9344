package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.flink.testing.FlinkAndGateway;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.metrics.Counter;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lookup joins through SQL. */
class LookupITCase extends FlinkAndGateway {

    private static final String COLUMNS = "id BIGINT, `Col.our` STRING, info ROW<kind STRING>";
    private static final String SYNC = "/*+ LOOKUP('table'='t', 'async'='false') */";
    private static final String ASYNC = "/*+ LOOKUP('table'='t', 'async'='true') */";

    /** Orders with a key that is there twice, one that is not there, and none. */
    private static final String ORDERS =
            "(SELECT o, k, c, PROCTIME() AS p FROM (VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30,"
                    + " 'a'), (4, 99, 'a'), (5, CAST(NULL AS INT), 'a')) AS v (o, k, c))";

    /** Keys 10, 20, 30 with colours; 30 is there twice. */
    private static String colours(StreamTableEnvironment env, String... options) throws Exception {
        String table = newTable();
        StreamTableEnvironment batch = batch(1);
        declare(batch, table, COLUMNS);
        insert(
                batch,
                "INSERT INTO "
                        + table
                        + " VALUES (10, 'red', ROW('a')), (20, 'green', ROW('b')), (30, 'blue',"
                        + " ROW('a')), (30, 'navy', ROW('b'))");
        declareAs(env, table, table, COLUMNS, options);
        return table;
    }

    @ParameterizedTest
    @ValueSource(strings = {SYNC, ASYNC})
    void rowsAreFoundByKeyAndANullFindsNothing(String hint) throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = colours(env);

        assertThat(join(env, hint, "o, `Col.our`", "", table, "o.k = t.id"))
                .containsExactly("+I[1, red]", "+I[2, green]", "+I[3, blue]", "+I[3, navy]");
        assertThat(join(env, hint, "o, `Col.our`", "LEFT", table, "o.k = t.id"))
                .containsExactly(
                        "+I[1, red]",
                        "+I[2, green]",
                        "+I[3, blue]",
                        "+I[3, navy]",
                        "+I[4, null]",
                        "+I[5, null]");
    }

    @ParameterizedTest
    @ValueSource(strings = {SYNC, ASYNC})
    void anyColumnsAreKeysAndConditionsOnTheTableHold(String hint) throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = colours(env);

        assertThat(
                        join(
                                env,
                                hint,
                                "o",
                                "",
                                table,
                                "t.`Col.our` = CASE o.c WHEN 'b' THEN 'green' END"))
                .containsExactly("+I[2]");
        assertThat(join(env, hint, "o, t.id", "", table, "o.k = t.id AND t.`Col.our` <> 'navy'"))
                .containsExactly("+I[1, 10]", "+I[2, 20]", "+I[3, 30]");
        assertThat(
                        join(
                                env,
                                hint,
                                "o, t.`Col.our`, t.info.kind",
                                "",
                                table,
                                "o.k = t.id AND t.`Col.our` = CASE o.o WHEN 3 THEN 'navy' ELSE"
                                        + " 'red' END"))
                .containsExactly("+I[1, red, a]", "+I[3, navy, b]");
    }

    @Test
    void optionsOfTheTableHoldForLookups() throws Exception {
        StreamTableEnvironment env = streaming(1);
        String filtered = colours(env, "'read.filter'='id < 30'");
        assertThat(join(env, SYNC, "o", "", filtered, "o.k = t.id"))
                .containsExactly("+I[1]", "+I[2]");

        String old = colours(env, "'read.version'='2'");
        insert(batchWith(old), "INSERT INTO " + old + " VALUES (99, 'black', ROW('c'))");
        assertThat(join(env, SYNC, "o", "", old, "o.k = t.id")).doesNotContain("+I[4]");

        String newest = colours(env);
        insert(batchWith(newest), "INSERT INTO " + newest + " VALUES (99, 'black', ROW('c'))");
        assertThat(join(env, SYNC, "o", "", newest, "o.k = t.id")).contains("+I[4]");
    }

    @Test
    void aCacheAnswersKeysThatCameBefore() throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = colours(env, "'lookup.cache'='PARTIAL'");
        numbers(env, "n_" + table, 1, 1000);

        TableResult counting =
                env.executeSql(
                        "SELECT "
                                + SYNC
                                + " COUNT(*) AS c FROM (SELECT 10 + n % 2 * 10 AS k, PROCTIME()"
                                + " AS p FROM n_"
                                + table
                                + ") AS o JOIN "
                                + table
                                + " FOR SYSTEM_TIME AS OF o.p AS t ON o.k = t.id");
        JobID job = counting.getJobClient().orElseThrow().getJobID();
        try (CloseableIterator<Row> rows = counting.collect()) {
            Row last = null;
            while (rows.hasNext()) {
                last = rows.next();
            }
            assertThat(last).isNotNull().asString().endsWith("[1000]");
        }
        assertThat(cacheCounter(job, "missCount")).isEqualTo(2);
        assertThat(cacheCounter(job, "hitCount")).isEqualTo(998);
    }

    private static long cacheCounter(JobID job, String name) {
        return metrics().findMetrics(job, "cache." + name).values().stream()
                .mapToLong(metric -> ((Counter) metric).getCount())
                .sum();
    }

    @ParameterizedTest
    @ValueSource(strings = {"NONE", "PARTIAL"})
    void aRetryFindsARowThatComesLateAlsoWithACache(String cache) throws Exception {
        StreamTableEnvironment env = streaming(1);
        String table = colours(env, "'lookup.cache'='" + cache + "'");
        String retrying =
                "/*+ LOOKUP('table'='t', 'async'='false', 'retry-predicate'='lookup_miss',"
                        + " 'retry-strategy'='fixed_delay', 'fixed-delay'='20 ms',"
                        + " 'max-attempts'='3000') */";
        String late = newTable();
        declare(env, late, COLUMNS);
        TableResult running =
                env.executeSql(
                        "INSERT INTO "
                                + late
                                + " SELECT "
                                + retrying
                                + " t.* FROM "
                                + ORDERS
                                + " AS o JOIN "
                                + table
                                + " FOR SYSTEM_TIME AS OF o.p AS t ON o.k = t.id AND o.o = 4");
        insert(batchWith(table), "INSERT INTO " + table + " VALUES (99, 'black', ROW('c'))");
        running.await();

        assertThat(count(late)).isEqualTo(1);
    }

    @Test
    void whatALookupCannotDoIsRefused() throws Exception {
        StreamTableEnvironment env = streaming(1);
        assertThatThrownBy(
                        () ->
                                join(
                                        env,
                                        SYNC,
                                        "o",
                                        "",
                                        colours(env, "'read.limit'='3'"),
                                        "o.k = t.id"))
                .hasStackTraceContaining("'read.limit' has no meaning in a lookup join");
        assertThatThrownBy(
                        () ->
                                join(
                                        env,
                                        SYNC,
                                        "o",
                                        "",
                                        colours(env, "'read.columns'='id'"),
                                        "o.c = t.`Col.our`"))
                .hasStackTraceContaining("'Col.our', which 'read.columns' leaves out");
        assertThatThrownBy(
                        () ->
                                join(
                                        env,
                                        SYNC,
                                        "o",
                                        "",
                                        colours(env, "'lookup.cache'='FULL'"),
                                        "o.k = t.id"))
                .hasStackTraceContaining("'lookup.cache' = 'FULL' is not supported");
        String gone = newTable();
        declare(env, gone, "id BIGINT");
        assertThatThrownBy(() -> join(env, ASYNC, "o", "", gone, "o.k = t.id"))
                .hasStackTraceContaining("TABLE_NOT_FOUND");
    }

    /** An environment that knows the table, for batch statements. */
    private static StreamTableEnvironment batchWith(String table) {
        StreamTableEnvironment env = batch(1);
        declare(env, table, COLUMNS);
        return env;
    }

    private static List<String> join(
            StreamTableEnvironment env,
            String hint,
            String columns,
            String kind,
            String table,
            String condition)
            throws Exception {
        return query(
                env,
                "SELECT "
                        + hint
                        + " "
                        + columns
                        + " FROM "
                        + ORDERS
                        + " AS o "
                        + kind
                        + " JOIN "
                        + table
                        + " FOR SYSTEM_TIME AS OF o.p AS t ON "
                        + condition);
    }
}
