//! A constant as a value of a column's type, if that loses nothing.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use lance::deps::datafusion::scalar::ScalarValue;

use crate::error::{Error, Result};
use crate::types::Literal;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const MILLIS_PER_DAY: i64 = 86_400_000;
const MAX_DECIMAL128_DIGITS: u8 = 38;

/// The constant in the type, or why not. `column` names what it is compared with.
pub(super) fn typed(literal: &Literal, data_type: &DataType, column: &str) -> Result<ScalarValue> {
    exact(literal, data_type).ok_or_else(|| {
        Error::invalid(format!("{} cannot be compared exactly with {column} of type {data_type}", describe(literal)))
    })
}

/// The type that a constant has by itself.
pub(super) fn natural(literal: &Literal) -> Option<ScalarValue> {
    Some(match literal {
        Literal::Null => ScalarValue::Null,
        Literal::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Literal::Integer(value) => ScalarValue::Int64(Some(*value)),
        Literal::Unsigned(value) => ScalarValue::UInt64(Some(*value)),
        Literal::String(value) => ScalarValue::Utf8(Some(value.clone())),
        Literal::Binary(value) => ScalarValue::Binary(Some(value.clone())),
        Literal::Date(value) => ScalarValue::Date32(Some(*value)),
        Literal::Float32(value) if !value.is_nan() => ScalarValue::Float32(Some(*value)),
        Literal::Float64(value) if !value.is_nan() => ScalarValue::Float64(Some(*value)),
        _ => return None,
    })
}

/// The constant in the type, if that loses nothing.
pub(crate) fn exact(literal: &Literal, data_type: &DataType) -> Option<ScalarValue> {
    use DataType as D;
    if let D::Dictionary(_, value) = data_type {
        return exact(literal, value);
    }
    match literal {
        Literal::Null => ScalarValue::try_from(data_type).ok(),
        Literal::Boolean(value) => (*data_type == D::Boolean).then_some(ScalarValue::Boolean(Some(*value))),
        Literal::Integer(value) => integer(i128::from(*value), data_type),
        Literal::Unsigned(value) => integer(i128::from(*value), data_type),
        Literal::Float32(value) => float(f64::from(*value), data_type),
        Literal::Float64(value) => float(*value, data_type),
        Literal::String(value) => match data_type {
            D::Utf8 => Some(ScalarValue::Utf8(Some(value.clone()))),
            D::LargeUtf8 => Some(ScalarValue::LargeUtf8(Some(value.clone()))),
            D::Utf8View => Some(ScalarValue::Utf8View(Some(value.clone()))),
            _ => None,
        },
        Literal::Binary(value) => match data_type {
            D::Binary => Some(ScalarValue::Binary(Some(value.clone()))),
            D::LargeBinary => Some(ScalarValue::LargeBinary(Some(value.clone()))),
            D::FixedSizeBinary(size) if usize::try_from(*size).ok() == Some(value.len()) => {
                Some(ScalarValue::FixedSizeBinary(*size, Some(value.clone())))
            }
            _ => None,
        },
        Literal::Decimal { unscaled, scale } => decimal(*unscaled, *scale, data_type),
        Literal::Date(days) => match data_type {
            D::Date32 => Some(ScalarValue::Date32(Some(*days))),
            D::Date64 => Some(ScalarValue::Date64(Some(i64::from(*days) * MILLIS_PER_DAY))),
            _ => None,
        },
        Literal::Time(nanos) => time(*nanos, data_type),
        Literal::Timestamp { seconds, nanos, zoned } => match data_type {
            D::Timestamp(unit, zone) if zone.is_some() == *zoned => {
                let nanos = i128::from(*seconds) * NANOS_PER_SECOND + i128::from(*nanos);
                let value = Some(divide(nanos, *unit)?);
                Some(match unit {
                    TimeUnit::Second => ScalarValue::TimestampSecond(value, zone.clone()),
                    TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone.clone()),
                    TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone.clone()),
                    TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone.clone()),
                })
            }
            _ => None,
        },
    }
}

