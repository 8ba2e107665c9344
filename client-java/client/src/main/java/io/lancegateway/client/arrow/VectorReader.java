package io.lancegateway.client.arrow;

import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.Buffer;
import org.apache.arrow.flatbuf.FieldNode;
import org.apache.arrow.flatbuf.RecordBatch;

/**
 * Lays vectors over the body of one message. Checks that every buffer is inside the body and long
 * enough for its values, so that reading a vector later cannot read another column's bytes as a
 * length without noticing the end of the array.
 */
final class VectorReader {

    private final RecordBatch batch;
    private final byte[] body;
    private final Map<Long, List<ArrowVector>> dictionaries;
    private final FieldNode node = new FieldNode();
    private final Buffer buffer = new Buffer();
    private int nextNode;
    private int nextBuffer;
    private int nextVariadic;

    /** Of the node that was read last. */
    private int length;

    private int nullCount;

    /** Of the buffer that was read last. */
    private int bufferSize;

    VectorReader(RecordBatch batch, byte[] body, Map<Long, List<ArrowVector>> dictionaries) {
        if (batch == null) {
            throw new ArrowFormatException("a message without its batch");
        }
        if (batch.compression() != null) {
            throw new ArrowFormatException("compressed Arrow data is not supported");
        }
        this.batch = batch;
        this.body = body;
        this.dictionaries = dictionaries;
    }

    ArrowVector read(ArrowField field) {
        readNode(field);
        int n = length;
        int nulls = nullCount;
        if (field.type().kind() == ArrowType.Kind.NULL) {
            return new NullVector(field, n);
        }
        int validity = readValidity(field, n, nulls);
        if (validity == ArrowVector.NO_NULLS) {
            nulls = 0;
        }
        if (field.dictionary() != null) {
            return readIndices(field, n, nulls, validity);
        }
        switch (field.type().kind()) {
            case BOOL:
                int bits = readBuffer(field, (n + 7L) >>> 3);
                return new BooleanVector(field, n, nulls, body, validity, bits);
            case UTF8:
            case BINARY:
                return readBinary(field, n, nulls, validity);
            case LARGE_UTF8:
            case LARGE_BINARY:
                return readLargeBinary(field, n, nulls, validity);
            case UTF8_VIEW:
            case BINARY_VIEW:
                return readViews(field, n, nulls, validity);
            case LIST:
            case MAP:
                return readList(field, n, nulls, validity);
            case LARGE_LIST:
                return readLargeList(field, n, nulls, validity);
            case FIXED_SIZE_LIST:
                return readFixedSizeList(field, n, nulls, validity);
            case STRUCT:
                return readStruct(field, n, nulls, validity);
            default:
                return readFixedWidth(field, field.type().byteWidth(), n, nulls, validity);
        }
    }

    private void readNode(ArrowField field) {
        if (nextNode == batch.nodesLength()) {
            throw corrupt(field, "is missing in a batch");
        }
        batch.nodes(node, nextNode++);
        length = Math.toIntExact(node.length());
        nullCount = Math.toIntExact(node.nullCount());
        if (length < 0 || nullCount < 0 || nullCount > length) {
            throw corrupt(field, "has " + nullCount + " nulls in " + length + " values");
        }
    }

    private int readBuffer(ArrowField field, long atLeast) {
        if (nextBuffer == batch.buffersLength()) {
            throw corrupt(field, "has too few buffers in a batch");
        }
        batch.buffers(buffer, nextBuffer++);
        long offset = buffer.offset();
        long size = buffer.length();
        if (offset < 0 || size < 0 || offset > body.length - size) {
            throw corrupt(field, "has a buffer beyond the end of its message");
        }
        if (size < atLeast) {
            throw corrupt(field, "has a buffer of " + size + " bytes, but needs " + atLeast);
        }
        bufferSize = (int) size;
        return (int) offset;
    }

    private int readValidity(ArrowField field, int n, int nulls) {
        int at = readBuffer(field, nulls == 0 ? 0 : (n + 7L) >>> 3);
        return nulls == 0 ? ArrowVector.NO_NULLS : at;
    }

    private FixedWidthVector readFixedWidth(
            ArrowField field, int width, int n, int nulls, int validity) {
        int data = readBuffer(field, (long) n * width);
        return new FixedWidthVector(field, n, nulls, body, validity, data, width);
    }

    /** An empty column may come without its one offset. */
    private int readOffsets(ArrowField field, int n, int width) {
        return readBuffer(field, n == 0 ? 0 : (n + 1L) * width);
    }

