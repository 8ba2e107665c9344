package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.Changelog;
import io.lancegateway.flink.testing.FlinkAndGateway;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.List;
import java.util.stream.Stream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Columns of each scalar type tell rows apart. */
class KeyTypesITCase extends FlinkAndGateway {

    static Stream<Arguments> types() {
        LocalDateTime time = LocalDateTime.parse("1969-12-31T23:59:59.123456789");
        return Stream.of(
                Arguments.of(DataTypes.BOOLEAN(), false, true),
                Arguments.of(DataTypes.TINYINT(), (byte) -128, (byte) 127),
                Arguments.of(DataTypes.SMALLINT(), (short) -1, (short) 1),
                Arguments.of(DataTypes.INT(), Integer.MIN_VALUE, 0),
                Arguments.of(DataTypes.BIGINT(), Long.MAX_VALUE, Long.MIN_VALUE),
                Arguments.of(DataTypes.FLOAT(), 1.5f, -1.5f),
                Arguments.of(DataTypes.DOUBLE(), 0.1, -1e300),
                Arguments.of(DataTypes.CHAR(3), "abc", "abd"),
                Arguments.of(DataTypes.VARCHAR(9), "", "it's"),
                Arguments.of(DataTypes.STRING(), "Zürich 🎿", "zürich 🎿"),
                Arguments.of(DataTypes.BINARY(2), new byte[] {0, 1}, new byte[] {0, -1}),
                Arguments.of(DataTypes.VARBINARY(9), new byte[] {1}, new byte[] {1, 0}),
                Arguments.of(DataTypes.BYTES(), new byte[0], new byte[] {0}),
                Arguments.of(DataTypes.DECIMAL(9, 2), decimal("-1234567.89"), decimal("0.00")),
                Arguments.of(
                        DataTypes.DECIMAL(38, 10),
                        decimal("1234567890123456789012345678.0123456789"),
                        decimal("1234567890123456789012345678.0123456788")),
                Arguments.of(
                        DataTypes.DATE(),
                        LocalDate.parse("0001-01-01"),
                        LocalDate.parse("2024-02-29")),
                Arguments.of(
                        DataTypes.TIME(0),
                        LocalTime.parse("00:00:00"),
                        LocalTime.parse("23:59:59")),
                Arguments.of(
                        DataTypes.TIMESTAMP(0), time.withNano(0), time.plusSeconds(1).withNano(0)),
                Arguments.of(
                        DataTypes.TIMESTAMP(3), millis(time), millis(time).plusNanos(1_000_000)),
                Arguments.of(
                        DataTypes.TIMESTAMP(6),
                        time.withNano(123_456_000),
                        time.withNano(123_457_000)),
                Arguments.of(DataTypes.TIMESTAMP(9), time, time.plusNanos(1)),
                Arguments.of(
                        DataTypes.TIMESTAMP_LTZ(3),
                        Instant.parse("2024-01-01T00:00:00.123Z"),
                        Instant.parse("2024-01-01T00:00:00.124Z")));
    }

    private static BigDecimal decimal(String text) {
        return new BigDecimal(text);
    }

    private static LocalDateTime millis(LocalDateTime time) {
        return time.withNano(123_000_000);
    }

    @ParameterizedTest
    @MethodSource("types")
    void rowsAreReplacedAndDeletedByAKeyOfEachType(DataType key, Object one, Object other)
            throws Exception {
        String table = newTable();
        upsert(table, key, List.of(Row.of(one, "one"), Row.of(other, "other")));

        upsert(
                table,
                key,
                List.of(
                        Row.ofKind(RowKind.UPDATE_AFTER, one, "again"),
                        Row.ofKind(RowKind.DELETE, other, null)));

        assertThat(values(table, key)).containsExactly("+I[again]");
        upsert(table, key, List.of(Row.of(other, "back")));
        assertThat(values(table, key)).containsExactly("+I[again]", "+I[back]");
    }

    private static void upsert(String table, DataType key, List<Row> changes) throws Exception {
        DataType type =
                DataTypes.ROW(
                        DataTypes.FIELD("k", key.notNull()),
                        DataTypes.FIELD("v", DataTypes.STRING()));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        Changelog.rowData(Changelog.rows(env, type, changes), type)
                .sinkTo(
                        LanceSink.builder()
                                .path(table)
                                .gatewayUri(gateway().uri())
                                .rowType((RowType) type.getLogicalType())
                                .primaryKey(List.of("k"))
                                .build());
        env.execute();
    }

    private static List<String> values(String table, DataType key) throws Exception {
        StreamTableEnvironment env = batch(1);
        declare(
                env,
                table,
                String.format(
                        "k %s NOT NULL, v STRING", key.getLogicalType().asSerializableString()));
        return query(env, "SELECT v FROM " + table);
    }
}