fn integer(value: i128, data_type: &DataType) -> Option<ScalarValue> {
    use DataType as D;
    Some(match data_type {
        D::Int8 => ScalarValue::Int8(Some(value.try_into().ok()?)),
        D::Int16 => ScalarValue::Int16(Some(value.try_into().ok()?)),
        D::Int32 => ScalarValue::Int32(Some(value.try_into().ok()?)),
        D::Int64 => ScalarValue::Int64(Some(value.try_into().ok()?)),
        D::UInt8 => ScalarValue::UInt8(Some(value.try_into().ok()?)),
        D::UInt16 => ScalarValue::UInt16(Some(value.try_into().ok()?)),
        D::UInt32 => ScalarValue::UInt32(Some(value.try_into().ok()?)),
        D::UInt64 => ScalarValue::UInt64(Some(value.try_into().ok()?)),
        D::Float32 | D::Float64 => {
            let wide = value as f64;
            return if wide as i128 == value { float(wide, data_type) } else { None };
        }
        D::Decimal128(..) | D::Decimal256(..) => return decimal(value, 0, data_type),
        _ => return None,
    })
}

fn float(value: f64, data_type: &DataType) -> Option<ScalarValue> {
    use DataType as D;
    // NaN equals nothing, and what is ordered beside it depends on who is asked.
    if value.is_nan() {
        return None;
    }
    match data_type {
        D::Float64 => Some(ScalarValue::Float64(Some(value))),
        D::Float32 => {
            let narrow = value as f32;
            (f64::from(narrow) == value).then_some(ScalarValue::Float32(Some(narrow)))
        }
        _ if data_type.is_integer() => {
            let whole = value as i128;
            if whole as f64 == value { integer(whole, data_type) } else { None }
        }
        _ => None,
    }
}

fn decimal(unscaled: i128, scale: i8, data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Decimal128(precision, wanted) => {
            let value = rescale(unscaled, scale, *wanted)?;
            fits(value, *precision).then_some(ScalarValue::Decimal128(Some(value), *precision, *wanted))
        }
        DataType::Decimal256(precision, wanted) => {
            let value = rescale(unscaled, scale, *wanted)?;
            fits(value, *precision).then_some(ScalarValue::Decimal256(
                Some(i256::from_i128(value)),
                *precision,
                *wanted,
            ))
        }
        _ if data_type.is_integer() => integer(rescale(unscaled, scale, 0)?, data_type),
        _ => None,
    }
}

fn rescale(unscaled: i128, from: i8, to: i8) -> Option<i128> {
    let shift = i32::from(to) - i32::from(from);
    let factor = 10_i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 { unscaled.checked_mul(factor) } else { (unscaled % factor == 0).then_some(unscaled / factor) }
}

fn fits(value: i128, precision: u8) -> bool {
    precision > MAX_DECIMAL128_DIGITS
        || 10_u128.checked_pow(u32::from(precision)).is_none_or(|bound| value.unsigned_abs() < bound)
}

fn time(nanos: i64, data_type: &DataType) -> Option<ScalarValue> {
    let unit = match data_type {
        DataType::Time32(unit) | DataType::Time64(unit) => *unit,
        _ => return None,
    };
    let value = divide(i128::from(nanos), unit)?;
    Some(match unit {
        TimeUnit::Second => ScalarValue::Time32Second(Some(value.try_into().ok()?)),
        TimeUnit::Millisecond => ScalarValue::Time32Millisecond(Some(value.try_into().ok()?)),
        TimeUnit::Microsecond => ScalarValue::Time64Microsecond(Some(value)),
        TimeUnit::Nanosecond => ScalarValue::Time64Nanosecond(Some(value)),
    })
}

