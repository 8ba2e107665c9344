package io.lancegateway.client.arrow;

import java.nio.charset.StandardCharsets;

/** A column of strings (UTF-8) or byte strings of any size. */
public final class BinaryVector extends ArrowVector {

    /** How positions are stored. */
    enum Layout {
        OFFSETS32,
        OFFSETS64,
        VIEWS
    }

    /** Values up to this long stand in their view. */
    private static final int MAX_INLINE = 12;

    static final int VIEW_SIZE = 16;

    private final Layout layout;

    /** Position of the offsets or views. */
    private final int index;

    /** Position of the data. */
    private final int data;

    /** Positions of the data buffers of views. */
    private final int[] viewData;

    BinaryVector(
            ArrowField field,
            int length,
            int nullCount,
            byte[] bytes,
            int validity,
            Layout layout,
            int index,
            int data,
            int[] viewData) {
        super(field, length, nullCount, bytes, validity);
        this.layout = layout;
        this.index = index;
        this.data = data;
        this.viewData = viewData;
    }

    /** Where the value begins in {@link #bytes()}. */
    public int position(int i) {
        switch (layout) {
            case OFFSETS32:
                return data + LittleEndian.getInt(bytes, index + (i << 2));
            case OFFSETS64:
                return data + (int) LittleEndian.getLong(bytes, index + (i << 3));
            default:
                int view = index + i * VIEW_SIZE;
                if (LittleEndian.getInt(bytes, view) <= MAX_INLINE) {
                    return view + 4;
                }
                int buffer = LittleEndian.getInt(bytes, view + 8);
                return viewData[buffer] + LittleEndian.getInt(bytes, view + 12);
        }
    }

    /** Bytes of the value. Of a null: anything. */
    public int size(int i) {
        switch (layout) {
            case OFFSETS32:
                int at = index + (i << 2);
                return LittleEndian.getInt(bytes, at + 4) - LittleEndian.getInt(bytes, at);
            case OFFSETS64:
                int wide = index + (i << 3);
                return (int)
                        (LittleEndian.getLong(bytes, wide + 8) - LittleEndian.getLong(bytes, wide));
            default:
                return LittleEndian.getInt(bytes, index + i * VIEW_SIZE);
        }
    }

    /** A copy of the value. */
    public byte[] getBytes(int i) {
        byte[] copy = new byte[size(i)];
        System.arraycopy(bytes, position(i), copy, 0, copy.length);
        return copy;
    }

    /** The value as a string. */
    public String getString(int i) {
        return new String(bytes, position(i), size(i), StandardCharsets.UTF_8);
    }
}
