package io.lancegateway.client.arrow;

import java.util.Arrays;

/**
 * Collects the values of one column on the heap. Its class follows from the type of the field: see
 * {@link ArrowBatchBuilder}.
 */
public abstract class ColumnBuilder {

    /** Arrays cannot be longer. */
    private static final int MAX_ARRAY = Integer.MAX_VALUE - 8;

    final ArrowField field;

    /** Bits that every value costs, whatever it is. */
    final long bitsPerValue;

    int length;
    private int nullCount;

    /** A set bit is a null: so a value that is there costs nothing. */
    private byte[] nulls = new byte[0];

    ColumnBuilder(ArrowField field, long bitsPerValue) {
        this.field = field;
        this.bitsPerValue = bitsPerValue + (field.isNullable() ? 1 : 0);
    }

    /** The builder of the class that the type asks for. */
    static ColumnBuilder of(ArrowField field, SizeCounter size) {
        switch (field.type().kind()) {
            case NULL:
                return new NullBuilder(field);
            case BOOL:
                return new BooleanBuilder(field);
            case UTF8:
            case LARGE_UTF8:
            case UTF8_VIEW:
            case BINARY:
            case LARGE_BINARY:
            case BINARY_VIEW:
                return new BinaryBuilder(field, size);
            case LIST:
            case LARGE_LIST:
            case MAP:
                return new ListBuilder(field, size);
            case FIXED_SIZE_LIST:
                return new FixedSizeListBuilder(field, size);
            case STRUCT:
                return new StructBuilder(field, size);
            default:
                return new FixedWidthBuilder(field);
        }
    }

    public final ArrowField field() {
        return field;
    }

    /** Number of values so far. */
    public final int length() {
        return length;
    }

    /**
     * Appends a null.
     *
     * @throws IllegalArgumentException if the field is not nullable
     */
    public final void appendNull() {
        if (!field.isNullable()) {
            throw new IllegalArgumentException(
                    "field '" + field.name() + "' is not nullable, but the value is null");
        }
        markNull();
        appendEmpty();
    }

    /** Appends what stands where no value is: below a null, also in a field without nulls. */
    final void appendBelowNull() {
        if (field.isNullable()) {
            markNull();
        }
        appendEmpty();
    }

    /** Appends a value of no meaning, with everything below it. */
    abstract void appendEmpty();

    /** Writes the nodes and buffers of this column and those below. */
    abstract void encode(BodyWriter body);

    void reset() {
        if (nullCount != 0) {
            Arrays.fill(nulls, 0, Math.min(nulls.length, (length + 7) >>> 3), (byte) 0);
        }
        nullCount = 0;
        length = 0;
    }

    private void markNull() {
        int at = length >>> 3;
        if (at >= nulls.length) {
            nulls = grow(nulls, at + 1);
        }
        nulls[at] |= (byte) (1 << (length & 7));
        nullCount++;
    }

    /** Writes this column's node and validity. */
    final void encodeNode(BodyWriter body) {
        body.node(length, nullCount);
        if (nullCount == 0) {
            body.buffer(nulls, 0);
            return;
        }
        byte[] validity = new byte[(length + 7) >>> 3];
        for (int i = 0; i < validity.length; i++) {
            validity[i] = (byte) ~(i < nulls.length ? nulls[i] : 0);
        }
        if ((length & 7) != 0) {
            validity[validity.length - 1] &= (byte) ((1 << (length & 7)) - 1);
        }
        body.buffer(validity, validity.length);
    }

    final void encodeOnlyNode(BodyWriter body, int nulls) {
        body.node(length, nulls);
    }

    /** The same array or a longer copy, of at least this many bytes. */
    final byte[] grow(byte[] array, long atLeast) {
        if (atLeast <= array.length) {
            return array;
        }
        if (atLeast > MAX_ARRAY) {
            throw new IllegalArgumentException(
                    "field '"
                            + field.name()
                            + "' exceeds 2 GiB in one batch: cut batches by their size in bytes");
        }
        long doubled = Math.max(64, array.length * 2L);
        return Arrays.copyOf(array, (int) Math.min(MAX_ARRAY, Math.max(atLeast, doubled)));
    }

    /** What values of variable size cost, over all columns of a batch. */
    static final class SizeCounter {
        long bits;
    }
}
