package io.lancegateway.client.arrow;

import java.util.Objects;
import org.apache.arrow.flatbuf.Type;

/** The logical type of a column, with its parameters. Immutable. */
public final class ArrowType {

    /** What a type is, without its parameters. */
    public enum Kind {
        NULL(Type.Null),
        BOOL(Type.Bool),
        INT8(Type.Int),
        INT16(Type.Int),
        INT32(Type.Int),
        INT64(Type.Int),
        UINT8(Type.Int),
        UINT16(Type.Int),
        UINT32(Type.Int),
        UINT64(Type.Int),
        FLOAT16(Type.FloatingPoint),
        FLOAT32(Type.FloatingPoint),
        FLOAT64(Type.FloatingPoint),
        DECIMAL32(Type.Decimal),
        DECIMAL64(Type.Decimal),
        DECIMAL128(Type.Decimal),
        DECIMAL256(Type.Decimal),
        DATE32(Type.Date),
        DATE64(Type.Date),
        TIME32(Type.Time),
        TIME64(Type.Time),
        TIMESTAMP(Type.Timestamp),
        DURATION(Type.Duration),
        INTERVAL_YEAR_MONTH(Type.Interval),
        INTERVAL_DAY_TIME(Type.Interval),
        INTERVAL_MONTH_DAY_NANO(Type.Interval),
        UTF8(Type.Utf8),
        LARGE_UTF8(Type.LargeUtf8),
        UTF8_VIEW(Type.Utf8View),
        BINARY(Type.Binary),
        LARGE_BINARY(Type.LargeBinary),
        BINARY_VIEW(Type.BinaryView),
        FIXED_SIZE_BINARY(Type.FixedSizeBinary),
        LIST(Type.List),
        LARGE_LIST(Type.LargeList),
        FIXED_SIZE_LIST(Type.FixedSizeList),
        STRUCT(Type.Struct_),
        MAP(Type.Map);

        /** The name of the type on the wire. */
        final byte code;

        Kind(byte code) {
            this.code = code;
        }
    }

    /** The unit of a temporal type. */
    public enum Unit {
        SECOND,
        MILLISECOND,
        MICROSECOND,
        NANOSECOND
    }

    public static final ArrowType NULL = new ArrowType(Kind.NULL);
    public static final ArrowType BOOL = new ArrowType(Kind.BOOL);
    public static final ArrowType INT8 = new ArrowType(Kind.INT8);
    public static final ArrowType INT16 = new ArrowType(Kind.INT16);
    public static final ArrowType INT32 = new ArrowType(Kind.INT32);
    public static final ArrowType INT64 = new ArrowType(Kind.INT64);
    public static final ArrowType UINT8 = new ArrowType(Kind.UINT8);
    public static final ArrowType UINT16 = new ArrowType(Kind.UINT16);
    public static final ArrowType UINT32 = new ArrowType(Kind.UINT32);
    public static final ArrowType UINT64 = new ArrowType(Kind.UINT64);
    public static final ArrowType FLOAT16 = new ArrowType(Kind.FLOAT16);
    public static final ArrowType FLOAT32 = new ArrowType(Kind.FLOAT32);
    public static final ArrowType FLOAT64 = new ArrowType(Kind.FLOAT64);
    public static final ArrowType DATE32 = new ArrowType(Kind.DATE32);
    public static final ArrowType DATE64 = new ArrowType(Kind.DATE64);
    public static final ArrowType INTERVAL_YEAR_MONTH = new ArrowType(Kind.INTERVAL_YEAR_MONTH);
    public static final ArrowType INTERVAL_DAY_TIME = new ArrowType(Kind.INTERVAL_DAY_TIME);
    public static final ArrowType INTERVAL_MONTH_DAY_NANO =
            new ArrowType(Kind.INTERVAL_MONTH_DAY_NANO);
    public static final ArrowType UTF8 = new ArrowType(Kind.UTF8);
    public static final ArrowType LARGE_UTF8 = new ArrowType(Kind.LARGE_UTF8);
    public static final ArrowType UTF8_VIEW = new ArrowType(Kind.UTF8_VIEW);
    public static final ArrowType BINARY = new ArrowType(Kind.BINARY);
    public static final ArrowType LARGE_BINARY = new ArrowType(Kind.LARGE_BINARY);
    public static final ArrowType BINARY_VIEW = new ArrowType(Kind.BINARY_VIEW);

    /** One child: the element. */
    public static final ArrowType LIST = new ArrowType(Kind.LIST);

    /** One child: the element. */
    public static final ArrowType LARGE_LIST = new ArrowType(Kind.LARGE_LIST);

    /** Children: the fields. */
    public static final ArrowType STRUCT = new ArrowType(Kind.STRUCT);

    /** One child: a struct of key and value, not nullable. */
    public static final ArrowType MAP = new ArrowType(Kind.MAP);

    private final Kind kind;
    private final Unit unit;
    private final String timeZone;
    private final int precision;
    private final int scale;
    private final int size;
    private final boolean keysSorted;

    private ArrowType(Kind kind) {
        this(kind, null, null, 0, 0, 0, false);
    }

    private ArrowType(
            Kind kind,
            Unit unit,
            String timeZone,
            int precision,
            int scale,
            int size,
            boolean keysSorted) {
        this.kind = kind;
        this.unit = unit;
        this.timeZone = timeZone;
        this.precision = precision;
        this.scale = scale;
        this.size = size;
        this.keysSorted = keysSorted;
    }

    /** A decimal of 128 bits: precision 1 to 38. */
    public static ArrowType decimal128(int precision, int scale) {
        return decimal(Kind.DECIMAL128, 38, precision, scale);
    }

