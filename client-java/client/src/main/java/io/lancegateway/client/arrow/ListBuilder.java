package io.lancegateway.client.arrow;

/**
 * Collects lists, or maps as lists of structs of key and value. A list of n elements is {@code
 * append(n)} here and n values in {@link #child()}.
 */
public final class ListBuilder extends ColumnBuilder {

    private final SizeCounter size;
    private final ColumnBuilder child;
    private byte[] offsets = new byte[Integer.BYTES];

    /** Elements of all lists so far. */
    private int end;

    ListBuilder(ArrowField field, SizeCounter size) {
        super(field, field.type().kind() == ArrowType.Kind.LARGE_LIST ? Long.SIZE : Integer.SIZE);
        this.size = size;
        this.child = ColumnBuilder.of(field.child(0), size);
    }

    /** Takes the elements. */
    public ColumnBuilder child() {
        return child;
    }

    /** Appends a list of this many elements. */
    public void append(int elements) {
        end = Math.addExact(end, elements);
        size.bits += elements * child.bitsPerValue;
        appendEnd();
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
        if (child.length() != end) {
            throw new IllegalStateException(
                    String.format(
                            "field '%s': its lists have %d elements, but %d were appended",
                            field.name(), end, child.length()));
        }
        encodeNode(body);
        if (field.type().kind() == ArrowType.Kind.LARGE_LIST) {
            byte[] wide = Offsets.int64(offsets, length);
            body.buffer(wide, wide.length);
        } else {
            body.buffer(offsets, (length + 1) << 2);
        }
        child.encode(body);
    }

    @Override
    void reset() {
        end = 0;
        child.reset();
        super.reset();
    }
}
