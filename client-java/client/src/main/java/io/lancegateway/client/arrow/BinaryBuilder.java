package io.lancegateway.client.arrow;

import java.nio.charset.StandardCharsets;

/** Collects strings (UTF-8) or byte strings of any size. */
public final class BinaryBuilder extends ColumnBuilder {

    private final SizeCounter size;

    /** As int32 with the leading zero; widened or made views only when encoded. */
    private byte[] offsets = new byte[Integer.BYTES];

    private byte[] data = new byte[0];

    /** Bytes of data that are in use. */
    private int end;

    BinaryBuilder(ArrowField field, SizeCounter size) {
        super(field, bitsPerValue(field.type()));
        this.size = size;
    }

    private static long bitsPerValue(ArrowType type) {
        switch (type.kind()) {
            case LARGE_UTF8:
            case LARGE_BINARY:
                return Long.SIZE;
            case UTF8_VIEW:
            case BINARY_VIEW:
                return BinaryVector.VIEW_SIZE * 8L;
            default:
                return Integer.SIZE;
        }
    }

    public void append(byte[] value) {
        append(value, 0, value.length);
    }

    public void append(byte[] source, int offset, int size) {
        int at = reserve(size);
        System.arraycopy(source, offset, data, at, size);
    }

    public void append(String value) {
        append(value.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Appends a value of this size that the caller writes into {@link #bytes()} from the returned
     * position on, before it appends more.
     */
    public int reserve(int bytes) {
        int at = end;
        long newEnd = at + (long) bytes;
        if (newEnd > data.length) {
            data = grow(data, newEnd);
        }
        end = (int) newEnd;
        size.bits += (long) bytes << 3;
        appendEnd();
        return at;
    }

    /** Where values are; another array after each append. */
    public byte[] bytes() {
        return data;
    }

    private void appendEnd() {
        int at = (length + 1) << 2;
        if (at + 4 > offsets.length) {
            offsets = grow(offsets, at + 4L);
        }
        LittleEndian.putInt(offsets, at, end);
        length++;
    }

    @Override
    void appendEmpty() {
        appendEnd();
    }

    @Override
    void encode(BodyWriter body) {
        encodeNode(body);
        switch (field.type().kind()) {
            case UTF8_VIEW:
            case BINARY_VIEW:
                byte[] views = Offsets.views(offsets, length, data);
                body.buffer(views, views.length);
                body.buffer(data, end);
                body.viewColumn();
                return;
            case LARGE_UTF8:
            case LARGE_BINARY:
                byte[] wide = Offsets.int64(offsets, length);
                body.buffer(wide, wide.length);
                break;
            default:
                body.buffer(offsets, (length + 1) << 2);
        }
        body.buffer(data, end);
    }

    @Override
    void reset() {
        end = 0;
        super.reset();
    }
}
