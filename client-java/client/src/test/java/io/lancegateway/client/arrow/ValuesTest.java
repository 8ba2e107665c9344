package io.lancegateway.client.arrow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.memory.util.Float16;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.junit.jupiter.api.Test;

/** What builders take and vectors give, value by value. */
class ValuesTest {

    private static final ArrowField FLOAT = ArrowField.nullable("item", ArrowType.FLOAT32);
    private static final ArrowField VECTOR =
            ArrowField.nullable("vector", ArrowType.fixedSizeList(4), FLOAT);

    @Test
    void numbersComeBackAsTheyWereAppended() {
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.required("i8", ArrowType.INT8),
                        ArrowField.required("i16", ArrowType.INT16),
                        ArrowField.required("i32", ArrowType.INT32),
                        ArrowField.required("i64", ArrowType.INT64),
                        ArrowField.required("f32", ArrowType.FLOAT32),
                        ArrowField.required("f64", ArrowType.FLOAT64),
                        ArrowField.required("bool", ArrowType.BOOL),
                        ArrowField.required("f16", ArrowType.FLOAT16));
        ArrowBatch batch =
                batch(
                        schema,
                        builder -> {
                            for (int sign : new int[] {1, -1}) {
                                fixed(builder, 0).appendByte((byte) (sign * 100));
                                fixed(builder, 1).appendShort((short) (sign * 30_000));
                                fixed(builder, 2).appendInt(sign * 2_000_000_000);
                                fixed(builder, 3).appendLong(sign * Long.MAX_VALUE);
                                fixed(builder, 4).appendFloat(sign * 1.5e30f);
                                fixed(builder, 5).appendDouble(sign * 1.5e300);
                                ((BooleanBuilder) builder.column(6)).append(sign < 0);
                                fixed(builder, 7).appendHalf(sign * 0.5f);
                                builder.endRow();
                            }
                        });