    /** A decimal of 256 bits: precision 1 to 76. */
    public static ArrowType decimal256(int precision, int scale) {
        return decimal(Kind.DECIMAL256, 76, precision, scale);
    }

    static ArrowType decimal32(int precision, int scale) {
        return decimal(Kind.DECIMAL32, 9, precision, scale);
    }

    static ArrowType decimal64(int precision, int scale) {
        return decimal(Kind.DECIMAL64, 18, precision, scale);
    }

    private static ArrowType decimal(Kind kind, int max, int precision, int scale) {
        if (precision < 1 || precision > max) {
            throw new IllegalArgumentException(
                    "precision of " + kind + " must be 1 to " + max + ", not " + precision);
        }
        return new ArrowType(kind, null, null, precision, scale, 0, false);
    }

    /** A time of day in seconds or milliseconds. */
    public static ArrowType time32(Unit unit) {
        if (unit != Unit.SECOND && unit != Unit.MILLISECOND) {
            throw new IllegalArgumentException("time32 holds seconds or milliseconds, not " + unit);
        }
        return new ArrowType(Kind.TIME32, unit, null, 0, 0, 0, false);
    }

    /** A time of day in microseconds or nanoseconds. */
    public static ArrowType time64(Unit unit) {
        if (unit != Unit.MICROSECOND && unit != Unit.NANOSECOND) {
            throw new IllegalArgumentException(
                    "time64 holds microseconds or nanoseconds, not " + unit);
        }
        return new ArrowType(Kind.TIME64, unit, null, 0, 0, 0, false);
    }

    /** A wall-clock time without zone. */
    public static ArrowType timestamp(Unit unit) {
        return timestamp(unit, null);
    }

    /** An instant if there is a zone, else a wall-clock time. */
    public static ArrowType timestamp(Unit unit, String timeZone) {
        Objects.requireNonNull(unit, "unit");
        String zone = timeZone == null || timeZone.isEmpty() ? null : timeZone;
        return new ArrowType(Kind.TIMESTAMP, unit, zone, 0, 0, 0, false);
    }

    /** A length of time. */
    public static ArrowType duration(Unit unit) {
        Objects.requireNonNull(unit, "unit");
        return new ArrowType(Kind.DURATION, unit, null, 0, 0, 0, false);
    }

    /** Byte strings of one size. */
    public static ArrowType fixedSizeBinary(int size) {
        if (size < 0) {
            throw new IllegalArgumentException("negative size of fixed size binary: " + size);
        }
        return new ArrowType(Kind.FIXED_SIZE_BINARY, null, null, 0, 0, size, false);
    }

    /** Lists of one size; one child: the element. */
    public static ArrowType fixedSizeList(int size) {
        if (size < 0) {
            throw new IllegalArgumentException("negative size of fixed size list: " + size);
        }
        return new ArrowType(Kind.FIXED_SIZE_LIST, null, null, 0, 0, size, false);
    }

    static ArrowType map(boolean keysSorted) {
        return keysSorted ? new ArrowType(Kind.MAP, null, null, 0, 0, 0, true) : MAP;
    }

    public Kind kind() {
        return kind;
    }

    /** The unit of a TIME, TIMESTAMP or DURATION, else null. */
    public Unit unit() {
        return unit;
    }

    /** The zone of a TIMESTAMP that has one, else null. */
    public String timeZone() {
        return timeZone;
    }

    /** Digits of a decimal. */
    public int precision() {
        return precision;
    }

    /** Digits of a decimal behind the point. */
    public int scale() {
        return scale;
    }

    /** Elements of a FIXED_SIZE_LIST, bytes of a FIXED_SIZE_BINARY. */
    public int size() {
        return size;
    }

    /** Whether the keys of each MAP are sorted. */
    public boolean keysSorted() {
        return keysSorted;
    }

    /** Bytes of one value if all values have one size in whole bytes, else -1. */
    public int byteWidth() {
        switch (kind) {
            case INT8:
            case UINT8:
                return 1;
            case INT16:
            case UINT16:
            case FLOAT16:
                return 2;
            case INT32:
            case UINT32:
            case FLOAT32:
            case DECIMAL32:
            case DATE32:
            case TIME32:
            case INTERVAL_YEAR_MONTH:
                return 4;
            case INT64:
            case UINT64:
            case FLOAT64:
            case DECIMAL64:
            case DATE64:
            case TIME64:
            case TIMESTAMP:
            case DURATION:
            case INTERVAL_DAY_TIME:
                return 8;
            case DECIMAL128:
            case INTERVAL_MONTH_DAY_NANO:
                return 16;
            case DECIMAL256:
                return 32;
            case FIXED_SIZE_BINARY:
                return size;
            default:
                return -1;
        }
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ArrowType)) {
            return false;
        }
        ArrowType that = (ArrowType) other;
        return kind == that.kind
                && unit == that.unit
                && Objects.equals(timeZone, that.timeZone)
                && precision == that.precision
                && scale == that.scale
                && size == that.size
                && keysSorted == that.keysSorted;
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, unit, timeZone, precision, scale, size, keysSorted);
    }

    @Override
    public String toString() {
        switch (kind) {
            case DECIMAL32:
            case DECIMAL64:
            case DECIMAL128:
            case DECIMAL256:
                return kind + "(" + precision + ", " + scale + ")";
            case FIXED_SIZE_BINARY:
            case FIXED_SIZE_LIST:
                return kind + "(" + size + ")";
            case TIME32:
            case TIME64:
            case DURATION:
                return kind + "(" + unit + ")";
            case TIMESTAMP:
                return kind + "(" + unit + (timeZone == null ? "" : ", " + timeZone) + ")";
            default:
                return kind.name();
        }
    }
}
