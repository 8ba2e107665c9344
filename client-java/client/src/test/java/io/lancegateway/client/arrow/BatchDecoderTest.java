package io.lancegateway.client.arrow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.flatbuffers.FlatBufferBuilder;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.arrow.flatbuf.Buffer;
import org.apache.arrow.flatbuf.DictionaryBatch;
import org.apache.arrow.flatbuf.FieldNode;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.UInt2Vector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.dictionary.DictionaryProvider.MapDictionaryProvider;
import org.apache.arrow.vector.types.UnionMode;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Dictionaries, and bytes that are not what they should be. */
class BatchDecoderTest {

    private BufferAllocator allocator;

    @BeforeEach
    void open() {
        allocator = new RootAllocator();
    }

    @AfterEach
    void close() {
        allocator.close();
    }

    @Test
    void valuesThatComeAsIndicesAreReadAsPlainOnes() {
        DictionaryEncoding encoding = new DictionaryEncoding(7, false, new ArrowType.Int(8, true));
        try (VarCharVector words = strings("words", "red", null, "green");
                TinyIntVector indices =
                        new TinyIntVector(
                                "color",
                                new FieldType(true, new ArrowType.Int(8, true), encoding),
                                allocator)) {
            int[] picks = {2, 0, -1, 1, 0};
            for (int i = 0; i < picks.length; i++) {
                if (picks[i] < 0) {
                    indices.setNull(i);
                } else {
                    indices.setSafe(i, picks[i]);
                }
            }
            indices.setValueCount(picks.length);
            ArrowBatch batch = decode(indices, new Dictionary(words, encoding));

            assertThat(batch.schema().field(0).type())
                    .isEqualTo(io.lancegateway.client.arrow.ArrowType.UTF8);
            assertThat(texts((BinaryVector) batch.column(0)))
                    .containsExactly("green", "red", null, null, "red");
            assertThat(batch.column(0).nullCount()).isEqualTo(2);
        }
    }

    @Test
    void dictionariesOfStructsAndListsAreReadAsPlainValues() {
        DictionaryEncoding encoding =
                new DictionaryEncoding(1, false, new ArrowType.Int(16, false));
        Field item = Field.nullable("item", new ArrowType.Utf8());
        List<Field> types =
                List.of(
                        new Field(
                                "d",
                                FieldType.nullable(new ArrowType.Struct()),
                                List.of(item, Field.nullable("b", new ArrowType.Bool()))),
                        new Field("d", FieldType.nullable(new ArrowType.List()), List.of(item)),
                        new Field(
                                "d", FieldType.nullable(new ArrowType.LargeList()), List.of(item)),
                        new Field(
                                "d",
                                FieldType.nullable(new ArrowType.FixedSizeList(3)),
                                List.of(item)),
                        Field.nullable("d", new ArrowType.Utf8View()),
                        Field.nullable("d", new ArrowType.Int(64, true)),
                        Field.nullable("d", new ArrowType.Bool()));
        for (Field type : types) {
            try (org.apache.arrow.vector.FieldVector values = type.createVector(allocator);
                    UInt2Vector indices =
                            new UInt2Vector(
                                    "d",
                                    new FieldType(true, new ArrowType.Int(16, false), encoding),
                                    allocator)) {
                ArrowJava.fill(values, 50, new Random(3), 0.3);
                for (int i = 0; i < 200; i++) {
                    indices.setSafe(i, i * 7 % 50);
                }
                indices.setNull(11);
                indices.setValueCount(200);
                ArrowBatch batch = decode(indices, new Dictionary(values, encoding));
                // The schema still says dictionary; builders write the plain type.
                ArrowJava.fromOurs(
                        batch.schema(),
                        Copy.encode(batch),
                        allocator,
                        root -> {
                            for (int i = 0; i < 200; i++) {
                                Object expected = i == 11 ? null : values.getObject(i * 7 % 50);
                                assertThat(root.getVector(0).getObject(i)).isEqualTo(expected);
                            }
                        });
            }
        }
    }

    @Test
    void aDictionaryBelowAListIsReadAsPlainValues() {
        DictionaryEncoding encoding = new DictionaryEncoding(3, false, null);
        Field coded =
                new Field("item", new FieldType(true, new ArrowType.Int(32, true), encoding), null);
        Field list = new Field("l", FieldType.nullable(new ArrowType.List()), List.of(coded));
        try (VarCharVector words = strings("words", "a", "b");
                ListVector lists = (ListVector) list.createVector(allocator)) {
            lists.allocateNew();
            lists.startNewValue(0);
            ((IntVector) lists.getDataVector()).setSafe(0, 1);
            ((IntVector) lists.getDataVector()).setSafe(1, 0);
            lists.endValue(0, 2);
            lists.setValueCount(1);
            ArrowBatch batch = decode(lists, new Dictionary(words, encoding));
            io.lancegateway.client.arrow.ListVector read =
                    (io.lancegateway.client.arrow.ListVector) batch.column(0);
            assertThat(texts((BinaryVector) read.child())).containsExactly("b", "a");
        }
    }