        assertThat(batch.rows()).isEqualTo(2);
        assertThat(fixed(batch, 0).getByte(1)).isEqualTo((byte) -100);
        assertThat(fixed(batch, 1).getShort(1)).isEqualTo((short) -30_000);
        assertThat(fixed(batch, 2).getInt(1)).isEqualTo(-2_000_000_000);
        assertThat(fixed(batch, 3).getLong(1)).isEqualTo(-Long.MAX_VALUE);
        assertThat(fixed(batch, 4).getFloat(1)).isEqualTo(-1.5e30f);
        assertThat(fixed(batch, 5).getDouble(1)).isEqualTo(-1.5e300);
        assertThat(((BooleanVector) batch.column(6)).get(0)).isFalse();
        assertThat(((BooleanVector) batch.column(6)).get(1)).isTrue();
        assertThat(fixed(batch, 7).getHalf(0)).isEqualTo(0.5f);
        assertThat(fixed(batch, 7).getHalf(1)).isEqualTo(-0.5f);
    }

    @Test
    void decimalsKeepSignAndAllDigits() {
        BigInteger max38 = BigInteger.TEN.pow(38).subtract(BigInteger.ONE);
        BigInteger max76 = BigInteger.TEN.pow(76).subtract(BigInteger.ONE);
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.required("d", ArrowType.decimal128(38, 2)),
                        ArrowField.required("e", ArrowType.decimal256(76, 2)));
        ArrowBatch batch =
                batch(
                        schema,
                        builder -> {
                            fixed(builder, 0).appendLong128(-12345);
                            fixed(builder, 1).appendBigInteger(max76);
                            fixed(builder, 0).appendBigInteger(max38.negate());
                            fixed(builder, 1).appendBigInteger(BigInteger.valueOf(-1));
                            builder.endRows(2);
                        });

        assertThat(fixed(batch, 0).getLong(0)).isEqualTo(-12345);
        assertThat(fixed(batch, 0).getBigInteger(0)).isEqualTo(-12345);
        assertThat(fixed(batch, 0).getBigInteger(1)).isEqualTo(max38.negate());
        assertThat(fixed(batch, 1).getBigInteger(0)).isEqualTo(max76);
        assertThat(fixed(batch, 1).getBigInteger(1)).isEqualTo(-1);
    }

    @Test
    void aDecimalWiderThanItsColumnIsRefused() {
        ArrowBatchBuilder builder =
                new ArrowBatchBuilder(
                        ArrowSchema.of(ArrowField.nullable("price", ArrowType.decimal128(10, 2))));
        assertThatThrownBy(() -> fixed(builder, 0).appendBigInteger(BigInteger.ONE.shiftLeft(127)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("price");
    }

    @Test
    void everyHalfIsReadAndWrittenAsArrowJavaDoes() {
        for (int bits = Short.MIN_VALUE; bits <= Short.MAX_VALUE; bits++) {
            short half = (short) bits;
            float expected = Float16.toFloat(half);
            assertThat(Half.toFloat(half)).isEqualTo((Object) expected);
            if (!Float.isNaN(expected)) {
                assertThat(Half.fromFloat(expected)).isEqualTo(half);
                float between = expected + Math.ulp(expected) * 3;
                assertThat(Half.fromFloat(between)).isEqualTo(Float16.toFloat16(between));
            }
        }
        assertThat(Half.toFloat(Half.fromFloat(Float.NaN))).isNaN();
        assertThat(Half.fromFloat(65519.99f)).isEqualTo(Half.fromFloat(65504));
        assertThat(Half.toFloat(Half.fromFloat(65520))).isEqualTo(Float.POSITIVE_INFINITY);
        // Half way between two, and between zero and the smallest: to the even one.
        assertThat(Half.toFloat(Half.fromFloat(2049))).isEqualTo(2048);
        assertThat(Half.toFloat(Half.fromFloat(2051))).isEqualTo(2052);
        assertThat(Half.toFloat(Half.fromFloat(0x1p-25f))).isZero();
    }

    @Test
    void aNullVectorBetweenTwoDoesNotShiftThem() {
        ArrowBatch batch =
                batch(
                        ArrowSchema.of(VECTOR),
                        builder -> {
                            FixedSizeListBuilder vectors = (FixedSizeListBuilder) builder.column(0);
                            vectors.appendFloats(new float[] {1, 2, 3, 4});
                            vectors.appendNull();
                            vectors.appendFloats(new float[] {5, 6, 7, 8});
                            builder.endRows(3);
                        });

        ListVector vectors = (ListVector) batch.column(0);
        float[] read = new float[4];
        ((FixedWidthVector) vectors.child()).getFloats(vectors.start(2), read, 0, vectors.size(2));
        assertThat(read).containsExactly(5, 6, 7, 8);
        assertThat(vectors.isNull(0)).isFalse();
        assertThat(vectors.isNull(1)).isTrue();
        assertThat(vectors.isNull(2)).isFalse();
    }

    @Test
    void aNullStructIsNotAStructOfNulls() {
        ArrowField struct =
                ArrowField.nullable(
                        "s",
                        ArrowType.STRUCT,
                        ArrowField.nullable("a", ArrowType.INT32),
                        ArrowField.required("v", ArrowType.fixedSizeList(4), FLOAT));
        ArrowBatch batch =
                batch(
                        ArrowSchema.of(struct),
                        builder -> {
                            StructBuilder structs = (StructBuilder) builder.column(0);
                            FixedWidthBuilder a = (FixedWidthBuilder) structs.child(0);
                            FixedSizeListBuilder v = (FixedSizeListBuilder) structs.child(1);
                            structs.append();
                            a.appendInt(1);
                            v.appendFloats(new float[] {1, 1, 1, 1});
                            structs.appendNull();
                            structs.append();
                            a.appendNull();
                            v.appendFloats(new float[] {2, 2, 2, 2});
                            structs.append();
                            a.appendInt(3);
                            v.appendFloats(new float[] {3, 3, 3, 3});
                            builder.endRows(4);
                        });

        StructVector structs = (StructVector) batch.column(0);
        FixedWidthVector a = (FixedWidthVector) structs.child(0);
        ListVector v = (ListVector) structs.child(1);
        FixedWidthVector floats = (FixedWidthVector) v.child();
        assertThat(nulls(structs)).containsExactly(false, true, false, false);
        assertThat(a.isNull(2)).isTrue();
        assertThat(a.getInt(3)).isEqualTo(3);
        assertThat(floats.getFloat(v.start(2))).isEqualTo(2);
        assertThat(floats.getFloat(v.start(3))).isEqualTo(3);
    }

    @Test
    void stringsOfEightMebibytesComeBack() {
        byte[] big = new byte[8 << 20];
        Arrays.fill(big, (byte) 'x');
        big[big.length - 1] = 'y';
        for (ArrowType type : List.of(ArrowType.UTF8, ArrowType.LARGE_UTF8, ArrowType.UTF8_VIEW)) {
            ArrowBatch batch =
                    batch(
                            ArrowSchema.of(ArrowField.nullable("s", type)),
                            builder -> {
                                BinaryBuilder strings = (BinaryBuilder) builder.column(0);
                                strings.append("größe");
                                strings.append(big);
                                strings.append("");
                                int at = strings.reserve(3);
                                System.arraycopy(big, big.length - 3, strings.bytes(), at, 3);
                                builder.endRows(4);
                            });
            BinaryVector strings = (BinaryVector) batch.column(0);
            assertThat(strings.getString(0)).isEqualTo("größe");
            assertThat(strings.getBytes(1)).isEqualTo(big);
            assertThat(strings.getString(2)).isEmpty();
            assertThat(strings.getString(3)).isEqualTo("xxy");
        }
    }

    @Test
    void arrowJavaReadsTheStringsThatWereAppended() {
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.nullable("s", ArrowType.UTF8),
                        ArrowField.nullable("v", ArrowType.UTF8_VIEW));
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        String emoji = "👍".repeat(10);
        for (String text : new String[] {"a", emoji, ""}) {
            ((BinaryBuilder) builder.column(0)).append(text);
            ((BinaryBuilder) builder.column(1)).append(text.getBytes(StandardCharsets.UTF_8));
            builder.endRow();
        }
        try (BufferAllocator allocator = new RootAllocator()) {
            ArrowJava.fromOurs(
                    schema,
                    builder.encode(),
                    allocator,
                    root -> {
                        assertThat(strings(root, 0)).containsExactly("a", emoji, "");
                        assertThat(strings(root, 1)).containsExactly("a", emoji, "");
                    });
        }
    }

    /** arrow-java compares values and not views, but others compare the prefix first. */
    @Test
    void aViewOfALongStringHoldsItsSizePrefixAndPlace() {
        ArrowBatch batch =
                batch(
                        ArrowSchema.of(ArrowField.required("v", ArrowType.UTF8_VIEW)),
                        builder -> {
                            ((BinaryBuilder) builder.column(0)).append("short");
                            ((BinaryBuilder) builder.column(0)).append("more than twelve");
                            builder.endRows(2);
                        });
        byte[] body = batch.column(0).bytes();
        assertThat(LittleEndian.getInt(body, 16)).isEqualTo(16);
        assertThat(new String(body, 20, 4, StandardCharsets.UTF_8)).isEqualTo("more");
        assertThat(LittleEndian.getInt(body, 24)).isZero();
        assertThat(LittleEndian.getInt(body, 28)).isEqualTo("short".length());
    }

    @Test
    void theSizeIsKnownAfterEachRow() {
        ArrowField list = ArrowField.nullable("l", ArrowType.LIST, VECTOR);
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.required("id", ArrowType.INT64),
                        ArrowField.nullable("s", ArrowType.UTF8),
                        ArrowField.nullable("flag", ArrowType.BOOL),
                        list);
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        for (int row = 1; row <= 2000; row++) {
            fixed(builder, 0).appendLong(row);
            ((BinaryBuilder) builder.column(1)).append("x".repeat(row % 50));
            builder.column(2).appendNull();
            ListBuilder lists = (ListBuilder) builder.column(3);
            lists.append(row % 3);
            for (int i = 0; i < row % 3; i++) {
                ((FixedSizeListBuilder) lists.child()).appendFloats(new float[4]);
            }
            builder.endRow();
            if (row % 500 == 0) {
                // Fewer bitmaps are sent than are counted; buffers are padded.
                long sent = builder.encode().bodySize();
                assertThat(builder.sizeInBytes()).isBetween(sent - 1024, sent + row);
            }
        }
    }

    @Test
    void aRowThatLacksAValueIsFoundWhenItIsSent() {
        ArrowBatchBuilder builder =
                new ArrowBatchBuilder(
                        ArrowSchema.of(
                                ArrowField.nullable("a", ArrowType.INT32),
                                ArrowField.nullable("l", ArrowType.LIST, FLOAT)));
        fixed(builder, 0).appendInt(1);
        builder.endRow();
        assertThatThrownBy(builder::encode)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("column 'l' has 0 values for 1 rows");
        ((ListBuilder) builder.column(1)).append(2);
        assertThatThrownBy(builder::encode)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("have 2 elements, but 0 were appended");
    }

    @Test
    void whatDoesNotFitAColumnIsRefusedByName() {
        ArrowBatchBuilder builder =
                new ArrowBatchBuilder(
                        ArrowSchema.of(VECTOR, ArrowField.required("id", ArrowType.INT64)));
        assertThatThrownBy(
                        () -> ((FixedSizeListBuilder) builder.column(0)).appendFloats(new float[3]))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("field 'vector' takes lists of 4 elements, not 3");
        assertThatThrownBy(() -> builder.column(1).appendNull())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("field 'id' is not nullable");
        assertThatThrownBy(() -> fixed(builder, 1).appendInt(1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("INT64 takes values of 8 bytes, not 4");
    }

    @Test
    void rowsWithoutColumnsAreCounted() {
        ArrowBatch batch = batch(ArrowSchema.of(), builder -> builder.endRows(5));
        assertThat(batch.rows()).isEqualTo(5);
    }

    @Test
    void doublesAreCopiedAtOnce() {
        ArrowField item = ArrowField.required("item", ArrowType.FLOAT64);
        ArrowBatch batch =
                batch(
                        ArrowSchema.of(ArrowField.nullable("v", ArrowType.fixedSizeList(2), item)),
                        builder -> {
                            for (int i = 0; i < 100; i++) {
                                ((FixedSizeListBuilder) builder.column(0))
                                        .appendDoubles(new double[] {i, -i});
                                builder.endRow();
                            }
                        });
        ListVector vectors = (ListVector) batch.column(0);
        double[] read = new double[4];
        ((FixedWidthVector) vectors.child()).getDoubles(vectors.start(98), read, 0, 4);
        assertThat(read).containsExactly(98, -98, 99, -99);
    }

    private static ArrowBatch batch(ArrowSchema schema, Consumer<ArrowBatchBuilder> fill) {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        fill.accept(builder);
        return ArrowJava.decodeStream(ArrowJava.ipcStream(schema, builder.encode())).get(0);
    }

    private static FixedWidthBuilder fixed(ArrowBatchBuilder builder, int column) {
        return (FixedWidthBuilder) builder.column(column);
    }

    private static FixedWidthVector fixed(ArrowBatch batch, int column) {
        return (FixedWidthVector) batch.column(column);
    }

    private static Boolean[] nulls(ArrowVector vector) {
        Boolean[] nulls = new Boolean[vector.length()];
        for (int i = 0; i < nulls.length; i++) {
            nulls[i] = vector.isNull(i);
        }
        return nulls;
    }

    private static String[] strings(VectorSchemaRoot root, int column) {
        String[] strings = new String[root.getRowCount()];
        for (int i = 0; i < strings.length; i++) {
            strings[i] = root.getVector(column).getObject(i).toString();
        }
        return strings;
    }
}
