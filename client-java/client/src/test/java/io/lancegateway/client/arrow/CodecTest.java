package io.lancegateway.client.arrow;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.compare.VectorEqualsVisitor;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.arrow.vector.util.TransferPair;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every type, from arrow-java through the decoder, the builders and the encoder back to arrow-java,
 * which compares bit by bit with what it sent.
 */
class CodecTest {

    private static final double SOME = 0.3;
    private static final double ALL = 1.1;

    private BufferAllocator allocator;

    @BeforeEach
    void open() {
        allocator = new RootAllocator();
    }

    @AfterEach
    void close() {
        allocator.close();
    }

    static Stream<Field> types() {
        List<ArrowType> plain =
                new ArrayList<>(
                        List.of(
                                new ArrowType.Null(),
                                new ArrowType.Bool(),
                                new ArrowType.Int(8, true),
                                new ArrowType.Int(16, true),
                                new ArrowType.Int(32, true),
                                new ArrowType.Int(64, true),
                                new ArrowType.Int(8, false),
                                new ArrowType.Int(16, false),
                                new ArrowType.Int(32, false),
                                new ArrowType.Int(64, false),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.HALF),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE),
                                new ArrowType.Decimal(38, 10, 128),
                                new ArrowType.Decimal(5, -2, 128),
                                new ArrowType.Decimal(76, 20, 256),
                                new ArrowType.Date(DateUnit.DAY),
                                new ArrowType.Date(DateUnit.MILLISECOND),
                                new ArrowType.Time(TimeUnit.SECOND, 32),
                                new ArrowType.Time(TimeUnit.MILLISECOND, 32),
                                new ArrowType.Time(TimeUnit.MICROSECOND, 64),
                                new ArrowType.Time(TimeUnit.NANOSECOND, 64),
                                new ArrowType.Interval(IntervalUnit.YEAR_MONTH),
                                new ArrowType.Interval(IntervalUnit.DAY_TIME),
                                new ArrowType.Interval(IntervalUnit.MONTH_DAY_NANO),
                                new ArrowType.Utf8(),
                                new ArrowType.LargeUtf8(),
                                new ArrowType.Utf8View(),
                                new ArrowType.Binary(),
                                new ArrowType.LargeBinary(),
                                new ArrowType.BinaryView(),
                                new ArrowType.FixedSizeBinary(7)));
        for (TimeUnit unit : TimeUnit.values()) {
            plain.add(new ArrowType.Timestamp(unit, null));
            plain.add(new ArrowType.Timestamp(unit, "UTC"));
            plain.add(new ArrowType.Duration(unit));
        }
        Field item = nullable("item", new ArrowType.Int(32, true));
        Field text = nullable("text", new ArrowType.Utf8());
        Field vector =
                nullable(
                        "vector",
                        new ArrowType.FixedSizeList(4),
                        nullable(
                                "item",
                                new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE)));
        Field struct = nullable("struct", new ArrowType.Struct(), item, text, vector);
        Field key = required("key", new ArrowType.Utf8());
        Field list = nullable("list", new ArrowType.List(), struct);
        Stream<Field> nested =
                Stream.of(
                        vector,
                        struct,
                        list,
                        nullable("l", new ArrowType.List(), item),
                        nullable("l", new ArrowType.LargeList(), text),
                        nullable("l", new ArrowType.List(), required("item", new ArrowType.Bool())),
                        nullable("l", new ArrowType.List(), list),
                        nullable("l", new ArrowType.FixedSizeList(3), text),
                        nullable("l", new ArrowType.FixedSizeList(2), vector),
                        nullable("l", new ArrowType.FixedSizeList(0), item),
                        nullable("s", new ArrowType.Struct(), struct, list),
                        nullable("s", new ArrowType.Struct()),
                        nullable(
                                "s",
                                new ArrowType.Struct(),
                                required("n", new ArrowType.Int(64, true)),
                                required("v", new ArrowType.FixedSizeList(2), item)),
                        nullable(
                                "views",
                                new ArrowType.List(),
                                nullable("item", new ArrowType.Utf8View())),
                        nullable(
                                "nothing",
                                new ArrowType.Struct(),
                                nullable("n", new ArrowType.Null())),
                        nullable(
                                "map",
                                new ArrowType.Map(false),
                                required("entries", new ArrowType.Struct(), key, struct)),
                        nullable(
                                "sorted",
                                new ArrowType.Map(true),
                                required("entries", new ArrowType.Struct(), key, item)));
        return Stream.concat(plain.stream().map(type -> nullable("column", type)), nested);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void everyTypeComesBackAsItWas(Field field) {
        for (int rows : new int[] {0, 1, 7, 8, 9, 64, 1000}) {
            roundTrip(field, rows, SOME);
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void columnsWithoutNullsAndOfNullsOnlyComeBackAsTheyWere(Field field) {
        roundTrip(field, 100, 0);
        roundTrip(field, 100, ALL);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void slicesComeBackAsTheyWere(Field field) {
        try (FieldVector whole = field.createVector(allocator)) {
            ArrowJava.fill(whole, 100, new Random(5), SOME);
            for (int[] range :
                    new int[][] {{0, 100}, {0, 10}, {3, 20}, {8, 17}, {99, 1}, {50, 0}}) {
                TransferPair pair = whole.getTransferPair(allocator);
                pair.splitAndTransfer(range[0], range[1]);
                try (FieldVector slice = (FieldVector) pair.getTo()) {
                    roundTrip(slice);
                }
            }
        }
    }

    @Test
    void aSchemaKeepsItsMetadataAndNullability() {
        Field inner =
                new Field(
                        "inner",
                        new FieldType(false, new ArrowType.Utf8(), null, Map.of("x", "y", "a", "")),
                        null);
        Field outer =
                new Field(
                        "a.b `quoted`",
                        new FieldType(true, new ArrowType.Struct(), null, Map.of("k", "v")),
                        List.of(inner));
        Schema schema = new Schema(List.of(outer, inner), Map.of("table", "größe", "", "empty"));

        ArrowSchema ours = ArrowSchema.fromIpc(schema.serializeAsMessage());

        assertThat(ours.metadata()).containsEntry("table", "größe").containsEntry("", "empty");
        assertThat(ours.field(0).child(0).isNullable()).isFalse();
        assertThat(ours.indexOf("a.b `quoted`")).isZero();
        assertThat(ours.indexOf("A.B `quoted`")).isEqualTo(-1);
        assertThat(deserialize(ours.toIpc())).isEqualTo(schema);
        assertThat(ArrowSchema.fromIpc(ours.toIpc())).isEqualTo(ours);
    }

    @Test
    void aColumnBetweenOthersIsNotShifted() {
        List<Field> fields =
                List.of(
                        nullable("a", new ArrowType.Int(64, true)),
                        nullable("nothing", new ArrowType.Null()),
                        nullable("b", new ArrowType.Utf8View()),
                        nullable("c", new ArrowType.BinaryView()),
                        required("d", new ArrowType.Bool()));
        try (VectorSchemaRoot root = VectorSchemaRoot.create(new Schema(fields), allocator)) {
            Random random = new Random(11);
            root.getFieldVectors().forEach(v -> ArrowJava.fill(v, 77, random, SOME));
            root.setRowCount(77);
            roundTrip(root);
        }
    }

    @Test
    void aBuilderThatWasResetForgetsEverything() {
        List<Field> fields = new ArrayList<>();
        types().forEach(field -> fields.add(rename(field, "c" + fields.size())));
        ArrowBatchBuilder[] builder = new ArrowBatchBuilder[1];
        for (int round = 0; round < 4; round++) {
            try (VectorSchemaRoot root = VectorSchemaRoot.create(new Schema(fields), allocator)) {
                Random random = new Random(round);
                int rows = new int[] {300, 9, 1000, 0}[round];
                double nulls = round == 1 ? 0 : SOME;
                root.getFieldVectors().forEach(v -> ArrowJava.fill(v, rows, random, nulls));
                root.setRowCount(rows);
                ArrowBatch batch = ArrowJava.toOurs(root);
                if (builder[0] == null) {
                    builder[0] = new ArrowBatchBuilder(batch.schema());
                }
                Copy.into(batch, builder[0]);
                assertThat(builder[0].rows()).isEqualTo(rows);
                ArrowJava.fromOurs(
                        batch.schema(),
                        builder[0].encode(),
                        allocator,
                        back -> assertSame(root, back));
                builder[0].reset();
                assertThat(builder[0].isEmpty()).isTrue();
                assertThat(builder[0].sizeInBytes()).isZero();
            }
        }
    }

    private void roundTrip(Field field, int rows, double nulls) {
        try (FieldVector vector = field.createVector(allocator)) {
            ArrowJava.fill(vector, rows, new Random(rows), nulls);
            roundTrip(vector);
        }
    }

    private void roundTrip(FieldVector vector) {
        VectorSchemaRoot root =
                new VectorSchemaRoot(
                        List.of(vector.getField()), List.of(vector), vector.getValueCount());
        roundTrip(root);
    }

    private void roundTrip(VectorSchemaRoot root) {
        ArrowBatch batch = ArrowJava.toOurs(root);
        assertThat(batch.rows()).isEqualTo(root.getRowCount());
        IntStream.range(0, batch.schema().size())
                .forEach(
                        c ->
                                assertThat(batch.column(c).nullCount())
                                        .isEqualTo(root.getVector(c).getNullCount()));
        EncodedBatch encoded = Copy.encode(batch);
        assertThat(encoded.bodySize() % 64).isZero();
        ArrowJava.fromOurs(batch.schema(), encoded, allocator, back -> assertSame(root, back));
    }

    private static void assertSame(VectorSchemaRoot sent, VectorSchemaRoot back) {
        assertThat(back.getSchema()).isEqualTo(sent.getSchema());
        assertThat(back.getRowCount()).isEqualTo(sent.getRowCount());
        for (int c = 0; c < sent.getFieldVectors().size(); c++) {
            FieldVector left = sent.getVector(c);
            FieldVector right = back.getVector(c);
            assertThat(VectorEqualsVisitor.vectorEquals(left, right))
                    .as("%s was %s and is %s", left.getField(), left, right)
                    .isTrue();
        }
    }

    private static Schema deserialize(byte[] ipc) {
        try (org.apache.arrow.vector.ipc.ReadChannel channel =
                new org.apache.arrow.vector.ipc.ReadChannel(
                        java.nio.channels.Channels.newChannel(
                                new java.io.ByteArrayInputStream(ipc)))) {
            return org.apache.arrow.vector.ipc.message.MessageSerializer.deserializeSchema(channel);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static Field rename(Field field, String name) {
        return new Field(name, field.getFieldType(), field.getChildren());
    }

    private static Field nullable(String name, ArrowType type, Field... children) {
        return new Field(name, FieldType.nullable(type), Arrays.asList(children));
    }

    private static Field required(String name, ArrowType type, Field... children) {
        return new Field(name, FieldType.notNullable(type), Arrays.asList(children));
    }
}
