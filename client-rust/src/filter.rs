//! Which rows are kept: typed expressions, or SQL text.

use std::ops::Not;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike};
use lance_gateway_proto::v1::{self, Operator, expression, literal};

use crate::{ColumnPath, Error, Result};

/// Rows to keep. From an [`Expr`], or from text as SQL.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// A typed expression.
    Expression(Expr),
    /// The WHERE clause of SQL in Lance's dialect, names quoted with backticks. Never build it from values: use an
    /// expression for those.
    Sql(String),
}

impl Filter {
    pub(crate) fn into_wire(self) -> v1::Filter {
        let kind = match self {
            Self::Expression(expression) => v1::filter::Kind::Expression(expression.0),
            Self::Sql(sql) => v1::filter::Kind::Sql(sql),
        };
        v1::Filter { kind: Some(kind) }
    }
}

impl From<Expr> for Filter {
    fn from(expression: Expr) -> Self {
        Self::Expression(expression)
    }
}

impl From<&str> for Filter {
    fn from(sql: &str) -> Self {
        Self::Sql(sql.to_owned())
    }
}

impl From<String> for Filter {
    fn from(sql: String) -> Self {
        Self::Sql(sql)
    }
}

/// An expression over one row, with the three-valued logic of SQL: a row is kept if the result is true.
///
/// ```
/// use lance_gateway_client::{col, lit};
///
/// let filter = col("topic").eq(lit("A")).and(col("score").gt(lit(0.5)).or(col("score").is_null()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expr(v1::Expression);

impl Expr {
    /// The constant that this is.
    pub(crate) fn into_literal(self) -> Result<v1::Literal> {
        match self.0.kind {
            Some(expression::Kind::Literal(literal)) => Ok(literal),
            _ => Err(Error::invalid_request("a column is set to a constant, or to SQL")),
        }
    }
}

/// The value of a column, or with several names of a field of a struct column.
pub fn col(column: impl Into<ColumnPath>) -> Expr {
    Expr(v1::Expression { kind: Some(expression::Kind::Column(column.into().into_wire())) })
}

/// A constant. It takes the type of the column that it is compared with, if that loses nothing.
pub fn lit(value: impl Into<Literal>) -> Expr {
    let literal = v1::Literal { value: Some(value.into().0) };
    Expr(v1::Expression { kind: Some(expression::Kind::Literal(literal)) })
}

/// A value with its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal(literal::Value);

impl Literal {
    /// NULL of the type of the other side.
    pub fn null() -> Self {
        Self(literal::Value::Null(true))
    }

    /// An exact decimal: `unscaled * 10^-scale`.
    pub fn decimal(unscaled: i128, scale: i32) -> Self {
        Self(literal::Value::Decimal(v1::Decimal { unscaled: unscaled.to_string(), scale }))
    }
}

macro_rules! literal_from {
    ($($type:ty => $variant:ident($value:ident -> $wire:expr);)*) => {
        $(impl From<$type> for Literal {
            fn from($value: $type) -> Self { Self(literal::Value::$variant($wire)) }
        })*
    };
}

literal_from! {
    bool => Boolean(v -> v);
    i8 => Integer(v -> v.into());
    i16 => Integer(v -> v.into());
    i32 => Integer(v -> v.into());
    i64 => Integer(v -> v);
    u8 => Unsigned(v -> v.into());
    u16 => Unsigned(v -> v.into());
    u32 => Unsigned(v -> v.into());
    u64 => Unsigned(v -> v);
    f32 => Float32(v -> v);
    f64 => Float64(v -> v);
    &str => String(v -> v.to_owned());
    String => String(v -> v);
    &[u8] => Binary(v -> v.to_vec().into());
    Vec<u8> => Binary(v -> v.into());
    NaiveDate => Date(v -> v.signed_duration_since(NaiveDate::default()).num_days() as i32);
    NaiveTime => Time(v -> i64::from(v.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(v.nanosecond()));
    NaiveDateTime => Timestamp(v -> timestamp(v, false));
}

impl<Z: TimeZone> From<DateTime<Z>> for Literal {
    fn from(instant: DateTime<Z>) -> Self {
        Self(literal::Value::Timestamp(timestamp(instant.naive_utc(), true)))
    }
}

impl<T: Into<Literal>> From<Option<T>> for Literal {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::null, Into::into)
    }
}

fn timestamp(time: NaiveDateTime, zoned: bool) -> v1::TimestampLiteral {
    let utc = time.and_utc();
    v1::TimestampLiteral { seconds: utc.timestamp(), nanos: utc.timestamp_subsec_nanos() as i32, zoned }
}

