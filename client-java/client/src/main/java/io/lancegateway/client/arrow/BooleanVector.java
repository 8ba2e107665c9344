package io.lancegateway.client.arrow;

/** A column of booleans. */
public final class BooleanVector extends ArrowVector {

    private final int data;

    BooleanVector(
            ArrowField field, int length, int nullCount, byte[] bytes, int validity, int data) {
        super(field, length, nullCount, bytes, validity);
        this.data = data;
    }

    /** The value; false or true, anything, if it is null. */
    public boolean get(int index) {
        return bit(bytes, data, index);
    }
}
