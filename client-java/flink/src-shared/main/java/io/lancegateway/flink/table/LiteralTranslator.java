package io.lancegateway.flink.table;

import com.google.protobuf.ByteString;
import io.lancegateway.proto.v1.Decimal;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Literal;
import io.lancegateway.proto.v1.TimestampLiteral;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Optional;
import javax.annotation.Nullable;
import org.apache.flink.table.expressions.ValueLiteralExpression;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;

/** Gives a literal the type of the column that it is compared with, if no digit is lost by that. */
final class LiteralTranslator {

    private LiteralTranslator() {}

    /** The literal as a value of the column's type, or null. */
    @Nullable
    static Expression translate(ValueLiteralExpression literal, LogicalType column) {
        if (literal.isNull()) {
            return null;
        }
        Literal value = value(literal, column);
        return value == null ? null : Expression.newBuilder().setLiteral(value).build();
    }

    @Nullable
    private static Literal value(ValueLiteralExpression literal, LogicalType column) {
        Literal.Builder result = Literal.newBuilder();
        switch (column.getTypeRoot()) {
            case BOOLEAN:
                return as(literal, Boolean.class)
                        .map(value -> result.setBoolean(value).build())
                        .orElse(null);
            case TINYINT:
                return integer(literal, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case SMALLINT:
                return integer(literal, Short.MIN_VALUE, Short.MAX_VALUE);
            case INTEGER:
                return integer(literal, Integer.MIN_VALUE, Integer.MAX_VALUE);
            case BIGINT:
                return integer(literal, Long.MIN_VALUE, Long.MAX_VALUE);
            case FLOAT:
                return real(literal)
                        .filter(value -> (float) (double) value == value)
                        .map(value -> result.setFloat32((float) (double) value).build())
                        .orElse(null);
            case DOUBLE:
                return real(literal).map(value -> result.setFloat64(value).build()).orElse(null);
            case DECIMAL:
                return decimal(literal, (DecimalType) column);
            case VARCHAR:
                return as(literal, String.class)
                        .map(value -> result.setString(value).build())
                        .orElse(null);
            case VARBINARY:
                return as(literal, byte[].class)
                        .map(value -> result.setBinary(ByteString.copyFrom(value)).build())
                        .orElse(null);
            case DATE:
                return as(literal, LocalDate.class)
                        .map(value -> result.setDate((int) value.toEpochDay()).build())
                        .orElse(null);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return as(literal, LocalDateTime.class)
                        .map(value -> timestamp(value.toInstant(ZoneOffset.UTC), column, false))
                        .orElse(null);
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return as(literal, Instant.class)
                        .map(value -> timestamp(value, column, true))
                        .orElse(null);
            default:
                return null;
        }
    }

    private static <T> Optional<T> as(ValueLiteralExpression literal, Class<T> type) {
        return literal.getValueAs(type);
    }

    @Nullable
    private static Literal integer(ValueLiteralExpression literal, long min, long max) {
        return number(literal)
                .filter(
                        value ->
                                isWhole(value)
                                        && value.compareTo(BigDecimal.valueOf(min)) >= 0
                                        && value.compareTo(BigDecimal.valueOf(max)) <= 0)
                .map(value -> Literal.newBuilder().setInteger(value.longValueExact()).build())
                .orElse(null);
    }

    private static boolean isWhole(BigDecimal value) {
        return value.signum() == 0 || value.stripTrailingZeros().scale() <= 0;
    }

    /** An exact number; approximate ones are none. */
    private static Optional<BigDecimal> number(ValueLiteralExpression literal) {
        return literal.getOutputDataType().getLogicalType().is(LogicalTypeFamily.EXACT_NUMERIC)
                ? as(literal, BigDecimal.class)
                : Optional.empty();
    }

    /**
     * A number that orders floating point values in the same way everywhere: finite, and not zero,
     * which has two signs.
     */
    private static Optional<Double> real(ValueLiteralExpression literal) {
        LogicalType type = literal.getOutputDataType().getLogicalType();
        Optional<Double> value;
        if (type.is(LogicalTypeFamily.APPROXIMATE_NUMERIC)) {
            value = as(literal, Number.class).map(Number::doubleValue);
        } else {
            value =
                    number(literal)
                            .filter(n -> new BigDecimal(n.doubleValue()).compareTo(n) == 0)
                            .map(BigDecimal::doubleValue);
        }
        return value.filter(v -> Double.isFinite(v) && v != 0);
    }

    @Nullable
    private static Literal decimal(ValueLiteralExpression literal, DecimalType column) {
        Optional<BigDecimal> number = number(literal);
        if (!number.isPresent()) {
            return null;
        }
        try {
            BigDecimal value = number.get().setScale(column.getScale(), RoundingMode.UNNECESSARY);
            if (value.precision() > column.getPrecision()) {
                return null;
            }
            return Literal.newBuilder()
                    .setDecimal(
                            Decimal.newBuilder()
                                    .setUnscaled(value.unscaledValue().toString())
                                    .setScale(value.scale()))
                    .build();
        } catch (ArithmeticException moreDigits) {
            return null;
        }
    }

    @Nullable
    private static Literal timestamp(Instant value, LogicalType column, boolean zoned) {
        int unit = 1;
        for (int digit = LogicalTypeChecks.getPrecision(column); digit < 9; digit++) {
            unit *= 10;
        }
        if (value.getNano() % unit != 0) {
            return null;
        }
        return Literal.newBuilder()
                .setTimestamp(
                        TimestampLiteral.newBuilder()
                                .setSeconds(value.getEpochSecond())
                                .setNanos(value.getNano())
                                .setZoned(zoned))
                .build();
    }
}
