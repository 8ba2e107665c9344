package io.lancegateway.client.arrow;

/** IEEE 754 binary16. */
final class Half {

    private static final int EXPONENT_SHIFT = 13;
    private static final float SUBNORMAL_UNIT = 0x1p-24f;

    private Half() {}

    static float toFloat(short half) {
        int sign = (half & 0x8000) << 16;
        int exponent = half >>> 10 & 0x1f;
        int mantissa = half & 0x3ff;
        if (exponent == 0) {
            float magnitude = mantissa * SUBNORMAL_UNIT;
            return sign == 0 ? magnitude : -magnitude;
        }
        int wide = exponent == 0x1f ? 0xff : exponent + 112;
        return Float.intBitsToFloat(sign | wide << 23 | mantissa << EXPONENT_SHIFT);
    }

    /** Rounds to nearest, ties to even; too large becomes infinite. */
    static short fromFloat(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        int magnitude = bits & 0x7fffffff;
        if (magnitude > 0x7f800000) {
            // Keeps the top of the payload, and is a NaN even if that is zero.
            return (short) (sign | 0x7e00 | magnitude >>> EXPONENT_SHIFT & 0x3ff);
        }
        if (magnitude >= 0x477ff000) {
            return (short) (sign | 0x7c00);
        }
        if (magnitude < 0x38800000) {
            float units = Float.intBitsToFloat(magnitude) / SUBNORMAL_UNIT;
            return (short) (sign | (int) Math.rint(units));
        }
        int rounded = magnitude + 0xfff + (magnitude >>> EXPONENT_SHIFT & 1) - (112 << 23);
        return (short) (sign | rounded >>> EXPONENT_SHIFT);
    }
}
