package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Unit;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.types.FlinkTypes;
import io.lancegateway.flink.types.RowAppender;
import io.lancegateway.flink.types.TypeMismatchException;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.Test;

/** Rows of Flink become Arrow batches, and these become the same rows again. */
class RowRoundTripTest {

    private static final DataType ALL =
            DataTypes.ROW(
                    DataTypes.FIELD("bool", DataTypes.BOOLEAN()),
                    DataTypes.FIELD("i8", DataTypes.TINYINT()),
                    DataTypes.FIELD("i16", DataTypes.SMALLINT()),
                    DataTypes.FIELD("i32", DataTypes.INT()),
                    DataTypes.FIELD("i64", DataTypes.BIGINT().notNull()),
                    DataTypes.FIELD("f32", DataTypes.FLOAT()),
                    DataTypes.FIELD("f64", DataTypes.DOUBLE()),
                    DataTypes.FIELD("c", DataTypes.CHAR(3)),
                    DataTypes.FIELD("s", DataTypes.STRING()),
                    DataTypes.FIELD("b4", DataTypes.BINARY(4)),
                    DataTypes.FIELD("bytes", DataTypes.BYTES()),
                    DataTypes.FIELD("d9", DataTypes.DECIMAL(9, 2)),
                    DataTypes.FIELD("d38", DataTypes.DECIMAL(38, 10)),
                    DataTypes.FIELD("date", DataTypes.DATE()),
                    DataTypes.FIELD("time", DataTypes.TIME(3)),
                    DataTypes.FIELD("t0", DataTypes.TIMESTAMP(0)),
                    DataTypes.FIELD("t3", DataTypes.TIMESTAMP(3)),
                    DataTypes.FIELD("t6", DataTypes.TIMESTAMP(6)),
                    DataTypes.FIELD("t9", DataTypes.TIMESTAMP(9)),
                    DataTypes.FIELD("z0", DataTypes.TIMESTAMP_LTZ(0)),
                    DataTypes.FIELD("z3", DataTypes.TIMESTAMP_LTZ(3)),
                    DataTypes.FIELD("z9", DataTypes.TIMESTAMP_LTZ(9)),
                    DataTypes.FIELD("vector", DataTypes.ARRAY(DataTypes.FLOAT())),
                    DataTypes.FIELD("strings", DataTypes.ARRAY(DataTypes.STRING())),
                    DataTypes.FIELD(
                            "map", DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.INT())),
                    DataTypes.FIELD("bag", DataTypes.MULTISET(DataTypes.STRING().notNull())),
                    DataTypes.FIELD(
                            "row",
                            DataTypes.ROW(
                                    DataTypes.FIELD("x", DataTypes.INT()),
                                    DataTypes.FIELD("y", DataTypes.ARRAY(DataTypes.FLOAT())))));

    private static final RowType ALL_TYPES = (RowType) ALL.getLogicalType();

    @Test
    void everyTypeComesBackAsItWas() throws IOException {
        List<RowData> rows = List.of(fullRow(), emptyRow(), fullRow());
        ArrowSchema schema = schema(ALL_TYPES, 2);

        assertThat(roundTrip(ALL_TYPES, schema, rows)).isEqualTo(binary(ALL_TYPES, rows));
    }

    @Test
    void rowsThatCameFromATableCanBeWrittenAgain() throws IOException {
        List<RowData> rows = List.of(fullRow(), emptyRow());
        ArrowSchema schema = schema(ALL_TYPES, 2);
        ArrowBatch first = decode(schema, append(ALL_TYPES, schema, rows));
        RowBatch columnar = spec(ALL_TYPES).reader(schema).read(first);
        ArrowBatchBuilder again = new ArrowBatchBuilder(schema);
        RowAppender appender = new RowAppender(ALL_TYPES, again);
        for (int i = 0; i < columnar.rows(); i++) {
            appender.append(columnar.row(i));
        }

        RowBatch second = spec(ALL_TYPES).reader(schema).read(decode(schema, again));

        assertThat(binary(ALL_TYPES, second)).isEqualTo(binary(ALL_TYPES, rows));
    }

    @Test
    void theTypesOfATableAreThoseItWasCreatedWith() {
        RowType found = FlinkTypes.rowType(schema(ALL_TYPES, 0));

        assertThat(found.getFieldNames()).isEqualTo(ALL_TYPES.getFieldNames());
        for (int i = 0; i < found.getFieldCount(); i++) {
            String name = found.getFieldNames().get(i);
            // Arrow has one type of strings.
            if (!name.equals("c")) {
                assertThat(found.getTypeAt(i)).as(name).isEqualTo(ALL_TYPES.getTypeAt(i));
            }
        }
    }

    @Test
    void nullsInNestedValuesShiftNoNeighbour() throws IOException {
        RowType type =
                row(
                        DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())),
                        DataTypes.FIELD(
                                "s",
                                DataTypes.ROW(
                                        DataTypes.FIELD("a", DataTypes.INT()),
                                        DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())))));
        ArrowSchema schema = schema(type, 4);
        List<RowData> rows =
                List.of(
                        GenericRowData.of(floats(1, 2, 3, 4), GenericRowData.of(1, floats(1, 2))),
                        GenericRowData.of(null, null),
                        GenericRowData.of(floats(5, 6, 7, 8), GenericRowData.of(null, null)),
                        GenericRowData.of(null, GenericRowData.of(4, floats(3))));

        assertThat(roundTrip(type, schema, rows)).isEqualTo(binary(type, rows));
    }

    @Test
    void aFieldOfANullStructIsNullWhenItIsReadAlone() throws IOException {
        RowType type =
                row(DataTypes.FIELD("s", DataTypes.ROW(DataTypes.FIELD("a", DataTypes.INT()))));
        ArrowSchema schema = schema(type, 0);
        List<RowData> rows =
                List.of(
                        GenericRowData.of(GenericRowData.of(7)),
                        GenericRowData.of((Object) null),
                        GenericRowData.of(GenericRowData.of((Object) null)));
        RowType projected = row(DataTypes.FIELD("s_a", DataTypes.INT()));
        ScanSpec spec =
                ScanSpec.rows(
                        ScanRequest.getDefaultInstance(), projected, List.of(List.of("s", "a")));

        RowBatch batch = spec.reader(schema).read(decode(schema, append(type, schema, rows)));

        assertThat(batch.row(0).getInt(0)).isEqualTo(7);
        assertThat(batch.row(1).isNullAt(0)).isTrue();
        assertThat(batch.row(2).isNullAt(0)).isTrue();
    }

    @Test
    void columnsAreMatchedByNameAndMissingOnesBecomeNull() throws IOException {
        RowType written =
                row(
                        DataTypes.FIELD("b", DataTypes.STRING()),
                        DataTypes.FIELD("a", DataTypes.INT()));
        ArrowSchema table =
                ArrowSchema.of(
                        ArrowField.nullable("a", ArrowType.INT32),
                        ArrowField.nullable("other", ArrowType.FLOAT64),
                        ArrowField.nullable("b", ArrowType.LARGE_UTF8));
        RowType all = FlinkTypes.rowType(table);
        List<RowData> rows = List.of(GenericRowData.of(StringData.fromString("x"), 1));

        ArrowBatch batch = decode(table, append(written, table, rows));

        assertThat(binary(all, spec(all).reader(table).read(batch)))
                .isEqualTo(
                        binary(
                                all,
                                List.of(GenericRowData.of(1, null, StringData.fromString("x")))));
    }

    @Test
    void narrowerColumnsAreReadAsWiderTypes() throws IOException {
        ArrowSchema table =
                ArrowSchema.of(
                        ArrowField.nullable("i", ArrowType.INT16),
                        ArrowField.nullable("u", ArrowType.UINT32),
                        ArrowField.nullable("f", ArrowType.FLOAT32),
                        ArrowField.nullable("t", ArrowType.timestamp(Unit.MILLISECOND)),
                        ArrowField.nullable("d", ArrowType.decimal128(5, 2)));
        ArrowBatchBuilder builder = new ArrowBatchBuilder(table);
        ((FixedWidthBuilder) builder.column(0)).appendShort((short) -3);
        ((FixedWidthBuilder) builder.column(1)).appendInt(-1);
        ((FixedWidthBuilder) builder.column(2)).appendFloat(0.5f);
        ((FixedWidthBuilder) builder.column(3)).appendLong(-1);
        ((FixedWidthBuilder) builder.column(4)).appendLong128(12345);
        builder.endRow();
        RowType declared =
                row(
                        DataTypes.FIELD("i", DataTypes.BIGINT()),
                        DataTypes.FIELD("u", DataTypes.BIGINT()),
                        DataTypes.FIELD("f", DataTypes.DOUBLE()),
                        DataTypes.FIELD("t", DataTypes.TIMESTAMP(6)),
                        DataTypes.FIELD("d", DataTypes.DECIMAL(20, 4)));

        RowBatch batch = spec(declared).reader(table).read(decode(table, builder));

        assertThat(binary(declared, batch))
                .isEqualTo(
                        binary(
                                declared,
                                List.of(
                                        GenericRowData.of(
                                                -3L,
                                                4294967295L,
                                                0.5,
                                                TimestampData.fromEpochMillis(-1),
                                                decimal("123.4500", 20, 4)))));
    }

    @Test
    void aTypeThatWouldLoseDigitsIsRefusedWithTheOneToDeclare() {
        ArrowSchema table =
                ArrowSchema.of(ArrowField.nullable("ts", ArrowType.timestamp(Unit.MICROSECOND)));
        RowType declared = row(DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)));

        assertThatThrownBy(() -> spec(declared).reader(table))
                .isInstanceOf(TypeMismatchException.class)
                .hasMessageContaining("column 'ts' is declared as TIMESTAMP(3)")
                .hasMessageContaining("declare it as TIMESTAMP(6)");
    }

    @Test
    void aNullInAColumnDeclaredNotNullIsAnError() throws IOException {
        RowType nullable = row(DataTypes.FIELD("i", DataTypes.INT()));
        ArrowSchema table = schema(nullable, 0);
        ArrowBatch batch =
                decode(table, append(nullable, table, List.of(GenericRowData.of((Object) null))));
        RowType declared = row(DataTypes.FIELD("i", DataTypes.INT().notNull()));

        assertThatThrownBy(() -> spec(declared).reader(table).read(batch))
                .hasMessageContaining("column 'i' is declared NOT NULL");
    }

    @Test
    void aVectorOfAnotherLengthIsRefusedWithItsColumn() {
        RowType type = row(DataTypes.FIELD("vector", DataTypes.ARRAY(DataTypes.FLOAT())));
        ArrowBatchBuilder batch = new ArrowBatchBuilder(schema(type, 4));
        RowAppender appender = new RowAppender(type, batch);

        assertThatThrownBy(() -> appender.append(GenericRowData.of(floats(1, 2, 3))))
                .hasMessage("column 'vector': the vector has 3 elements, the column takes 4");
    }

    @Test
    void aVectorWithANullInItIsRefused() {
        RowType type = row(DataTypes.FIELD("vector", DataTypes.ARRAY(DataTypes.FLOAT())));
        ArrowBatchBuilder batch = new ArrowBatchBuilder(schema(type, 2));
        RowAppender appender = new RowAppender(type, batch);
        GenericArrayData vector = new GenericArrayData(new Float[] {1f, null});

        assertThatThrownBy(() -> appender.append(GenericRowData.of(vector)))
                .hasMessage("column 'vector': the vector has a null in it");
    }

    @Test
    void aTimestampBeyondNanosecondsIsRefused() {
        RowType type = row(DataTypes.FIELD("ts", DataTypes.TIMESTAMP(9)));
        ArrowBatchBuilder batch = new ArrowBatchBuilder(schema(type, 0));
        RowAppender appender = new RowAppender(type, batch);
        TimestampData year9999 = TimestampData.fromEpochMillis(253402300799999L);

        assertThatThrownBy(() -> appender.append(GenericRowData.of(year9999)))
                .hasMessageContaining("column 'ts'")
                .hasMessageContaining("out of the range");
    }

    @Test
    void aColumnThatTheTableLacksIsRefused() {
        RowType type = row(DataTypes.FIELD("other", DataTypes.INT()));
        ArrowSchema table = ArrowSchema.of(ArrowField.nullable("a", ArrowType.INT32));

        assertThatThrownBy(() -> new RowAppender(type, new ArrowBatchBuilder(table)))
                .isInstanceOf(TypeMismatchException.class)
                .hasMessage("column 'other' does not exist in the table");
    }

    @Test
    void aTypeThatNoTableHoldsIsRefusedWithItsColumn() {
        RowType type =
                row(
                        DataTypes.FIELD(
                                "deep",
                                DataTypes.ARRAY(
                                        DataTypes.ROW(
                                                DataTypes.FIELD(
                                                        "i",
                                                        DataTypes.INTERVAL(DataTypes.MONTH()))))));

        assertThatThrownBy(() -> ArrowTypes.check(type))
                .isInstanceOf(TypeMismatchException.class)
                .hasMessageContaining("column 'deep'")
                .hasMessageContaining("INTERVAL");
    }

    private static RowType row(DataTypes.Field... fields) {
        return (RowType) DataTypes.ROW(fields).getLogicalType();
    }

    private static ArrowSchema schema(RowType type, int dimension) {
        return ArrowSchema.of(
                List.of(
                        ArrowTypes.columns(
                                type, Set.of(), name -> name.startsWith("v") ? dimension : 0)));
    }

    private static ScanSpec spec(RowType type) {
        List<List<String>> paths = new ArrayList<>();
        type.getFieldNames().forEach(name -> paths.add(List.of(name)));
        return ScanSpec.rows(ScanRequest.getDefaultInstance(), type, paths);
    }

    private static List<RowData> roundTrip(RowType type, ArrowSchema schema, List<RowData> rows)
            throws IOException {
        ArrowBatch batch = decode(schema, append(type, schema, rows));
        return binary(type, spec(type).reader(schema).read(batch));
    }

    private static ArrowBatchBuilder append(RowType type, ArrowSchema schema, List<RowData> rows) {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        RowAppender appender = new RowAppender(type, builder);
        rows.forEach(appender::append);
        return builder;
    }

    private static ArrowBatch decode(ArrowSchema schema, ArrowBatchBuilder builder)
            throws IOException {
        BatchDecoder decoder = new BatchDecoder();
        byte[] encapsulated = schema.toIpc();
        decoder.decode(
                ByteBuffer.wrap(Arrays.copyOfRange(encapsulated, 8, encapsulated.length)),
                new byte[0]);
        EncodedBatch encoded = builder.encode();
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        encoded.writeBody(body);
        return decoder.decode(ByteBuffer.wrap(encoded.header()), body.toByteArray());
    }

    private static List<RowData> binary(RowType type, RowBatch batch) {
        RowDataSerializer serializer = new RowDataSerializer(type);
        List<RowData> result = new ArrayList<>();
        for (int i = 0; i < batch.rows(); i++) {
            result.add(serializer.toBinaryRow(batch.row(i)).copy());
        }
        return result;
    }

    private static List<RowData> binary(RowType type, List<RowData> rows) {
        RowDataSerializer serializer = new RowDataSerializer(type);
        List<RowData> result = new ArrayList<>();
        rows.forEach(row -> result.add(serializer.toBinaryRow(row).copy()));
        return result;
    }

    private static GenericArrayData floats(float... values) {
        return new GenericArrayData(values);
    }

    private static DecimalData decimal(String text, int precision, int scale) {
        return DecimalData.fromBigDecimal(new BigDecimal(text), precision, scale);
    }

    private static RowData fullRow() {
        return GenericRowData.of(
                true,
                Byte.MIN_VALUE,
                Short.MAX_VALUE,
                -42,
                Long.MIN_VALUE,
                1.5f,
                -2.25,
                StringData.fromString("abc"),
                StringData.fromString("Zürich 🎿"),
                new byte[] {1, 2, 3, 4},
                new byte[] {0, -1},
                decimal("-1234567.89", 9, 2),
                decimal("-1234567890123456789012345678.0123456789", 38, 10),
                -719162,
                86_399_999,
                TimestampData.fromEpochMillis(-1000),
                TimestampData.fromEpochMillis(-1),
                TimestampData.fromEpochMillis(-1, 123_000),
                TimestampData.fromEpochMillis(1_700_000_000_123L, 456_789),
                TimestampData.fromEpochMillis(-2000),
                TimestampData.fromEpochMillis(1_700_000_000_123L),
                TimestampData.fromEpochMillis(-1, 999_999),
                floats(0.25f, -0f),
                new GenericArrayData(
                        new Object[] {StringData.fromString(""), null, StringData.fromString("x")}),
                new GenericMapData(Map.of(StringData.fromString("k"), 7)),
                new GenericMapData(Map.of(StringData.fromString("m"), 2)),
                GenericRowData.of(5, floats(1, 2, 3)));
    }

    private static RowData emptyRow() {
        GenericRowData row = new GenericRowData(ALL_TYPES.getFieldCount());
        row.setField(ALL_TYPES.getFieldIndex("i64"), 0L);
        return row;
    }
}
