package io.lancegateway.client.arrow;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A column whose values have one size: numbers, decimals, temporal values and fixed size binary.
 *
 * <p>Reads are as wide as their name says, whatever the type: {@code getLong} of a 128-bit decimal
 * gives its low half, which is the unscaled value if the precision is at most 18.
 */
public final class FixedWidthVector extends ArrowVector {

    private final int data;
    private final int width;

    FixedWidthVector(
            ArrowField field,
            int length,
            int nullCount,
            byte[] bytes,
            int validity,
            int data,
            int width) {
        super(field, length, nullCount, bytes, validity);
        this.data = data;
        this.width = width;
    }

    /** Bytes of one value. */
    public int width() {
        return width;
    }

    /** Where the value begins in {@link #bytes()}. */
    public int position(int index) {
        return data + index * width;
    }

    public byte getByte(int index) {
        return bytes[position(index)];
    }

    public short getShort(int index) {
        return LittleEndian.getShort(bytes, position(index));
    }

    public int getInt(int index) {
        return LittleEndian.getInt(bytes, position(index));
    }

    public long getLong(int index) {
        return LittleEndian.getLong(bytes, position(index));
    }

    public float getFloat(int index) {
        return LittleEndian.getFloat(bytes, position(index));
    }

    public double getDouble(int index) {
        return LittleEndian.getDouble(bytes, position(index));
    }

    /** A FLOAT16. */
    public float getHalf(int index) {
        return Half.toFloat(getShort(index));
    }

    /** The signed value of all bytes: the unscaled value of a decimal of any width. */
    public BigInteger getBigInteger(int index) {
        byte[] bigEndian = new byte[width];
        int at = position(index);
        for (int i = 0; i < width; i++) {
            bigEndian[width - 1 - i] = bytes[at + i];
        }
        return new BigInteger(bigEndian);
    }

    /** Copies {@code count} FLOAT32 values from {@code index} on. */
    public void getFloats(int index, float[] target, int offset, int count) {
        slice(index, count, Float.BYTES).asFloatBuffer().get(target, offset, count);
    }

    /** Copies {@code count} FLOAT64 values from {@code index} on. */
    public void getDoubles(int index, double[] target, int offset, int count) {
        slice(index, count, Double.BYTES).asDoubleBuffer().get(target, offset, count);
    }

    private ByteBuffer slice(int index, int count, int size) {
        if (size != width) {
            throw new IllegalArgumentException(
                    "field '" + field.name() + "' has values of " + width + " bytes, not " + size);
        }
        return ByteBuffer.wrap(bytes, position(index), count * width)
                .order(ByteOrder.LITTLE_ENDIAN);
    }
}
