package io.lancegateway.flink.types;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.client.arrow.FixedWidthVector;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;
import org.junit.jupiter.api.Test;

/** What a change of a row is on the wire. */
class ChangeAppenderTest {

    private static final RowType ROW_TYPE =
            (RowType)
                    DataTypes.ROW(
                                    DataTypes.FIELD("name", DataTypes.STRING()),
                                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                                    DataTypes.FIELD("size", DataTypes.INT()))
                            .getLogicalType();

    private static final ArrowField ID = ArrowField.required("id", ArrowType.INT64);
    private static final ArrowField NAME = ArrowField.nullable("name", ArrowType.UTF8);
    private static final ArrowField SIZE = ArrowField.nullable("size", ArrowType.INT32);
    private static final ArrowField KIND = ArrowField.required("_change_kind", ArrowType.INT8);

    private static GenericRowData change(RowKind kind, String name, Long id, Integer size) {
        GenericRowData row = GenericRowData.of(StringData.fromString(name), id, size);
        row.setRowKind(kind);
        return row;
    }

    @Test
    void rowsComeWithTheirKindAndDeletedOnesWithTheirKeyAlone() throws IOException {
        ArrowBatchBuilder batch = new ArrowBatchBuilder(ArrowSchema.of(ID, NAME, SIZE, KIND));
        Appender appender = new ChangeAppender(ROW_TYPE, name -> true, List.of("id"), batch);

        appender.append(change(RowKind.INSERT, "a", 1L, 10));
        appender.append(change(RowKind.UPDATE_BEFORE, "a", 1L, 10));
        appender.append(change(RowKind.UPDATE_AFTER, "b", 1L, null));
        appender.append(change(RowKind.DELETE, "b", 2L, 20));

        assertThat(rows(batch))
                .containsExactly("1 a 10 0", "1 null null 1", "1 b null 2", "2 null null 3");
    }

    @Test
    void onlyTheColumnsThatAreSetAreSent() throws IOException {
        ArrowBatchBuilder batch = new ArrowBatchBuilder(ArrowSchema.of(ID, NAME, KIND));
        Appender appender =
                new ChangeAppender(
                        ROW_TYPE,
                        name -> name.equals("id") || name.equals("name"),
                        List.of("id"),
                        batch);

        appender.append(change(RowKind.UPDATE_AFTER, "a", 1L, null));

        assertThat(rows(batch)).containsExactly("1 a 2");
    }

    @Test
    void aColumnThatTheTableLacksIsRefused() {
        ArrowBatchBuilder batch = new ArrowBatchBuilder(ArrowSchema.of(ID, NAME, KIND));

        assertThatThrownBy(() -> new ChangeAppender(ROW_TYPE, name -> true, List.of("id"), batch))
                .hasMessage("column 'size' does not exist in the table");
    }

    @Test
    void aKeyThatIsNullIsRefusedByName() {
        ArrowBatchBuilder batch = new ArrowBatchBuilder(ArrowSchema.of(ID, NAME, SIZE, KIND));
        Appender appender = new ChangeAppender(ROW_TYPE, name -> true, List.of("id"), batch);

        assertThatThrownBy(() -> appender.append(change(RowKind.DELETE, "a", null, 1)))
                .hasMessageContaining("column 'id'");
    }

    private static List<String> rows(ArrowBatchBuilder builder) throws IOException {
        ArrowBatch batch = decode(builder);
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < batch.rows(); i++) {
            List<String> values = new ArrayList<>();
            for (int c = 0; c < batch.schema().size(); c++) {
                if (batch.column(c).isNull(i)) {
                    values.add("null");
                } else if (batch.column(c) instanceof BinaryVector) {
                    values.add(((BinaryVector) batch.column(c)).getString(i));
                } else {
                    values.add(number((FixedWidthVector) batch.column(c), i));
                }
            }
            rows.add(String.join(" ", values));
        }
        return rows;
    }

    private static String number(FixedWidthVector vector, int row) {
        switch (vector.width()) {
            case Byte.BYTES:
                return String.valueOf(vector.getByte(row));
            case Integer.BYTES:
                return String.valueOf(vector.getInt(row));
            default:
                return String.valueOf(vector.getLong(row));
        }
    }

    private static ArrowBatch decode(ArrowBatchBuilder builder) throws IOException {
        BatchDecoder decoder = new BatchDecoder();
        decoder.decode(ByteBuffer.wrap(builder.schema().toMessage()), new byte[0]);
        EncodedBatch encoded = builder.encode();
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        encoded.writeBody(body);
        return decoder.decode(ByteBuffer.wrap(encoded.header()), body.toByteArray());
    }
}
