package io.lancegateway.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.InstantiationUtil;
import org.junit.jupiter.api.Test;

/** Which rows go to one writer. */
class KeyHashTest {

    private static final RowType ALL =
            row(
                    DataTypes.BOOLEAN(),
                    DataTypes.TINYINT(),
                    DataTypes.SMALLINT(),
                    DataTypes.INT(),
                    DataTypes.BIGINT(),
                    DataTypes.FLOAT(),
                    DataTypes.DOUBLE(),
                    DataTypes.STRING(),
                    DataTypes.BYTES(),
                    DataTypes.DECIMAL(9, 2),
                    DataTypes.DECIMAL(38, 10),
                    DataTypes.DATE(),
                    DataTypes.TIME(3),
                    DataTypes.TIMESTAMP(0),
                    DataTypes.TIMESTAMP(9),
                    DataTypes.TIMESTAMP_LTZ(3));

    private static RowType row(DataType... types) {
        DataTypes.Field[] fields = new DataTypes.Field[types.length];
        for (int i = 0; i < types.length; i++) {
            fields[i] = DataTypes.FIELD("f" + i, types[i]);
        }
        return (RowType) DataTypes.ROW(fields).getLogicalType();
    }

    private static GenericRowData full() {
        return GenericRowData.of(
                true,
                (byte) 1,
                (short) 2,
                3,
                4L,
                1.5f,
                2.5,
                StringData.fromString("Zürich"),
                new byte[] {1, 2, 3},
                DecimalData.fromBigDecimal(new BigDecimal("12.50"), 9, 2),
                DecimalData.fromBigDecimal(new BigDecimal("1234567890123.5"), 38, 10),
                19_000,
                1_000,
                TimestampData.fromEpochMillis(1_000),
                TimestampData.fromInstant(Instant.parse("2024-01-01T00:00:00.123456789Z")),
                TimestampData.fromEpochMillis(5));
    }

    private static int hash(KeyHash hash, RowData row) {
        return hash.getKey(row);
    }

    @Test
    void rowsOfOneKeyHaveOneHashHoweverTheyAreHeldAndWhereverItIsMade() throws Exception {
        KeyHash hash = new KeyHash(ALL, ALL.getFieldNames());
        RowData binary = new RowDataSerializer(ALL).toBinaryRow(full()).copy();
        KeyHash elsewhere = InstantiationUtil.clone(hash);

        assertThat(hash(hash, full())).isEqualTo(hash(hash, full()));
        assertThat(hash(hash, binary)).isEqualTo(hash(hash, full()));
        assertThat(hash(elsewhere, binary)).isEqualTo(hash(hash, full()));
    }

    @Test
    void eachColumnOfTheKeyCountsAndNoOther() {
        RowType type = row(DataTypes.INT(), DataTypes.INT(), DataTypes.STRING());
        KeyHash hash = new KeyHash(type, List.of("f0", "f1"));
        int some = hash(hash, GenericRowData.of(1, 2, null));

        assertThat(hash(hash, GenericRowData.of(1, 2, StringData.fromString("x")))).isEqualTo(some);
        assertThat(hash(hash, GenericRowData.of(1, 3, null))).isNotEqualTo(some);
        assertThat(hash(hash, GenericRowData.of(2, 2, null))).isNotEqualTo(some);
    }

    @Test
    void valuesThatATableKeepsAsOneHaveOneHash() {
        KeyHash floats = new KeyHash(row(DataTypes.FLOAT()), List.of("f0"));
        KeyHash doubles = new KeyHash(row(DataTypes.DOUBLE()), List.of("f0"));
        KeyHash decimals = new KeyHash(row(DataTypes.DECIMAL(9, 2)), List.of("f0"));
        KeyHash seconds = new KeyHash(row(DataTypes.TIMESTAMP(0)), List.of("f0"));

        assertThat(hash(floats, GenericRowData.of(-0.0f)))
                .isEqualTo(hash(floats, GenericRowData.of(0.0f)));
        assertThat(hash(doubles, GenericRowData.of(-0.0)))
                .isEqualTo(hash(doubles, GenericRowData.of(0.0)));
        assertThat(hash(doubles, GenericRowData.of(Double.longBitsToDouble(0x7ff8000000000001L))))
                .isEqualTo(hash(doubles, GenericRowData.of(Double.NaN)));
        assertThat(hash(decimals, GenericRowData.of(decimal("1.5", 1))))
                .isEqualTo(hash(decimals, GenericRowData.of(decimal("1.50", 2))));
        assertThat(hash(seconds, GenericRowData.of(TimestampData.fromEpochMillis(-1))))
                .isEqualTo(hash(seconds, GenericRowData.of(TimestampData.fromEpochMillis(-999))));
    }

    private static DecimalData decimal(String value, int scale) {
        return DecimalData.fromBigDecimal(new BigDecimal(value), 9, scale);
    }

    @Test
    void aKeyThatIsNullIsRefusedByName() {
        KeyHash hash = new KeyHash(row(DataTypes.INT().notNull()), List.of("f0"));

        assertThatThrownBy(() -> hash.getKey(GenericRowData.of((Object) null)))
                .hasMessage("primary key column 'f0' is null");
    }
}
