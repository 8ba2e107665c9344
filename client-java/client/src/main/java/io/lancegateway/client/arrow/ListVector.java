package io.lancegateway.client.arrow;

/** A column of lists, of lists of one size, or of maps (lists of structs of key and value). */
public final class ListVector extends ArrowVector {

    /** How positions are stored. */
    enum Layout {
        OFFSETS32,
        OFFSETS64,
        FIXED
    }

    private final Layout layout;
    private final int offsets;
    private final int size;
    private final ArrowVector child;

    ListVector(
            ArrowField field,
            int length,
            int nullCount,
            byte[] bytes,
            int validity,
            Layout layout,
            int offsets,
            int size,
            ArrowVector child) {
        super(field, length, nullCount, bytes, validity);
        this.layout = layout;
        this.offsets = offsets;
        this.size = size;
        this.child = child;
    }

    /** The elements of all lists. */
    public ArrowVector child() {
        return child;
    }

    /** Index in {@link #child()} of the first element. */
    public int start(int index) {
        switch (layout) {
            case OFFSETS32:
                return LittleEndian.getInt(bytes, offsets + (index << 2));
            case OFFSETS64:
                return (int) LittleEndian.getLong(bytes, offsets + (index << 3));
            default:
                return index * size;
        }
    }

    /** Number of elements. Of a null: anything. */
    public int size(int index) {
        return layout == Layout.FIXED ? size : start(index + 1) - start(index);
    }
}