impl Expr {
    fn call(operator: Operator, arguments: Vec<Expr>) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.0).collect();
        Self(v1::Expression { kind: Some(expression::Kind::Call(v1::Call { operator: operator.into(), arguments })) })
    }

    /// Joins flat, so that a long chain is not a deep tree.
    fn join(operator: Operator, left: Expr, right: Expr) -> Self {
        match left.0.kind {
            Some(expression::Kind::Call(mut call)) if call.operator() == operator => {
                call.arguments.push(right.0);
                Self(v1::Expression { kind: Some(expression::Kind::Call(call)) })
            }
            kind => Self::call(operator, vec![Self(v1::Expression { kind }), right]),
        }
    }

    /// `self = other`
    pub fn eq(self, other: Expr) -> Self {
        Self::call(Operator::Equal, vec![self, other])
    }

    /// `self <> other`
    pub fn not_eq(self, other: Expr) -> Self {
        Self::call(Operator::NotEqual, vec![self, other])
    }

    /// `self < other`
    pub fn lt(self, other: Expr) -> Self {
        Self::call(Operator::Less, vec![self, other])
    }

    /// `self <= other`
    pub fn lt_eq(self, other: Expr) -> Self {
        Self::call(Operator::LessOrEqual, vec![self, other])
    }

    /// `self > other`
    pub fn gt(self, other: Expr) -> Self {
        Self::call(Operator::Greater, vec![self, other])
    }

    /// `self >= other`
    pub fn gt_eq(self, other: Expr) -> Self {
        Self::call(Operator::GreaterOrEqual, vec![self, other])
    }

    /// `self AND other`
    pub fn and(self, other: Expr) -> Self {
        Self::join(Operator::And, self, other)
    }

    /// `self OR other`
    pub fn or(self, other: Expr) -> Self {
        Self::join(Operator::Or, self, other)
    }

    /// `self IS NULL`
    pub fn is_null(self) -> Self {
        Self::call(Operator::IsNull, vec![self])
    }

    /// `self IS NOT NULL`
    pub fn is_not_null(self) -> Self {
        Self::call(Operator::IsNotNull, vec![self])
    }

    /// `self IS TRUE`
    pub fn is_true(self) -> Self {
        Self::call(Operator::IsTrue, vec![self])
    }

    /// `self IS FALSE`
    pub fn is_false(self) -> Self {
        Self::call(Operator::IsFalse, vec![self])
    }

    /// `self IN (values)`
    pub fn in_list(self, values: impl IntoIterator<Item = impl Into<Literal>>) -> Self {
        Self::call(Operator::In, std::iter::once(self).chain(values.into_iter().map(lit)).collect())
    }

    /// `self LIKE pattern`, with `%` for any text and `_` for one character.
    pub fn like(self, pattern: impl Into<String>) -> Self {
        Self::call(Operator::Like, vec![self, lit(pattern.into())])
    }

    /// `self BETWEEN low AND high`, both inclusive.
    pub fn between(self, low: Expr, high: Expr) -> Self {
        Self::call(Operator::Between, vec![self, low, high])
    }
}

impl Not for Expr {
    type Output = Self;

    /// `NOT self`
    fn not(self) -> Self {
        Self::call(Operator::Not, vec![self])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    fn call(expr: Expr) -> v1::Call {
        match expr.0.kind {
            Some(expression::Kind::Call(call)) => call,
            other => panic!("{other:?} is no call"),
        }
    }

    fn literal(value: impl Into<Literal>) -> literal::Value {
        value.into().0
    }

    #[test]
    fn a_comparison_keeps_its_sides() {
        let call = call(col("a.b").lt(lit(7_i64)));
        assert_eq!(call.operator(), Operator::Less);
        assert_eq!(call.arguments, vec![col("a.b").0, lit(7_i64).0]);
        let Some(expression::Kind::Column(column)) = &call.arguments[0].kind else { panic!("no column") };
        assert_eq!(column.path, ["a.b"], "a dot is an ordinary character");
    }

    #[test]
    fn a_long_chain_is_flat_and_a_change_of_operator_is_not() {
        let a = || col("a").is_true();
        let chain = (0..9_999).fold(a(), |chain, _| chain.and(a()));
        assert_eq!(call(chain).arguments.len(), 10_000);
        let mixed = call(a().or(a()).and(a()));
        assert_eq!((mixed.operator(), mixed.arguments.len()), (Operator::And, 2));
    }

    #[test]
    fn negation_and_lists_take_their_place() {
        let not = call(!col("a").in_list([1_i32, 2]));
        assert_eq!(not.operator(), Operator::Not);
        let Some(expression::Kind::Call(list)) = &not.arguments[0].kind else { panic!("no call") };
        assert_eq!((list.operator(), list.arguments.len()), (Operator::In, 3));
    }

    #[test]
    fn times_are_told_exactly() {
        let instant = DateTime::parse_from_rfc3339("1969-12-31T23:59:59.5Z").unwrap();
        let expected = v1::TimestampLiteral { seconds: -1, nanos: 500_000_000, zoned: true };
        assert_eq!(literal(instant), literal::Value::Timestamp(expected));
        let elsewhere = instant.with_timezone(&FixedOffset::east_opt(19_800).unwrap());
        assert_eq!(literal(elsewhere), literal(instant), "an instant does not depend on where it is told");
        let wall = v1::TimestampLiteral { seconds: -1, nanos: 500_000_000, zoned: false };
        assert_eq!(literal(instant.naive_utc()), literal::Value::Timestamp(wall));
        assert_eq!(literal(NaiveDate::from_ymd_opt(1969, 12, 31).unwrap()), literal::Value::Date(-1));
        assert_eq!(literal(NaiveTime::from_hms_opt(0, 0, 1).unwrap()), literal::Value::Time(1_000_000_000));
    }

    #[test]
    fn none_is_null_and_a_decimal_is_exact() {
        assert_eq!(literal(None::<i64>), literal::Value::Null(true));
        let expected = v1::Decimal { unscaled: i128::MIN.to_string(), scale: 2 };
        assert_eq!(Literal::decimal(i128::MIN, 2).0, literal::Value::Decimal(expected));
    }

    #[test]
    fn text_is_sql() {
        assert_eq!(Filter::from("a = 1").into_wire().kind, Some(v1::filter::Kind::Sql("a = 1".into())));
    }
}
