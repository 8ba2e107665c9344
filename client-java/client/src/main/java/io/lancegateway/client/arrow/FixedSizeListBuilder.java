package io.lancegateway.client.arrow;

/**
 * Collects lists of one size. A list is {@code append()} here and {@link #listSize()} values in
 * {@link #child()}, or one call for a whole vector of numbers.
 */
public final class FixedSizeListBuilder extends ColumnBuilder {

    private final int listSize;
    private final ColumnBuilder child;

    FixedSizeListBuilder(ArrowField field, SizeCounter size) {
        this(field, ColumnBuilder.of(field.child(0), size));
    }

    private FixedSizeListBuilder(ArrowField field, ColumnBuilder child) {
        super(field, field.type().size() * child.bitsPerValue);
        this.listSize = field.type().size();
        this.child = child;
    }

    /** Elements of each list. */
    public int listSize() {
        return listSize;
    }

    /** Takes the elements. */
    public ColumnBuilder child() {
        return child;
    }

    /** Appends a list whose elements the caller appends to the child. */
    public void append() {
        length++;
    }

    /**
     * Appends a list of FLOAT32 with one copy.
     *
     * @throws IllegalArgumentException if it has another size than the type
     */
    public void appendFloats(float[] vector) {
        checkSize(vector.length);
        ((FixedWidthBuilder) child).appendFloats(vector, 0, listSize);
        length++;
    }

    /**
     * Appends a list of FLOAT64 with one copy.
     *
     * @throws IllegalArgumentException if it has another size than the type
     */
    public void appendDoubles(double[] vector) {
        checkSize(vector.length);
        ((FixedWidthBuilder) child).appendDoubles(vector, 0, listSize);
        length++;
    }

    private void checkSize(int size) {
        if (size != listSize) {
            throw new IllegalArgumentException(
                    String.format(
                            "field '%s' takes lists of %d elements, not %d",
                            field.name(), listSize, size));
        }
    }

    @Override
    void appendEmpty() {
        for (int i = 0; i < listSize; i++) {
            child.appendBelowNull();
        }
        length++;
    }

    @Override
    void encode(BodyWriter body) {
        if (child.length() != (long) length * listSize) {
            throw new IllegalStateException(
                    String.format(
                            "field '%s': %d lists of %d elements, but %d elements were appended",
                            field.name(), length, listSize, child.length()));
        }
        encodeNode(body);
        child.encode(body);
    }

    @Override
    void reset() {
        child.reset();
        super.reset();
    }
}