    private BinaryVector readBinary(ArrowField field, int n, int nulls, int validity) {
        int offsets = readOffsets(field, n, Integer.BYTES);
        int data = readBuffer(field, 0);
        checkEnds32(field, offsets, n, bufferSize);
        return new BinaryVector(
                field,
                n,
                nulls,
                body,
                validity,
                BinaryVector.Layout.OFFSETS32,
                offsets,
                data,
                null);
    }

    private BinaryVector readLargeBinary(ArrowField field, int n, int nulls, int validity) {
        int offsets = readOffsets(field, n, Long.BYTES);
        int data = readBuffer(field, 0);
        checkEnds64(field, offsets, n, bufferSize);
        return new BinaryVector(
                field,
                n,
                nulls,
                body,
                validity,
                BinaryVector.Layout.OFFSETS64,
                offsets,
                data,
                null);
    }

    private BinaryVector readViews(ArrowField field, int n, int nulls, int validity) {
        int views = readBuffer(field, (long) n * BinaryVector.VIEW_SIZE);
        if (nextVariadic == batch.variadicBufferCountsLength()) {
            throw corrupt(field, "lacks the number of its buffers");
        }
        long count = batch.variadicBufferCounts(nextVariadic++);
        if (count < 0 || count > batch.buffersLength()) {
            throw corrupt(field, "has a wrong number of buffers");
        }
        int[] data = new int[(int) count];
        for (int i = 0; i < data.length; i++) {
            data[i] = readBuffer(field, 0);
        }
        return new BinaryVector(
                field, n, nulls, body, validity, BinaryVector.Layout.VIEWS, views, 0, data);
    }

    private ListVector readList(ArrowField field, int n, int nulls, int validity) {
        int offsets = readOffsets(field, n, Integer.BYTES);
        ArrowVector child = read(field.child(0));
        checkEnds32(field, offsets, n, child.length());
        return new ListVector(
                field, n, nulls, body, validity, ListVector.Layout.OFFSETS32, offsets, 0, child);
    }

    private ListVector readLargeList(ArrowField field, int n, int nulls, int validity) {
        int offsets = readOffsets(field, n, Long.BYTES);
        ArrowVector child = read(field.child(0));
        checkEnds64(field, offsets, n, child.length());
        return new ListVector(
                field, n, nulls, body, validity, ListVector.Layout.OFFSETS64, offsets, 0, child);
    }

    private ListVector readFixedSizeList(ArrowField field, int n, int nulls, int validity) {
        int size = field.type().size();
        ArrowVector child = read(field.child(0));
        if (child.length() < (long) n * size) {
            throw corrupt(field, "has too few elements");
        }
        return new ListVector(
                field, n, nulls, body, validity, ListVector.Layout.FIXED, 0, size, child);
    }

    private StructVector readStruct(ArrowField field, int n, int nulls, int validity) {
        ArrowVector[] children = new ArrowVector[field.children().size()];
        for (int i = 0; i < children.length; i++) {
            children[i] = read(field.child(i));
            if (children[i].length() != n) {
                throw corrupt(field, "has children of another length");
            }
        }
        return new StructVector(field, n, nulls, body, validity, children);
    }

    private ArrowVector readIndices(ArrowField field, int n, int nulls, int validity) {
        ArrowType indexType = field.dictionary().indexType;
        FixedWidthVector indices = readFixedWidth(field, indexType.byteWidth(), n, nulls, validity);
        List<ArrowVector> values = dictionaries.get(field.dictionary().id);
        if (values == null) {
            if (nulls < n) {
                throw corrupt(field, "came before its dictionary");
            }
            values = List.of();
        }
        return new Gather(values).byIndices(field.withoutDictionary(), indices, indexType.kind());
    }

    private void checkEnds32(ArrowField field, int offsets, int n, int available) {
        if (n > 0) {
            checkEnds(
                    field,
                    LittleEndian.getInt(body, offsets),
                    LittleEndian.getInt(body, offsets + (n << 2)),
                    available);
        }
    }

    private void checkEnds64(ArrowField field, int offsets, int n, int available) {
        if (n > 0) {
            checkEnds(
                    field,
                    LittleEndian.getLong(body, offsets),
                    LittleEndian.getLong(body, offsets + (n << 3)),
                    available);
        }
    }

    private static void checkEnds(ArrowField field, long first, long last, long available) {
        if (first < 0 || first > last || last > available) {
            throw corrupt(field, "has values at " + first + " to " + last + " of " + available);
        }
    }

    private static ArrowFormatException corrupt(ArrowField field, String what) {
        return new ArrowFormatException("field '" + field.name() + "' " + what);
    }
}
