package io.lancegateway.flink.search;

import io.lancegateway.proto.v1.Float32Values;
import io.lancegateway.proto.v1.Float64Values;
import io.lancegateway.proto.v1.MultiVector;
import io.lancegateway.proto.v1.Vector;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.binary.BinaryArrayData;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.LogicalTypeRoot;

/** From an array of SQL to a vector of the wire. */
final class QueryVectors {

    private QueryVectors() {}

    /** Whether arrays of this type are vectors, or several of them. */
    static boolean isVector(LogicalType type) {
        if (!type.is(LogicalTypeRoot.ARRAY)) {
            return false;
        }
        LogicalType element = ((ArrayType) type).getElementType();
        return element.is(LogicalTypeFamily.NUMERIC) || isVectorOfNumbers(element);
    }

    private static boolean isVectorOfNumbers(LogicalType type) {
        return type.is(LogicalTypeRoot.ARRAY)
                && ((ArrayType) type).getElementType().is(LogicalTypeFamily.NUMERIC);
    }

    /** A vector of these numbers. */
    static Vector of(float[] numbers) {
        Float32Values.Builder values = Float32Values.newBuilder();
        for (float number : numbers) {
            values.addValues(number);
        }
        return Vector.newBuilder().setFloat32(values).build();
    }

    /**
     * The vector, or the vectors, of an array.
     *
     * @throws IllegalArgumentException if an element is null
     */
    static Vector of(ArrayData array, ArrayType type) {
        LogicalType element = type.getElementType();
        checkNoNull(array);
        switch (element.getTypeRoot()) {
            case ARRAY:
                MultiVector.Builder several = MultiVector.newBuilder();
                for (int i = 0; i < array.size(); i++) {
                    several.addVectors(of(array.getArray(i), (ArrayType) element));
                }
                return Vector.newBuilder().setMulti(several).build();
            case FLOAT:
                return of(array.toFloatArray());
            default:
                Float64Values.Builder values = Float64Values.newBuilder();
                for (int i = 0; i < array.size(); i++) {
                    values.addValues(number(array, i, element));
                }
                return Vector.newBuilder().setFloat64(values).build();
        }
    }

    /**
     * Refuses an array whose elements are not of this type. VECTOR_SEARCH takes arrays of other
     * numbers and hands over their bytes as if they were of the column's: what looks wrong, by its
     * size or since no vector has such values, is.
     */
    static void checkType(ArrayData array, ArrayType type) {
        checkNoNull(array);
        if (!(array instanceof BinaryArrayData)) {
            return;
        }
        boolean isDouble = type.getElementType().is(LogicalTypeRoot.DOUBLE);
        int count = array.size();
        int values = count * (isDouble ? Double.BYTES : Float.BYTES);
        int whole = BinaryArrayData.calculateHeaderInBytes(count) + (values + 7) / 8 * 8;
        boolean fits = ((BinaryArrayData) array).getSizeInBytes() == whole;
        boolean plausible = count == 0;
        boolean zero = true;
        for (int i = 0; fits && i < count; i++) {
            double value = isDouble ? array.getDouble(i) : array.getFloat(i);
            zero &= value == 0;
            plausible |=
                    Math.abs(value) >= (isDouble ? Double.MIN_NORMAL : Float.MIN_NORMAL)
                            || Double.isNaN(value);
        }
        if (!fits || !(plausible || zero)) {
            throw new IllegalArgumentException(
                    String.format(
                            "the query is not %s, as the column is: write CAST(... AS ARRAY<%s>)",
                            type.asSummaryString(), isDouble ? "DOUBLE" : "FLOAT"));
        }
    }

    private static void checkNoNull(ArrayData array) {
        for (int i = 0; i < array.size(); i++) {
            if (array.isNullAt(i)) {
                throw new IllegalArgumentException(
                        String.format(
                                "element %d of %d of the query vector is NULL",
                                i + 1, array.size()));
            }
        }
    }

    private static double number(ArrayData array, int i, LogicalType type) {
        switch (type.getTypeRoot()) {
            case DOUBLE:
                return array.getDouble(i);
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return array.getDecimal(i, decimal.getPrecision(), decimal.getScale())
                        .toBigDecimal()
                        .doubleValue();
            case TINYINT:
                return array.getByte(i);
            case SMALLINT:
                return array.getShort(i);
            case INTEGER:
                return array.getInt(i);
            case BIGINT:
                return array.getLong(i);
            default:
                throw new IllegalStateException("no vector of " + type);
        }
    }
}