    @Test
    void aDictionaryMayGrowAndMayBeReplaced() {
        DictionaryEncoding encoding = new DictionaryEncoding(5, false, new ArrowType.Int(32, true));
        Schema schema =
                new Schema(
                        List.of(
                                new Field(
                                        "c",
                                        new FieldType(true, new ArrowType.Utf8(), encoding),
                                        null)));
        BatchDecoder decoder = new BatchDecoder();
        byte[] message = schema.serializeAsMessage();
        decoder.decode(ByteBuffer.wrap(message, 8, message.length - 8).slice(), new byte[0]);

        assertThatThrownBy(() -> read(decoder, 0))
                .isInstanceOf(ArrowFormatException.class)
                .hasMessageContaining("before its dictionary");
        takeWords(decoder, false, "a", "b");
        assertThat(read(decoder, 1, 0)).containsExactly("b", "a");
        takeWords(decoder, true, "c");
        takeWords(decoder, true);
        takeWords(decoder, true, "d");
        assertThat(read(decoder, 3, 2, 0)).containsExactly("d", "c", "a");
        assertThatThrownBy(() -> read(decoder, 4))
                .isInstanceOf(ArrowFormatException.class)
                .hasMessageContaining("index 4 into a dictionary of 4 values");
        takeWords(decoder, false, "e");
        assertThat(read(decoder, 0)).containsExactly("e");
    }

    @Test
    void typesThatCannotBeHeldAreNamed() {
        Schema schema =
                new Schema(
                        List.of(
                                new Field(
                                        "either",
                                        FieldType.nullable(
                                                new ArrowType.Union(UnionMode.Sparse, null)),
                                        List.of(Field.nullable("a", new ArrowType.Bool())))));
        assertThatThrownBy(() -> ArrowSchema.fromIpc(schema.serializeAsMessage()))
                .isInstanceOf(ArrowFormatException.class)
                .hasMessage("field 'either' has the Arrow type Union, which is not supported");
    }

    @Test
    void bytesThatAreNoSchemaAreRefused() {
        for (byte[] bytes :
                new byte[][] {
                    {},
                    {1, 2, 3},
                    "not an arrow schema at all".getBytes(StandardCharsets.UTF_8),
                    {-1, -1, -1, -1, 127, 127, 127, 127, 0, 0},
                    {-1, -1, -1, -1, 4, 0, 0, 0, 0, 0, 0, 0}
                }) {
            assertThatThrownBy(() -> ArrowSchema.fromIpc(bytes))
                    .isInstanceOf(ArrowFormatException.class);
        }
    }

