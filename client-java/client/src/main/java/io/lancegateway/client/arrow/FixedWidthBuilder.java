package io.lancegateway.client.arrow;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;

/**
 * Collects values of one size: numbers, decimals, temporal values and fixed size binary. The method
 * must be as wide as the type.
 */
public final class FixedWidthBuilder extends ColumnBuilder {

    private final int width;
    private byte[] data = new byte[0];

    /** Bytes that are in use. */
    private int end;

    /** Views of {@link #data}, made when first needed. */
    private FloatBuffer floats;

    private DoubleBuffer doubles;

    FixedWidthBuilder(ArrowField field) {
        super(field, field.type().byteWidth() * 8L);
        this.width = field.type().byteWidth();
    }

    /** Bytes of one value. */
    public int width() {
        return width;
    }

    public void appendByte(byte value) {
        int at = next(Byte.BYTES);
        data[at] = value;
    }

    public void appendShort(short value) {
        int at = next(Short.BYTES);
        LittleEndian.putShort(data, at, value);
    }

    public void appendInt(int value) {
        int at = next(Integer.BYTES);
        LittleEndian.putInt(data, at, value);
    }

    public void appendLong(long value) {
        int at = next(Long.BYTES);
        LittleEndian.putLong(data, at, value);
    }

    public void appendFloat(float value) {
        int at = next(Float.BYTES);
        LittleEndian.putFloat(data, at, value);
    }

    public void appendDouble(double value) {
        int at = next(Double.BYTES);
        LittleEndian.putDouble(data, at, value);
    }

    /** Appends to a FLOAT16, rounded to nearest. */
    public void appendHalf(float value) {
        appendShort(Half.fromFloat(value));
    }

    /** Appends a 128-bit value from a signed 64-bit one: the unscaled value of a decimal. */
    public void appendLong128(long value) {
        int at = next(2 * Long.BYTES);
        LittleEndian.putLong(data, at, value);
        LittleEndian.putLong(data, at + Long.BYTES, value >> 63);
    }

    /**
     * Appends a signed value of the builder's width: the unscaled value of a decimal.
     *
     * @throws IllegalArgumentException if it needs more bytes
     */
    public void appendBigInteger(BigInteger value) {
        byte[] bigEndian = value.toByteArray();
        if (bigEndian.length > width) {
            throw new IllegalArgumentException(
                    "field '" + field.name() + "': a value exceeds " + field.type());
        }
        int at = next(width);
        for (int i = 0; i < bigEndian.length; i++) {
            data[at + i] = bigEndian[bigEndian.length - 1 - i];
        }
        byte sign = (byte) (value.signum() < 0 ? -1 : 0);
        Arrays.fill(data, at + bigEndian.length, at + width, sign);
    }

    /** Appends one value as it stands, in little-endian order. */
    public void appendBytes(byte[] source, int offset, int size) {
        int at = next(size);
        System.arraycopy(source, offset, data, at, size);
    }

    /** Appends {@code count} values of 4 bytes at once. */
    public void appendFloats(float[] source, int offset, int count) {
        int at = reserve(count, Float.BYTES);
        if (floats == null) {
            floats = view().asFloatBuffer();
        }
        floats.position(at / Float.BYTES);
        floats.put(source, offset, count);
    }

    /** Appends {@code count} values of 8 bytes at once. */
    public void appendDoubles(double[] source, int offset, int count) {
        int at = reserve(count, Double.BYTES);
        if (doubles == null) {
            doubles = view().asDoubleBuffer();
        }
        doubles.position(at / Double.BYTES);
        doubles.put(source, offset, count);
    }

    /**
     * Appends {@code count} values that the caller writes into {@link #bytes()}, in little-endian
     * order, from the returned position on, before it appends more.
     */
    public int reserve(int count) {
        return reserve(count, width);
    }

    /** Where values are; another array after each append. */
    public byte[] bytes() {
        return data;
    }

    private int next(int size) {
        if (size != width) {
            throw wrongWidth(size);
        }
        int at = end;
        if (at + size > data.length || at + size < 0) {
            growTo(at + (long) size);
        }
        end = at + size;
        length++;
        return at;
    }

    private int reserve(int count, int size) {
        if (size != width) {
            throw wrongWidth(size);
        }
        int at = end;
        long newEnd = at + (long) count * size;
        if (newEnd > data.length) {
            growTo(newEnd);
        }
        end = (int) newEnd;
        length += count;
        return at;
    }

    private void growTo(long atLeast) {
        data = grow(data, atLeast);
        floats = null;
        doubles = null;
    }

    private ByteBuffer view() {
        return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    }

    private IllegalArgumentException wrongWidth(int size) {
        return new IllegalArgumentException(
                String.format(
                        "field '%s': %s takes values of %d bytes, not %d",
                        field.name(), field.type(), width, size));
    }

    @Override
    void appendEmpty() {
        int at = next(width);
        Arrays.fill(data, at, at + width, (byte) 0);
    }

    @Override
    void encode(BodyWriter body) {
        encodeNode(body);
        body.buffer(data, end);
    }

    @Override
    void reset() {
        end = 0;
        super.reset();
    }
}
