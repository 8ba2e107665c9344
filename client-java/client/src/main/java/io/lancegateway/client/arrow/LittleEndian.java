package io.lancegateway.client.arrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Numbers in byte arrays, in Arrow's byte order, at any alignment. */
final class LittleEndian {

    private static final VarHandle SHORT = view(short[].class);
    private static final VarHandle INT = view(int[].class);
    private static final VarHandle LONG = view(long[].class);
    private static final VarHandle FLOAT = view(float[].class);
    private static final VarHandle DOUBLE = view(double[].class);

    private LittleEndian() {}

    private static VarHandle view(Class<?> type) {
        return MethodHandles.byteArrayViewVarHandle(type, ByteOrder.LITTLE_ENDIAN);
    }

    static short getShort(byte[] bytes, int at) {
        return (short) SHORT.get(bytes, at);
    }

    static int getInt(byte[] bytes, int at) {
        return (int) INT.get(bytes, at);
    }

    static long getLong(byte[] bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    static float getFloat(byte[] bytes, int at) {
        return (float) FLOAT.get(bytes, at);
    }

    static double getDouble(byte[] bytes, int at) {
        return (double) DOUBLE.get(bytes, at);
    }

    static void putShort(byte[] bytes, int at, short value) {
        SHORT.set(bytes, at, value);
    }

    static void putInt(byte[] bytes, int at, int value) {
        INT.set(bytes, at, value);
    }

    static void putLong(byte[] bytes, int at, long value) {
        LONG.set(bytes, at, value);
    }

    static void putFloat(byte[] bytes, int at, float value) {
        FLOAT.set(bytes, at, value);
    }

    static void putDouble(byte[] bytes, int at, double value) {
        DOUBLE.set(bytes, at, value);
    }
}
