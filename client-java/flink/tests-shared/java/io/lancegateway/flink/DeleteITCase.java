package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;

/** DELETE and TRUNCATE, which the gateway does by itself. */
class DeleteITCase extends FlinkAndGateway {

    private static final String ROWS = "(1, 'a'), (2, 'b'), (3, CAST(NULL AS STRING)), (4, 'd')";

    private static StreamTableEnvironment filled(String table) throws Exception {
        StreamTableEnvironment env = batch(1);
        declareAs(env, "t", table, "id BIGINT, name STRING");
        insert(env, "INSERT INTO t VALUES " + ROWS);
        return env;
    }

    @Test
    void rowsOfAFilterAreDeletedAsOneVersion() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table);
        int before = versions(table).size();
        env.executeSql("DELETE FROM t WHERE id > 1 AND name <> 'd'").await();
        assertThat(query(env, "SELECT * FROM t"))
                .containsExactly("+I[1, a]", "+I[3, null]", "+I[4, d]");
        env.executeSql("DELETE FROM t WHERE name IS NULL").await();
        assertThat(query(env, "SELECT * FROM t")).containsExactly("+I[1, a]", "+I[4, d]");
        assertThat(versions(table)).hasSize(before + 2);
    }

    @Test
    void aDeleteWithoutAFilterAndATruncationLeaveNoRow() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = filled(table);
        env.executeSql("DELETE FROM t").await();
        assertThat(count(table)).isZero();
        insert(env, "INSERT INTO t VALUES (7, 'g')");
        env.executeSql("TRUNCATE TABLE t").await();
        assertThat(count(table)).isZero();
        insert(env, "INSERT INTO t VALUES (8, 'h')");
        assertThat(query(env, "SELECT * FROM t")).containsExactly("+I[8, h]");
    }
}
