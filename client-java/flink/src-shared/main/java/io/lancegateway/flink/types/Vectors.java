package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowVector;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.BooleanVector;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.client.arrow.ListVector;
import io.lancegateway.client.arrow.StructVector;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.columnar.ColumnarArrayData;
import org.apache.flink.table.data.columnar.ColumnarMapData;
import org.apache.flink.table.data.columnar.ColumnarRowData;
import org.apache.flink.table.data.columnar.vector.ArrayColumnVector;
import org.apache.flink.table.data.columnar.vector.BooleanColumnVector;
import org.apache.flink.table.data.columnar.vector.ByteColumnVector;
import org.apache.flink.table.data.columnar.vector.BytesColumnVector;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.DecimalColumnVector;
import org.apache.flink.table.data.columnar.vector.DoubleColumnVector;
import org.apache.flink.table.data.columnar.vector.FloatColumnVector;
import org.apache.flink.table.data.columnar.vector.IntColumnVector;
import org.apache.flink.table.data.columnar.vector.LongColumnVector;
import org.apache.flink.table.data.columnar.vector.MapColumnVector;
import org.apache.flink.table.data.columnar.vector.RowColumnVector;
import org.apache.flink.table.data.columnar.vector.ShortColumnVector;
import org.apache.flink.table.data.columnar.vector.TimestampColumnVector;
import org.apache.flink.table.data.columnar.vector.VectorizedColumnBatch;

/**
 * Columns of Arrow batches as Flink's column vectors: views that convert when a cell is asked for.
 */
final class Vectors {

    private static final int MAX_COMPACT_PRECISION = 18;
    private static final long MILLIS_PER_DAY = 86_400_000L;

    private Vectors() {}

    abstract static class Of<V extends ArrowVector> implements ColumnVector {

        private static final ArrowVector[] NONE = {};

        final V vector;

        /** Structs that this is a field of: where one is null, so is this. */
        private ArrowVector[] parents = NONE;

        Of(V vector) {
            this.vector = vector;
        }

        final Of<V> below(ArrowVector[] structs) {
            parents = structs;
            return this;
        }

        @Override
        public final boolean isNullAt(int i) {
            if (vector.isNull(i)) {
                return true;
            }
            for (ArrowVector parent : parents) {
                if (parent.isNull(i)) {
                    return true;
                }
            }
            return false;
        }
    }

    // Bases, so that narrower columns can be shown as wider ones.

    abstract static class OfShort extends Of<FixedWidthVector> implements ShortColumnVector {
        OfShort(FixedWidthVector vector) {
            super(vector);
        }
    }

    abstract static class OfInt extends Of<FixedWidthVector> implements IntColumnVector {
        OfInt(FixedWidthVector vector) {
            super(vector);
        }
    }

    abstract static class OfFloat extends Of<FixedWidthVector> implements FloatColumnVector {
        OfFloat(FixedWidthVector vector) {
            super(vector);
        }
    }

    /** Nothing but nulls, of any type. */
    static final class Null implements ColumnVector {
        Null(ArrowVector vector) {}

        @Override
        public boolean isNullAt(int i) {
            return true;
        }
    }

    static final class Bool extends Of<BooleanVector> implements BooleanColumnVector {
        Bool(BooleanVector vector) {
            super(vector);
        }

        @Override
        public boolean getBoolean(int i) {
            return vector.get(i);
        }
    }

    static final class Int8 extends Of<FixedWidthVector> implements ByteColumnVector {
        Int8(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public byte getByte(int i) {
            return vector.getByte(i);
        }
    }

    static final class Int16 extends OfShort {
        Int16(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public short getShort(int i) {
            return vector.getShort(i);
        }
    }

    static final class Int8AsShort extends OfShort {
        Int8AsShort(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public short getShort(int i) {
            return vector.getByte(i);
        }
    }

    static final class Unsigned8AsShort extends OfShort {
        Unsigned8AsShort(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public short getShort(int i) {
            return (short) Byte.toUnsignedInt(vector.getByte(i));
        }
    }

    /** Integers, days, and milliseconds of a day. */
    static final class Int32 extends OfInt {
        Int32(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public int getInt(int i) {
            return vector.getInt(i);
        }
    }

    static final class Unsigned16AsInt extends OfInt {
        Unsigned16AsInt(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public int getInt(int i) {
            return Short.toUnsignedInt(vector.getShort(i));
        }
    }

    static final class ShortAsInt extends OfInt {
        private final OfShort shorts;

        ShortAsInt(OfShort shorts) {
            super(shorts.vector);
            this.shorts = shorts;
        }

        @Override
        public int getInt(int i) {
            return shorts.getShort(i);
        }
    }

    static final class Int64 extends Of<FixedWidthVector> implements LongColumnVector {
        Int64(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public long getLong(int i) {
            return vector.getLong(i);
        }
    }

    static final class Unsigned32AsLong extends Of<FixedWidthVector> implements LongColumnVector {
        Unsigned32AsLong(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public long getLong(int i) {
            return Integer.toUnsignedLong(vector.getInt(i));
        }
    }

    static final class IntAsLong extends Of<FixedWidthVector> implements LongColumnVector {
        private final OfInt ints;

        IntAsLong(OfInt ints) {
            super(ints.vector);
            this.ints = ints;
        }

        @Override
        public long getLong(int i) {
            return ints.getInt(i);
        }
    }

    static final class Float32 extends OfFloat {
        Float32(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public float getFloat(int i) {
            return vector.getFloat(i);
        }
    }

    static final class Float16 extends OfFloat {
        Float16(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public float getFloat(int i) {
            return vector.getHalf(i);
        }
    }