    @Test
    void aBatchBeforeItsSchemaIsRefused() {
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.nullable("a", io.lancegateway.client.arrow.ArrowType.UTF8));
        EncodedBatch batch = words(schema, "x");
        assertThatThrownBy(
                        () ->
                                new BatchDecoder()
                                        .decode(ByteBuffer.wrap(batch.header()), body(batch)))
                .isInstanceOf(ArrowFormatException.class)
                .hasMessageContaining("before the schema");
    }

    @Test
    void aBodyThatIsCutShortIsRefused() {
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.nullable("a", io.lancegateway.client.arrow.ArrowType.UTF8));
        EncodedBatch batch = words(schema, "some words", "and more");
        byte[] cut = java.util.Arrays.copyOf(body(batch), 64);
        BatchDecoder decoder = decoder(schema);
        assertThatThrownBy(() -> decoder.decode(ByteBuffer.wrap(batch.header()), cut))
                .isInstanceOf(ArrowFormatException.class)
                .hasMessageContaining("announces a body of 128 bytes and has 64");
    }

    /**
     * Memory is safe in Java; what must hold is that a fault shows as one, not as an endless loop.
     */
    @Test
    void damagedMessagesAreRefusedOrReadWithoutHarm() {
        Random random = new Random(1);
        List<Field> fields = new ArrayList<>();
        CodecTest.types()
                .forEach(
                        f ->
                                fields.add(
                                        new Field(
                                                "c" + fields.size(),
                                                f.getFieldType(),
                                                f.getChildren())));
        ArrowBatch batch;
        try (VectorSchemaRoot root = VectorSchemaRoot.create(new Schema(fields), allocator)) {
            root.getFieldVectors().forEach(v -> ArrowJava.fill(v, 20, random, 0.3));
            root.setRowCount(20);
            batch = ArrowJava.toOurs(root);
        }
        EncodedBatch encoded = Copy.encode(batch);
        byte[] body = body(encoded);
        int refused = 0;
        for (int round = 0; round < 500; round++) {
            byte[] header = encoded.header().clone();
            header[random.nextInt(header.length)] = (byte) random.nextInt();
            try {
                ArrowBatch read =
                        decoder(batch.schema()).decode(ByteBuffer.wrap(header), body.clone());
                assertThat(read == null || read.rows() >= 0).isTrue();
            } catch (ArrowFormatException e) {
                refused++;
            }
        }
        assertThat(refused).isGreaterThan(100);
    }

    private BatchDecoder decoder(ArrowSchema schema) {
        BatchDecoder decoder = new BatchDecoder();
        decoder.decode(ByteBuffer.wrap(schema.toMessage()), new byte[0]);
        return decoder;
    }

    private static byte[] body(EncodedBatch batch) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            batch.writeBody(out);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return out.toByteArray();
    }

    private static EncodedBatch words(ArrowSchema schema, String... words) {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        for (String word : words) {
            ((BinaryBuilder) builder.column(0)).append(word);
            builder.endRow();
        }
        return builder.encode();
    }

    private ArrowBatch decode(org.apache.arrow.vector.FieldVector vector, Dictionary dictionary) {
        MapDictionaryProvider provider = new MapDictionaryProvider(dictionary);
        VectorSchemaRoot root = new VectorSchemaRoot(List.of(vector));
        return ArrowJava.toOurs(root, provider).get(0);
    }

    private VarCharVector strings(String name, String... values) {
        VarCharVector vector = new VarCharVector(name, allocator);
        for (int i = 0; i < values.length; i++) {
            if (values[i] == null) {
                vector.setNull(i);
            } else {
                vector.setSafe(i, values[i].getBytes(StandardCharsets.UTF_8));
            }
        }
        vector.setValueCount(values.length);
        return vector;
    }

    private static List<String> texts(BinaryVector vector) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < vector.length(); i++) {
            texts.add(vector.isNull(i) ? null : vector.getString(i));
        }
        return texts;
    }

    /** Hands words over as (more of) dictionary 5. */
    private static void takeWords(BatchDecoder decoder, boolean isDelta, String... words) {
        EncodedBatch batch =
                words(
                        ArrowSchema.of(
                                ArrowField.nullable(
                                        "c", io.lancegateway.client.arrow.ArrowType.UTF8)),
                        words);
        RecordBatch from =
                (RecordBatch)
                        Message.getRootAsMessage(ByteBuffer.wrap(batch.header()))
                                .header(new RecordBatch());
        FlatBufferBuilder builder = new FlatBufferBuilder();
        RecordBatch.startNodesVector(builder, from.nodesLength());
        for (int i = from.nodesLength() - 1; i >= 0; i--) {
            FieldNode.createFieldNode(builder, from.nodes(i).length(), from.nodes(i).nullCount());
        }
        int nodes = builder.endVector();
        RecordBatch.startBuffersVector(builder, from.buffersLength());
        for (int i = from.buffersLength() - 1; i >= 0; i--) {
            Buffer.createBuffer(builder, from.buffers(i).offset(), from.buffers(i).length());
        }
        int buffers = builder.endVector();
        int data = RecordBatch.createRecordBatch(builder, from.length(), nodes, buffers, 0, 0);
        int dictionary = DictionaryBatch.createDictionaryBatch(builder, 5, data, isDelta);
        byte[] header =
                SchemaCodec.finish(
                        builder, MessageHeader.DictionaryBatch, dictionary, batch.bodySize());
        assertThat(decoder.decode(ByteBuffer.wrap(header), body(batch))).isNull();
    }

    /** Reads a batch of indices. */
    private static List<String> read(BatchDecoder decoder, int... indices) {
        ArrowBatchBuilder builder =
                new ArrowBatchBuilder(
                        ArrowSchema.of(
                                ArrowField.nullable(
                                        "c", io.lancegateway.client.arrow.ArrowType.INT32)));
        for (int index : indices) {
            ((FixedWidthBuilder) builder.column(0)).appendInt(index);
            builder.endRow();
        }
        EncodedBatch batch = builder.encode();
        return texts(
                (BinaryVector)
                        decoder.decode(ByteBuffer.wrap(batch.header()), body(batch)).column(0));
    }
}
