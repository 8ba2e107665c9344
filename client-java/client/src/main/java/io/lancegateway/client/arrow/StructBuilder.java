package io.lancegateway.client.arrow;

/** Collects structs. A struct is {@code append()} here and one value in each child. */
public final class StructBuilder extends ColumnBuilder {

    private final ColumnBuilder[] children;

    StructBuilder(ArrowField field, SizeCounter size) {
        this(
                field,
                field.children().stream()
                        .map(child -> ColumnBuilder.of(child, size))
                        .toArray(ColumnBuilder[]::new));
    }

    private StructBuilder(ArrowField field, ColumnBuilder[] children) {
        super(field, sum(children));
        this.children = children;
    }

    private static long sum(ColumnBuilder[] children) {
        long bits = 0;
        for (ColumnBuilder child : children) {
            bits += child.bitsPerValue;
        }
        return bits;
    }

    /** Number of fields. */
    public int size() {
        return children.length;
    }

    public ColumnBuilder child(int index) {
        return children[index];
    }

    /** Appends a struct whose fields the caller appends to the children. */
    public void append() {
        length++;
    }

    @Override
    void appendEmpty() {
        for (ColumnBuilder child : children) {
            child.appendBelowNull();
        }
        length++;
    }

    @Override
    void encode(BodyWriter body) {
        encodeNode(body);
        for (ColumnBuilder child : children) {
            if (child.length() != length) {
                throw new IllegalStateException(
                        String.format(
                                "field '%s.%s' has %d values for %d structs",
                                field.name(), child.field.name(), child.length(), length));
            }
            child.encode(body);
        }
    }

    @Override
    void reset() {
        for (ColumnBuilder child : children) {
            child.reset();
        }
        super.reset();
    }
}