    static final class Float64 extends Of<FixedWidthVector> implements DoubleColumnVector {
        Float64(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public double getDouble(int i) {
            return vector.getDouble(i);
        }
    }

    static final class FloatAsDouble extends Of<FixedWidthVector> implements DoubleColumnVector {
        private final OfFloat floats;

        FloatAsDouble(OfFloat floats) {
            super(floats.vector);
            this.floats = floats;
        }

        @Override
        public double getDouble(int i) {
            return floats.getFloat(i);
        }
    }

    static final class Binary extends Of<BinaryVector> implements BytesColumnVector {
        Binary(BinaryVector vector) {
            super(vector);
        }

        @Override
        public Bytes getBytes(int i) {
            return new Bytes(vector.bytes(), vector.position(i), vector.size(i));
        }
    }

    static final class FixedBinary extends Of<FixedWidthVector> implements BytesColumnVector {
        FixedBinary(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public Bytes getBytes(int i) {
            return new Bytes(vector.bytes(), vector.position(i), vector.width());
        }
    }

    static final class Decimal extends Of<FixedWidthVector> implements DecimalColumnVector {
        Decimal(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public DecimalData getDecimal(int i, int precision, int scale) {
            if (precision <= MAX_COMPACT_PRECISION && vector.width() >= Long.BYTES) {
                return DecimalData.fromUnscaledLong(vector.getLong(i), precision, scale);
            }
            return DecimalData.fromBigDecimal(
                    new BigDecimal(vector.getBigInteger(i), scale), precision, scale);
        }
    }

    /** Decimals that are declared with more digits behind the point than the table has. */
    static final class RescaledDecimal extends Of<FixedWidthVector> implements DecimalColumnVector {
        private final int stored;

        RescaledDecimal(FixedWidthVector vector, int stored) {
            super(vector);
            this.stored = stored;
        }

        @Override
        public DecimalData getDecimal(int i, int precision, int scale) {
            return DecimalData.fromBigDecimal(
                    new BigDecimal(vector.getBigInteger(i), stored), precision, scale);
        }
    }

    static final class Unsigned64 extends Of<FixedWidthVector> implements DecimalColumnVector {
        private static final BigInteger TWO_TO_64 = BigInteger.ONE.shiftLeft(64);

        Unsigned64(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public DecimalData getDecimal(int i, int precision, int scale) {
            BigInteger value = BigInteger.valueOf(vector.getLong(i));
            return DecimalData.fromBigDecimal(
                    new BigDecimal(value.signum() < 0 ? value.add(TWO_TO_64) : value),
                    precision,
                    scale);
        }
    }

    static final class Date64 extends OfInt {
        Date64(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public int getInt(int i) {
            return (int) Math.floorDiv(vector.getLong(i), MILLIS_PER_DAY);
        }
    }

    static final class SecondsOfDay extends OfInt {
        SecondsOfDay(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public int getInt(int i) {
            return vector.getInt(i) * 1_000;
        }
    }

    static final class FineTimeOfDay extends OfInt {
        private final long perMilli;

        FineTimeOfDay(FixedWidthVector vector, long perMilli) {
            super(vector);
            this.perMilli = perMilli;
        }

        @Override
        public int getInt(int i) {
            return (int) (vector.getLong(i) / perMilli);
        }
    }

    static final class Seconds extends Of<FixedWidthVector> implements TimestampColumnVector {
        Seconds(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public TimestampData getTimestamp(int i, int precision) {
            return TimestampData.fromEpochMillis(Math.multiplyExact(vector.getLong(i), 1_000L));
        }
    }

    static final class Millis extends Of<FixedWidthVector> implements TimestampColumnVector {
        Millis(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public TimestampData getTimestamp(int i, int precision) {
            return TimestampData.fromEpochMillis(vector.getLong(i));
        }
    }

    static final class Micros extends Of<FixedWidthVector> implements TimestampColumnVector {
        Micros(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public TimestampData getTimestamp(int i, int precision) {
            long micros = vector.getLong(i);
            return TimestampData.fromEpochMillis(
                    Math.floorDiv(micros, 1_000L), (int) Math.floorMod(micros, 1_000L) * 1_000);
        }
    }

    static final class Nanos extends Of<FixedWidthVector> implements TimestampColumnVector {
        Nanos(FixedWidthVector vector) {
            super(vector);
        }

        @Override
        public TimestampData getTimestamp(int i, int precision) {
            long nanos = vector.getLong(i);
            return TimestampData.fromEpochMillis(
                    Math.floorDiv(nanos, 1_000_000L), (int) Math.floorMod(nanos, 1_000_000L));
        }
    }

    static final class Array extends Of<ListVector> implements ArrayColumnVector {
        private final ColumnVector elements;

        Array(ListVector vector, ColumnVector elements) {
            super(vector);
            this.elements = elements;
        }

        @Override
        public ArrayData getArray(int i) {
            return new ColumnarArrayData(elements, vector.start(i), vector.size(i));
        }
    }

    static final class MapOf extends Of<ListVector> implements MapColumnVector {
        private final ColumnVector keys;
        private final ColumnVector values;

        MapOf(ListVector vector, ColumnVector keys, ColumnVector values) {
            super(vector);
            this.keys = keys;
            this.values = values;
        }

        @Override
        public MapData getMap(int i) {
            return new ColumnarMapData(keys, values, vector.start(i), vector.size(i));
        }
    }

    static final class Struct extends Of<StructVector> implements RowColumnVector {
        private final VectorizedColumnBatch children;

        Struct(StructVector vector, ColumnVector[] children) {
            super(vector);
            this.children = new VectorizedColumnBatch(children);
        }

        @Override
        public ColumnarRowData getRow(int i) {
            return new ColumnarRowData(children, i);
        }
    }
}
