package io.lancegateway.client.arrow;

/**
 * One column of a batch: a view of a heap array. It stays valid for as long as somebody holds it,
 * and may be read by any number of threads.
 */
public abstract class ArrowVector {

    /** Of {@link #validity}: no value is null. */
    static final int NO_NULLS = -1;

    /** Of {@link #validity}: every value is null. */
    static final int ALL_NULLS = -2;

    final ArrowField field;
    final int length;
    final int nullCount;

    /** What all positions of this vector point into. */
    final byte[] bytes;

    /** Position of the validity bitmap. */
    private final int validity;

    ArrowVector(ArrowField field, int length, int nullCount, byte[] bytes, int validity) {
        this.field = field;
        this.length = length;
        this.nullCount = nullCount;
        this.bytes = bytes;
        this.validity = validity;
    }

    public final ArrowField field() {
        return field;
    }

    public final int length() {
        return length;
    }

    public final int nullCount() {
        return nullCount;
    }

    public final boolean hasNulls() {
        return nullCount != 0;
    }

    public final boolean isNull(int index) {
        return validity < 0 ? validity == ALL_NULLS : !bit(bytes, validity, index);
    }

    /** The array that the positions of this vector point into. Not to be written to. */
    public final byte[] bytes() {
        return bytes;
    }

    static boolean bit(byte[] bytes, int at, int index) {
        return (bytes[at + (index >>> 3)] >>> (index & 7) & 1) != 0;
    }
}
