package io.lancegateway.client.arrow;

/** A column of structs. A field of a null struct may be null or not; it has no meaning. */
public final class StructVector extends ArrowVector {

    private final ArrowVector[] children;

    StructVector(
            ArrowField field,
            int length,
            int nullCount,
            byte[] bytes,
            int validity,
            ArrowVector[] children) {
        super(field, length, nullCount, bytes, validity);
        this.children = children;
    }

    /** Number of fields. */
    public int size() {
        return children.length;
    }

    public ArrowVector child(int index) {
        return children[index];
    }
}