fn divide(nanos: i128, unit: TimeUnit) -> Option<i64> {
    let per_unit = match unit {
        TimeUnit::Second => NANOS_PER_SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    if nanos % per_unit == 0 { (nanos / per_unit).try_into().ok() } else { None }
}

fn describe(literal: &Literal) -> String {
    match literal {
        Literal::Null => "NULL".to_owned(),
        Literal::Boolean(value) => format!("the boolean {value}"),
        Literal::Integer(value) => format!("the integer {value}"),
        Literal::Unsigned(value) => format!("the integer {value}"),
        Literal::Float32(value) => format!("the 32-bit float {value}"),
        Literal::Float64(value) => format!("the float {value}"),
        Literal::String(_) => "a string".to_owned(),
        Literal::Binary(_) => "a binary value".to_owned(),
        Literal::Decimal { unscaled, scale } => format!("the decimal {unscaled}e-{scale}"),
        Literal::Date(_) => "a date".to_owned(),
        Literal::Time(_) => "a time".to_owned(),
        Literal::Timestamp { zoned: true, .. } => "an instant".to_owned(),
        Literal::Timestamp { zoned: false, .. } => "a wall-clock timestamp".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use ScalarValue as S;

    fn of(literal: Literal, data_type: DataType) -> Option<ScalarValue> {
        typed(&literal, &data_type, "column x").ok()
    }

    #[test]
    fn integers_fit_or_are_refused() {
        assert_eq!(of(Literal::Integer(127), DataType::Int8), Some(S::Int8(Some(127))));
        assert_eq!(of(Literal::Integer(128), DataType::Int8), None);
        assert_eq!(of(Literal::Integer(-1), DataType::UInt64), None);
        assert_eq!(of(Literal::Unsigned(u64::MAX), DataType::UInt64), Some(S::UInt64(Some(u64::MAX))));
        assert_eq!(of(Literal::Unsigned(u64::MAX), DataType::Int64), None);
        assert_eq!(of(Literal::Integer(1 << 53), DataType::Float64), Some(S::Float64(Some(9_007_199_254_740_992.0))));
        assert_eq!(of(Literal::Integer((1 << 53) + 1), DataType::Float64), None);
        assert_eq!(of(Literal::Integer((1 << 24) + 1), DataType::Float32), None);
        assert_eq!(of(Literal::Integer(12), DataType::Decimal128(4, 2)), Some(S::Decimal128(Some(1200), 4, 2)));
        assert_eq!(of(Literal::Integer(100), DataType::Decimal128(4, 2)), None);
    }

    #[test]
    fn floats_are_compared_in_the_precision_of_the_column_only_if_exact() {
        assert_eq!(of(Literal::Float64(0.5), DataType::Float32), Some(S::Float32(Some(0.5))));
        assert_eq!(of(Literal::Float64(0.1), DataType::Float32), None);
        assert_eq!(of(Literal::Float32(0.1), DataType::Float32), Some(S::Float32(Some(0.1))));
        assert_eq!(of(Literal::Float32(0.1), DataType::Float64), Some(S::Float64(Some(f64::from(0.1_f32)))));
        assert_eq!(of(Literal::Float64(3.0), DataType::Int32), Some(S::Int32(Some(3))));
        assert_eq!(of(Literal::Float64(3.5), DataType::Int32), None);
        assert_eq!(of(Literal::Float64(f64::NAN), DataType::Float64), None);
        assert_eq!(of(Literal::Float64(f64::INFINITY), DataType::Int64), None);
    }

    #[test]
    fn decimals_change_their_scale_without_loss() {
        let literal = |unscaled, scale| Literal::Decimal { unscaled, scale };
        assert_eq!(of(literal(150, 2), DataType::Decimal128(5, 1)), Some(S::Decimal128(Some(15), 5, 1)));
        assert_eq!(of(literal(155, 2), DataType::Decimal128(5, 1)), None);
        assert_eq!(of(literal(300, 2), DataType::Int32), Some(S::Int32(Some(3))));
        assert_eq!(of(literal(1, 0), DataType::Float64), None);
        assert_eq!(of(literal(i128::MAX, 0), DataType::Decimal128(38, 1)), None);
        assert_eq!(of(literal(-999, 0), DataType::Decimal128(3, 0)), Some(S::Decimal128(Some(-999), 3, 0)));
        assert_eq!(of(literal(-1000, 0), DataType::Decimal128(3, 0)), None);
    }

    #[test]
    fn times_keep_their_zone_and_unit() {
        let zoned = |seconds, nanos| Literal::Timestamp { seconds, nanos, zoned: true };
        let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
        assert_eq!(
            of(zoned(-1, 500_000_000), utc(TimeUnit::Millisecond)),
            Some(S::TimestampMillisecond(Some(-500), Some("UTC".into())))
        );
        assert_eq!(of(zoned(0, 1), utc(TimeUnit::Microsecond)), None);
        assert_eq!(of(zoned(0, 0), DataType::Timestamp(TimeUnit::Second, None)), None);
        assert_eq!(of(zoned(i64::MAX, 0), utc(TimeUnit::Nanosecond)), None);
        assert_eq!(
            of(Literal::Time(1_500_000_000), DataType::Time32(TimeUnit::Millisecond)),
            Some(S::Time32Millisecond(Some(1500)))
        );
        assert_eq!(of(Literal::Time(1_500_000_000), DataType::Time32(TimeUnit::Second)), None);
        assert_eq!(of(Literal::Date(1), DataType::Date64), Some(S::Date64(Some(86_400_000))));
        assert_eq!(of(Literal::Date(1), utc(TimeUnit::Second)), None);
    }

    #[test]
    fn the_refusal_names_the_value_and_the_column() {
        let error = typed(&Literal::Integer(300), &DataType::Int8, "column 'n'").unwrap_err();
        assert_eq!(error.message(), "the integer 300 cannot be compared exactly with column 'n' of type Int8");
    }
}
