package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.Tables;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Unit;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.DescribeTableRequest;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every type goes into a table and comes back as it was. */
class TypesITCase extends FlinkAndGateway {

    private static ArrowSchema schema(String table) {
        return ArrowSchema.fromIpc(
                client().describeTable(
                                DescribeTableRequest.newBuilder()
                                        .setTable(Tables.named(table))
                                        .build())
                        .getSchema()
                        .toByteArray());
    }

    private static ArrowType type(String table, String column) {
        ArrowSchema schema = schema(table);
        return schema.field(schema.indexOf(column)).type();
    }

    @Test
    void simpleValues() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT NOT NULL, f32 FLOAT,"
                        + " f64 DOUBLE, c CHAR(2), vc VARCHAR(5), s STRING, b2 BINARY(2),"
                        + " vb VARBINARY(9), raw_bytes BYTES, d5 DECIMAL(5, 2), d38 DECIMAL(38, 10),"
                        + " dt DATE, tm TIME");
        String full =
                "(TRUE, CAST(-128 AS TINYINT), CAST(32767 AS SMALLINT), -42, 9223372036854775807,"
                        + " CAST(1.5 AS FLOAT), -2.25E0, CAST('ab' AS CHAR(2)),"
                        + " CAST('abc' AS VARCHAR(5)), 'Zürich 🎿', CAST(x'0102' AS BINARY(2)),"
                        + " CAST(x'00ff' AS VARBINARY(9)), CAST(x'' AS BYTES), -123.45,"
                        + " CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38, 10)),"
                        + " DATE '0001-01-01', TIME '23:59:59')";
        String empty =
                "(CAST(NULL AS BOOLEAN), CAST(NULL AS TINYINT), CAST(NULL AS SMALLINT),"
                        + " CAST(NULL AS INT), 0, CAST(NULL AS FLOAT), CAST(NULL AS DOUBLE),"
                        + " CAST(NULL AS CHAR(2)), CAST(NULL AS VARCHAR(5)), CAST(NULL AS STRING),"
                        + " CAST(NULL AS BINARY(2)), CAST(NULL AS VARBINARY(9)),"
                        + " CAST(NULL AS BYTES), CAST(NULL AS DECIMAL(5, 2)),"
                        + " CAST(NULL AS DECIMAL(38, 10)), CAST(NULL AS DATE), CAST(NULL AS TIME))";

        insert(env, "INSERT INTO " + table + " VALUES " + full);
        insert(env, "INSERT INTO " + table + " VALUES " + empty);

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[null, null, null, null, 0, null, null, null, null, null, null, null,"
                                + " null, null, null, null, null]",
                        "+I[true, -128, 32767, -42, 9223372036854775807, 1.5, -2.25, ab, abc,"
                                + " Zürich 🎿, [1, 2], [0, -1], [], -123.45,"
                                + " 1234567890123456789012345678.0123456789, 0001-01-01, 23:59:59]");
        assertThat(schema(table).fields())
                .containsExactly(
                        ArrowField.nullable("b", ArrowType.BOOL),
                        ArrowField.nullable("i8", ArrowType.INT8),
                        ArrowField.nullable("i16", ArrowType.INT16),
                        ArrowField.nullable("i32", ArrowType.INT32),
                        ArrowField.required("i64", ArrowType.INT64),
                        ArrowField.nullable("f32", ArrowType.FLOAT32),
                        ArrowField.nullable("f64", ArrowType.FLOAT64),
                        ArrowField.nullable("c", ArrowType.UTF8),
                        ArrowField.nullable("vc", ArrowType.UTF8),
                        ArrowField.nullable("s", ArrowType.UTF8),
                        ArrowField.nullable("b2", ArrowType.fixedSizeBinary(2)),
                        ArrowField.nullable("vb", ArrowType.BINARY),
                        ArrowField.nullable("raw_bytes", ArrowType.BINARY),
                        ArrowField.nullable("d5", ArrowType.decimal128(5, 2)),
                        ArrowField.nullable("d38", ArrowType.decimal128(38, 10)),
                        ArrowField.nullable("dt", ArrowType.DATE32),
                        ArrowField.nullable("tm", ArrowType.time32(Unit.MILLISECOND)));
    }

    @Test
    void timestampsKeepTheirPrecision() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9),"
                        + " z3 TIMESTAMP_LTZ(3), z6 TIMESTAMP_LTZ(6), z9 TIMESTAMP_LTZ(9)");
        String time = "TIMESTAMP '1969-12-31 23:59:59.123456789'";
        StringBuilder values = new StringBuilder();
        for (String type : new String[] {"TIMESTAMP", "TIMESTAMP_LTZ"}) {
            for (int precision : new int[] {0, 3, 6, 9}) {
                // Flink's own cast to TIMESTAMP_LTZ(0) rounds times before 1970 up.
                if (precision > 0 || type.equals("TIMESTAMP")) {
                    values.append(values.length() == 0 ? "" : ", ");
                    values.append(String.format("CAST(%s AS %s(%d))", time, type, precision));
                }
            }
        }

        insert(env, "INSERT INTO " + table + " SELECT " + values);

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1969-12-31T23:59:59, 1969-12-31T23:59:59.123,"
                                + " 1969-12-31T23:59:59.123456, 1969-12-31T23:59:59.123456789,"
                                + " 1969-12-31T23:59:59.123Z,"
                                + " 1969-12-31T23:59:59.123456Z, 1969-12-31T23:59:59.123456789Z]");
        assertThat(type(table, "t0")).isEqualTo(ArrowType.timestamp(Unit.SECOND));
        assertThat(type(table, "t3")).isEqualTo(ArrowType.timestamp(Unit.MILLISECOND));
        assertThat(type(table, "t6")).isEqualTo(ArrowType.timestamp(Unit.MICROSECOND));
        assertThat(type(table, "t9")).isEqualTo(ArrowType.timestamp(Unit.NANOSECOND));
        assertThat(type(table, "z9")).isEqualTo(ArrowType.timestamp(Unit.NANOSECOND, "UTC"));
    }

    @Test
    void instantsInWholeSeconds() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, z0 TIMESTAMP_LTZ(0)");

        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, TO_TIMESTAMP_LTZ(1704067201, 0)),"
                        + " (2, CAST(NULL AS TIMESTAMP_LTZ(0)))");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, 2024-01-01T00:00:01Z]", "+I[2, null]");
        assertThat(type(table, "z0")).isEqualTo(ArrowType.timestamp(Unit.SECOND, "UTC"));
    }

    @Test
    void nestedValues() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id INT, v ARRAY<FLOAT>, names ARRAY<STRING>, r ROW<a INT, b ROW<c STRING>>,"
                        + " deep ARRAY<ROW<x INT, y ARRAY<BIGINT>>>");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (1, ARRAY[CAST(0.5 AS FLOAT), CAST(-1 AS FLOAT)],"
                        + " ARRAY['a', CAST(NULL AS STRING), ''],"
                        + " CAST(ROW(7, ROW('c')) AS ROW<a INT, b ROW<c STRING>>),"
                        + " ARRAY[CAST(ROW(1, ARRAY[10, 20]) AS ROW<x INT, y ARRAY<BIGINT>>),"
                        + " CAST(NULL AS ROW<x INT, y ARRAY<BIGINT>>)])");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (2, CAST(NULL AS ARRAY<FLOAT>), CAST(NULL AS ARRAY<STRING>),"
                        + " CAST(NULL AS ROW<a INT, b ROW<c STRING>>),"
                        + " CAST(NULL AS ARRAY<ROW<x INT, y ARRAY<BIGINT>>>))");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1, [0.5, -1.0], [a, null, ], +I[7, +I[c]], [+I[1, [10, 20]], null]]",
                        "+I[2, null, null, null, null]");
        assertThat(type(table, "v")).isEqualTo(ArrowType.fixedSizeList(2));
        assertThat(type(table, "names")).isEqualTo(ArrowType.LIST);
    }

    @Test
    void mapsAndMultisets() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id INT, m MAP<STRING, INT>, bag MULTISET<STRING>",
                "'write.data-storage-version'='2.2'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " SELECT 1, MAP['k', 7], COLLECT(w) FROM (VALUES ('x'), ('x')) AS t(w)");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES (2, CAST(NULL AS MAP<STRING, INT>),"
                        + " CAST(NULL AS MULTISET<STRING>))");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, {k=7}, {x=2}]", "+I[2, null, null]");
        assertThat(type(table, "m")).isEqualTo(ArrowType.MAP);
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.0", "2.1", "2.2"})
    void aNullVectorShiftsNoNeighbour(String storage) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "id INT, v ARRAY<FLOAT>",
                "'write.data-storage-version'='" + storage + "'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " SELECT id, CASE WHEN id = 2 THEN CAST(NULL AS ARRAY<FLOAT>) ELSE"
                        + " ARRAY[CAST(id AS FLOAT), CAST(0 AS FLOAT), CAST(1 AS FLOAT), CAST(2 AS"
                        + " FLOAT)] END FROM (VALUES (1), (2), (3)) AS t(id)");

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1, [1.0, 0.0, 1.0, 2.0]]",
                        "+I[2, null]",
                        "+I[3, [3.0, 0.0, 1.0, 2.0]]");
        assertThat(type(table, "v")).isEqualTo(ArrowType.fixedSizeList(4));
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.1", "2.2"})
    void aNullStructStaysDifferentFromOneOfNulls(String storage) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        String type = "ROW<x INT, y STRING>";
        declare(env, table, "id INT, s " + type, "'write.data-storage-version'='" + storage + "'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + String.format(
                                " VALUES (1, CAST(ROW(1, 'v') AS %1$s)), (2, CAST(NULL AS %1$s)), (3,"
                                        + " CAST(ROW(CAST(NULL AS INT), CAST(NULL AS STRING)) AS %1$s)),"
                                        + " (4, CAST(ROW(4, 'v') AS %1$s))",
                                type));

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly(
                        "+I[1, +I[1, v]]",
                        "+I[2, null]",
                        "+I[3, +I[null, null]]",
                        "+I[4, +I[4, v]]");
    }

    @Test
    void theOldestStorageRefusesANullStruct() {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, s ROW<x INT>", "'write.data-storage-version'='2.0'");

        assertThatThrownBy(
                        () ->
                                insert(
                                        env,
                                        "INSERT INTO "
                                                + table
                                                + " VALUES (1, CAST(NULL AS ROW<x INT>))"))
                .hasStackTraceContaining("column 's' holds a null struct");
    }

    @ParameterizedTest
    @ValueSource(strings = {"2.1", "2.2"})
    void aNullStructMayHoldAVector(String storage) throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        String type = "ROW<v ARRAY<FLOAT>>";
        declare(env, table, "id INT, s " + type, "'write.data-storage-version'='" + storage + "'");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + String.format(
                                " VALUES (1, CAST(ROW(ARRAY[CAST(1 AS FLOAT)]) AS %1$s)),"
                                        + " (2, CAST(NULL AS %1$s)),"
                                        + " (3, CAST(ROW(ARRAY[CAST(3 AS FLOAT)]) AS %1$s))",
                                type));

        assertThat(query(env, "SELECT * FROM " + table))
                .containsExactly("+I[1, +I[[1.0]]]", "+I[2, null]", "+I[3, +I[[3.0]]]");
    }

    @Test
    void namesAreExact() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                "`PartyAbbrev` STRING, `user-id` INT, `a.b` INT, `select` INT, a ROW<b INT>");
        insert(
                env,
                "INSERT INTO "
                        + table
                        + " VALUES ('CDU', 1, 2, 3, CAST(ROW(4) AS ROW<b INT>)),"
                        + " ('SPD', 10, 20, 30, CAST(ROW(40) AS ROW<b INT>))");

        assertThat(
                        query(
                                env,
                                "SELECT `select`, `a.b`, `user-id`, `PartyAbbrev`, t.a.b FROM "
                                        + table
                                        + " AS t WHERE `PartyAbbrev` = 'CDU' AND `user-id` = 1 AND"
                                        + " `a.b` = 2 AND `select` = 3 AND t.a.b = 4"))
                .containsExactly("+I[3, 2, 1, CDU, 4]");
    }

    @Test
    void aStringColumnMayBeLarge() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "wide STRING, narrow STRING", "'write.large-string-columns'='wide'");

        insert(env, "INSERT INTO " + table + " VALUES ('a', 'b')");

        assertThat(query(env, "SELECT * FROM " + table + " WHERE wide = 'a'"))
                .containsExactly("+I[a, b]");
        assertThat(type(table, "wide")).isEqualTo(ArrowType.LARGE_UTF8);
        assertThat(type(table, "narrow")).isEqualTo(ArrowType.UTF8);
    }

    @Test
    void aTypeThatDoesNotFitTheTableIsRefusedWithItsColumn() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id INT, t TIMESTAMP(6)");
        insert(env, "INSERT INTO " + table + " VALUES (1, TIMESTAMP '2024-01-01 00:00:00')");
        declareAs(env, "narrow", table, "id INT, t TIMESTAMP(3)");
        declareAs(env, "wide", table, "id BIGINT");

        assertThatThrownBy(() -> query(env, "SELECT t FROM narrow"))
                .hasStackTraceContaining("column 't' is declared as TIMESTAMP(3)")
                .hasStackTraceContaining("declare it as TIMESTAMP(6)");
        assertThat(query(env, "SELECT id FROM wide")).containsExactly("+I[1]");
        assertThatThrownBy(() -> insert(env, "INSERT INTO wide VALUES (1)"))
                .hasStackTraceContaining("column 'id' is BIGINT in Flink, but the table has INT32");
    }
}
