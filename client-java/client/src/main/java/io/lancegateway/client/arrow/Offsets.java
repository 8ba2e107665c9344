package io.lancegateway.client.arrow;

/**
 * Makes Arrow's other ways of saying where values are from the int32 offsets that builders keep.
 */
final class Offsets {

    private static final int MAX_INLINE = 12;
    private static final int PREFIX = 4;

    private Offsets() {}

    static byte[] int64(byte[] offsets, int length) {
        byte[] wide = new byte[(length + 1) * Long.BYTES];
        for (int i = 0; i <= length; i++) {
            LittleEndian.putLong(wide, i << 3, LittleEndian.getInt(offsets, i << 2));
        }
        return wide;
    }

    /** Views into data, which is the one variadic buffer. */
    static byte[] views(byte[] offsets, int length, byte[] data) {
        byte[] views = new byte[length * BinaryVector.VIEW_SIZE];
        for (int i = 0; i < length; i++) {
            int start = LittleEndian.getInt(offsets, i << 2);
            int size = LittleEndian.getInt(offsets, (i + 1) << 2) - start;
            int view = i * BinaryVector.VIEW_SIZE;
            LittleEndian.putInt(views, view, size);
            if (size <= MAX_INLINE) {
                System.arraycopy(data, start, views, view + 4, size);
            } else {
                System.arraycopy(data, start, views, view + 4, PREFIX);
                LittleEndian.putInt(views, view + 12, start);
            }
        }
        return views;
    }
}
