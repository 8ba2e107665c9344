package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowType.Unit;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.BooleanBuilder;
import io.lancegateway.client.arrow.FixedSizeListBuilder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.ListBuilder;
import io.lancegateway.client.arrow.StructBuilder;
import java.math.BigDecimal;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryArrayData;
import org.apache.flink.table.data.binary.BinarySegmentUtils;
import org.apache.flink.table.data.binary.BinaryStringData;

/** The kinds of {@link Cell}. */
final class Cells {

    private Cells() {}

    static final class Bool extends Cell<BooleanBuilder> {
        Bool(BooleanBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.append(row.getBoolean(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.append(array.getBoolean(index));
        }
    }

    static final class Int8 extends Cell<FixedWidthBuilder> {
        Int8(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendByte(row.getByte(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendByte(array.getByte(index));
        }
    }

    static final class Int16 extends Cell<FixedWidthBuilder> {
        Int16(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendShort(row.getShort(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendShort(array.getShort(index));
        }
    }

    /** Integers, days, and milliseconds of a day. */
    static final class Int32 extends Cell<FixedWidthBuilder> {
        Int32(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendInt(row.getInt(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendInt(array.getInt(index));
        }
    }

    static final class Int64 extends Cell<FixedWidthBuilder> {
        Int64(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendLong(row.getLong(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendLong(array.getLong(index));
        }
    }

    /** A value of 32 bits in a column of 64 bits: dates and times in a finer unit. */
    static final class Scaled extends Cell<FixedWidthBuilder> {
        private final long factor;

        Scaled(FixedWidthBuilder builder, long factor) {
            super(builder);
            this.factor = factor;
        }

        @Override
        void value(RowData row, int index) {
            builder.appendLong(row.getInt(index) * factor);
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendLong(array.getInt(index) * factor);
        }
    }

    /** An integer in a column of wider integers. */
    static final class WidenedInteger extends Cell<FixedWidthBuilder> {
        private final int width;

        WidenedInteger(FixedWidthBuilder builder, int width) {
            super(builder);
            this.width = width;
        }

        @Override
        void value(RowData row, int index) {
            widen(
                    width == 1
                            ? row.getByte(index)
                            : width == 2 ? row.getShort(index) : row.getInt(index));
        }

        @Override
        void value(ArrayData array, int index) {
            widen(
                    width == 1
                            ? array.getByte(index)
                            : width == 2 ? array.getShort(index) : array.getInt(index));
        }

        private void widen(int value) {
            switch (builder.width()) {
                case Short.BYTES:
                    builder.appendShort((short) value);
                    break;
                case Integer.BYTES:
                    builder.appendInt(value);
                    break;
                default:
                    builder.appendLong(value);
            }
        }
    }

    static final class Float32 extends Cell<FixedWidthBuilder> {
        Float32(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendFloat(row.getFloat(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendFloat(array.getFloat(index));
        }
    }

    static final class Float64 extends Cell<FixedWidthBuilder> {
        Float64(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendDouble(row.getDouble(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendDouble(array.getDouble(index));
        }
    }

    static final class FloatAsDouble extends Cell<FixedWidthBuilder> {
        FloatAsDouble(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.appendDouble(row.getFloat(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.appendDouble(array.getFloat(index));
        }
    }

    static final class Text extends Cell<BinaryBuilder> {
        Text(BinaryBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            text(row.getString(index));
        }

        @Override
        void value(ArrayData array, int index) {
            text(array.getString(index));
        }

        private void text(StringData value) {
            if (!(value instanceof BinaryStringData)) {
                builder.append(value.toBytes());
                return;
            }
            BinaryStringData binary = (BinaryStringData) value;
            binary.ensureMaterialized();
            int size = binary.getSizeInBytes();
            int at = builder.reserve(size);
            BinarySegmentUtils.copyToBytes(
                    binary.getSegments(), binary.getOffset(), builder.bytes(), at, size);
        }
    }

    static final class Binary extends Cell<BinaryBuilder> {
        Binary(BinaryBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            builder.append(row.getBinary(index));
        }

        @Override
        void value(ArrayData array, int index) {
            builder.append(array.getBinary(index));
        }
    }

    static final class FixedBinary extends Cell<FixedWidthBuilder> {
        FixedBinary(FixedWidthBuilder builder) {
            super(builder);
        }

        @Override
        void value(RowData row, int index) {
            bytes(row.getBinary(index));
        }

        @Override
        void value(ArrayData array, int index) {
            bytes(array.getBinary(index));
        }

        private void bytes(byte[] value) {
            if (value.length != builder.width()) {
                throw new IllegalArgumentException(
                        String.format(
                                "the value has %d bytes, the column takes %d",
                                value.length, builder.width()));
            }
            builder.appendBytes(value, 0, value.length);
        }
    }

    static final class Decimal extends Cell<FixedWidthBuilder> {
        private static final int WIDTH_128 = 16;

        private final int precision;
        private final int scale;
        private final int storedScale;

        Decimal(FixedWidthBuilder builder, int precision, int scale) {
            super(builder);
            this.precision = precision;
            this.scale = scale;
            this.storedScale = builder.field().type().scale();
        }

        @Override
        void value(RowData row, int index) {
            decimal(row.getDecimal(index, precision, scale));
        }

        @Override
        void value(ArrayData array, int index) {
            decimal(array.getDecimal(index, precision, scale));
        }

        private void decimal(DecimalData value) {
            if (value.isCompact() && value.scale() == storedScale && builder.width() == WIDTH_128) {
                builder.appendLong128(value.toUnscaledLong());
                return;
            }
            BigDecimal exact = value.toBigDecimal().setScale(storedScale);
            builder.appendBigInteger(exact.unscaledValue());
        }
    }

    static final class Timestamp extends Cell<FixedWidthBuilder> {
        private final int precision;
        private final Unit unit;

        Timestamp(FixedWidthBuilder builder, int precision) {
            super(builder);
            this.precision = precision;
            this.unit = builder.field().type().unit();
        }

        @Override
        void value(RowData row, int index) {
            timestamp(row.getTimestamp(index, precision));
        }

        @Override
        void value(ArrayData array, int index) {
            timestamp(array.getTimestamp(index, precision));
        }

        private void timestamp(TimestampData value) {
            try {
                builder.appendLong(count(value.getMillisecond(), value.getNanoOfMillisecond()));
            } catch (ArithmeticException tooLarge) {
                throw new IllegalArgumentException(
                        String.format(
                                "%s is out of the range of %s", value, builder.field().type()),
                        tooLarge);
            }
        }

        private long count(long millis, int nanos) {
            switch (unit) {
                case SECOND:
                    return Math.floorDiv(millis, 1_000L);
                case MILLISECOND:
                    return millis;
                case MICROSECOND:
                    return Math.addExact(Math.multiplyExact(millis, 1_000L), nanos / 1_000);
                default:
                    return Math.addExact(Math.multiplyExact(millis, 1_000_000L), nanos);
            }
        }
    }

    static final class ListOf extends Cell<ListBuilder> {
        private final Cell<?> element;

        ListOf(ListBuilder builder, Cell<?> element) {
            super(builder);
            this.element = element;
        }

        @Override
        void value(RowData row, int index) {
            elements(row.getArray(index));
        }

        @Override
        void value(ArrayData array, int index) {
            elements(array.getArray(index));
        }

        private void elements(ArrayData array) {
            int size = array.size();
            builder.append(size);
            if (element instanceof Float32 && !hasNulls(array)) {
                ((Float32) element).builder.appendFloats(array.toFloatArray(), 0, size);
                return;
            }
            for (int i = 0; i < size; i++) {
                element.append(array, i);
            }
        }
    }

    /** Vectors: all of one size, without nulls in them. */
    static final class FixedSizeListOf extends Cell<FixedSizeListBuilder> {
        private final Cell<?> element;

        FixedSizeListOf(FixedSizeListBuilder builder, Cell<?> element) {
            super(builder);
            this.element = element;
        }

        @Override
        void value(RowData row, int index) {
            elements(row.getArray(index));
        }

        @Override
        void value(ArrayData array, int index) {
            elements(array.getArray(index));
        }

        private void elements(ArrayData array) {
            int size = array.size();
            if (size != builder.listSize()) {
                throw new IllegalArgumentException(
                        String.format(
                                "the vector has %d elements, the column takes %d",
                                size, builder.listSize()));
            }
            if (hasNulls(array)) {
                throw new IllegalArgumentException("the vector has a null in it");
            }
            if (element instanceof Float32) {
                builder.appendFloats(array.toFloatArray());
                return;
            }
            builder.append();
            for (int i = 0; i < size; i++) {
                element.value(array, i);
            }
        }
    }

    static final class MapOf extends Cell<ListBuilder> {
        private final StructBuilder entries;
        private final Cell<?> key;
        private final Cell<?> value;

        MapOf(ListBuilder builder, Cell<?> key, Cell<?> value) {
            super(builder);
            this.entries = (StructBuilder) builder.child();
            this.key = key;
            this.value = value;
        }

        @Override
        void value(RowData row, int index) {
            entries(row.getMap(index));
        }

        @Override
        void value(ArrayData array, int index) {
            entries(array.getMap(index));
        }

        private void entries(MapData map) {
            int size = map.size();
            ArrayData keys = map.keyArray();
            ArrayData values = map.valueArray();
            builder.append(size);
            for (int i = 0; i < size; i++) {
                entries.append();
                key.append(keys, i);
                value.append(values, i);
            }
        }
    }

    static final class Struct extends Cell<StructBuilder> {
        /** Position in Flink's row of each field of the table, or -1: it becomes null. */
        private final int[] positions;

        private final Cell<?>[] cells;
        private final int arity;

        Struct(StructBuilder builder, int[] positions, Cell<?>[] cells, int arity) {
            super(builder);
            this.positions = positions;
            this.cells = cells;
            this.arity = arity;
        }

        @Override
        void value(RowData row, int index) {
            fields(row.getRow(index, arity));
        }

        @Override
        void value(ArrayData array, int index) {
            fields(array.getRow(index, arity));
        }

        private void fields(RowData struct) {
            builder.append();
            for (int i = 0; i < cells.length; i++) {
                if (positions[i] < 0) {
                    builder.child(i).appendNull();
                } else {
                    cells[i].append(struct, positions[i]);
                }
            }
        }
    }

    private static boolean hasNulls(ArrayData array) {
        if (array instanceof BinaryArrayData) {
            return ((BinaryArrayData) array).anyNull();
        }
        for (int i = 0; i < array.size(); i++) {
            if (array.isNullAt(i)) {
                return true;
            }
        }
        return false;
    }
}
