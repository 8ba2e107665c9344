package io.lancegateway.client.arrow;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseLargeVariableWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BaseVariableWidthViewVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.BitVectorHelper;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.NullVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.complex.LargeListVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;

/** Carries data between this codec and arrow-java, as IPC streams. */
public final class ArrowJava {

    private static final int CONTINUATION = -1;

    private ArrowJava() {}

    /** What arrow-java writes for these rows, as this client decodes it. */
    public static ArrowBatch toOurs(VectorSchemaRoot root) {
        return toOurs(root, null).get(0);
    }

    /** What arrow-java writes for these rows and dictionaries, as this client decodes it. */
    public static List<ArrowBatch> toOurs(VectorSchemaRoot root, DictionaryProvider dictionaries) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ArrowStreamWriter writer = new ArrowStreamWriter(root, dictionaries, out)) {
            writer.start();
            writer.writeBatch();
            writer.end();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return decodeStream(out.toByteArray());
    }

    /** All batches of an IPC stream, as this client decodes them. */
    public static List<ArrowBatch> decodeStream(byte[] stream) {
        BatchDecoder decoder = new BatchDecoder();
        List<ArrowBatch> batches = new ArrayList<>();
        ByteBuffer in = ByteBuffer.wrap(stream).order(ByteOrder.LITTLE_ENDIAN);
        while (in.remaining() >= 8) {
            if (in.getInt() != CONTINUATION) {
                throw new AssertionError("no continuation mark");
            }
            byte[] header = new byte[in.getInt()];
            if (header.length == 0) {
                break;
            }
            in.get(header);
            int size = (int) Message.getRootAsMessage(ByteBuffer.wrap(header)).bodyLength();
            byte[] body = new byte[size];
            in.get(body);
            ArrowBatch batch = decoder.decode(ByteBuffer.wrap(header), body);
            if (batch != null) {
                batches.add(batch);
            }
        }
        return batches;
    }

    /** Reads with arrow-java what this client has encoded. */
    public static void fromOurs(
            ArrowSchema schema,
            EncodedBatch batch,
            BufferAllocator allocator,
            Consumer<VectorSchemaRoot> check) {
        byte[] stream = ipcStream(schema, batch);
        try (ArrowStreamReader reader =
                new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
            if (!reader.loadNextBatch()) {
                throw new AssertionError("no batch");
            }
            check.accept(reader.getVectorSchemaRoot());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static byte[] ipcStream(ArrowSchema schema, EncodedBatch batch) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            out.write(schema.toIpc());
            byte[] header = batch.header();
            int padded = header.length + (-header.length & 7);
            ByteBuffer lead = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
            out.write(lead.putInt(CONTINUATION).putInt(padded).array());
            out.write(Arrays.copyOf(header, padded));
            batch.writeBody(out);
            out.write(new byte[] {-1, -1, -1, -1, 0, 0, 0, 0});
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return out.toByteArray();
    }

    /** Fills a vector with chance values; with nulls as well, where the field takes them. */
    public static void fill(FieldVector vector, int count, Random random, double nulls) {
        double rate = vector.getField().isNullable() ? nulls : 0;
        vector.setInitialCapacity(count);
        vector.allocateNew();
        if (vector instanceof NullVector) {
            vector.setValueCount(count);
        } else if (vector instanceof BaseFixedWidthVector) {
            fillFixedWidth((BaseFixedWidthVector) vector, count, random, rate);
        } else if (vector instanceof BaseVariableWidthVector) {
            BaseVariableWidthVector v = (BaseVariableWidthVector) vector;
            each(vector, count, random, rate, i -> v.setSafe(i, text(random)));
        } else if (vector instanceof BaseLargeVariableWidthVector) {
            BaseLargeVariableWidthVector v = (BaseLargeVariableWidthVector) vector;
            each(vector, count, random, rate, i -> v.setSafe(i, text(random)));
        } else if (vector instanceof BaseVariableWidthViewVector) {
            BaseVariableWidthViewVector v = (BaseVariableWidthViewVector) vector;
            each(vector, count, random, rate, i -> v.setSafe(i, text(random)));
        } else if (vector instanceof FixedSizeListVector) {
            FixedSizeListVector v = (FixedSizeListVector) vector;
            each(vector, count, random, rate, v::setNotNull);
            fill(v.getDataVector(), count * v.getListSize(), random, nulls);
            v.setValueCount(count);
        } else if (vector instanceof LargeListVector) {
            LargeListVector v = (LargeListVector) vector;
            int elements = 0;
            for (int i = 0; i < count; i++) {
                if (random.nextDouble() < rate) {
                    v.setNull(i);
                } else {
                    int size = random.nextInt(4);
                    v.startNewValue(i);
                    v.endValue(i, size);
                    elements += size;
                }
            }
            fill(v.getDataVector(), elements, random, nulls);
            v.setLastSet(count - 1);
            v.setValueCount(count);
        } else if (vector instanceof ListVector) {
            ListVector v = (ListVector) vector;
            int elements = 0;
            for (int i = 0; i < count; i++) {
                if (random.nextDouble() < rate) {
                    v.setNull(i);
                } else {
                    int size = random.nextInt(4);
                    v.startNewValue(i);
                    v.endValue(i, size);
                    elements += size;
                }
            }
            fill(v.getDataVector(), elements, random, nulls);
            v.setLastSet(count - 1);
            v.setValueCount(count);
        } else if (vector instanceof StructVector) {
            StructVector v = (StructVector) vector;
            v.getChildrenFromFields().forEach(child -> fill(child, count, random, nulls));
            for (int i = 0; i < count; i++) {
                if (random.nextDouble() < rate) {
                    v.setNull(i);
                } else {
                    v.setIndexDefined(i);
                }
            }
            v.setValueCount(count);
        } else {
            throw new AssertionError(vector.getClass());
        }
    }

    private static void fillFixedWidth(
            BaseFixedWidthVector vector, int count, Random random, double rate) {
        vector.setValueCount(count);
        byte[] data = new byte[vector.getBufferSizeFor(count)];
        random.nextBytes(data);
        int size = vector instanceof BitVector ? (count + 7) / 8 : count * vector.getTypeWidth();
        vector.getDataBuffer().setBytes(0, data, 0, size);
        for (int i = 0; i < count; i++) {
            if (random.nextDouble() < rate) {
                vector.setNull(i);
            } else {
                BitVectorHelper.setBit(vector.getValidityBuffer(), i);
            }
        }
    }

    private static void each(
            FieldVector vector,
            int count,
            Random random,
            double rate,
            java.util.function.IntConsumer set) {
        for (int i = 0; i < count; i++) {
            if (random.nextDouble() < rate) {
                vector.setNull(i);
            } else {
                set.accept(i);
            }
        }
        vector.setValueCount(count);
    }

    /** Short and long, empty too, so that views are of both forms. */
    private static byte[] text(Random random) {
        StringBuilder text = new StringBuilder();
        int size = random.nextInt(30);
        for (int i = 0; i < size; i++) {
            text.appendCodePoint(random.nextBoolean() ? 'a' + random.nextInt(26) : 0x1F600 + i);
        }
        return text.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }
}
