//! Filters: from what clients send to an expression that Lance evaluates, exact or refused.
//!
//! Comparisons follow SQL and IEEE 754: a comparison with NULL is NULL, NaN is neither less than nor greater than anything, and
//! -0.0 equals 0.0. (Arrow's kernels put NaN above all numbers, so ranges of floats get a second bound.)

mod exact;
mod literal;
mod sql;

use std::sync::Arc;

use arrow_schema::{DataType, Schema as ArrowSchema};
use lance::deps::datafusion::logical_expr::expr::InList;
use lance::deps::datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator as DfOperator, lit};
use lance::deps::datafusion::physical_plan::PhysicalExpr;
use lance::deps::datafusion::physical_plan::expressions::Literal as PhysicalLiteral;
use lance::deps::datafusion::scalar::ScalarValue;
use lance_core::datatypes::{Schema as LanceSchema, format_field_path_minimal};
use lance_datafusion::logical_expr::field_path_to_expr;
use lance_datafusion::planner::Planner;

use crate::error::{Error, Result};
use crate::lance_error::detail;
use crate::schema::{find_column, no_such_column, shown_name};
use crate::table::excerpt;
use crate::types::{Expression, Filter, Literal, Operator};

pub(crate) use literal::exact;

/// The filter as Lance evaluates it, over the stored names.
pub(crate) fn plan(filter: &Filter, schema: &LanceSchema, max_depth: usize) -> Result<Expr> {
    match filter {
        Filter::Sql(text) => sql::plan(text, schema, max_depth),
        Filter::Expression(expression) => {
            check_depth(expression, max_depth)?;
            let expr = Builder { schema }.condition(expression)?;
            // The scan evaluates the expression as it is, so what a planner would do to it is done here.
            let arrow = Arc::new(ArrowSchema::from(schema));
            exact::optimize(&Planner::new(arrow), expr).map_err(|e| {
                let why = detail(&e);
                Error::invalid(format!("the filter cannot be planned: {why}")).with_source(e)
            })
        }
    }
}

/// A value over the columns of a row, from people.
pub(crate) fn value(text: &str, schema: &LanceSchema, max_depth: usize) -> Result<Arc<dyn PhysicalExpr>> {
    physical(&sql::value(text, schema, max_depth)?, schema)
}

/// A constant in the type of a column.
pub(crate) fn constant(literal: &Literal, data_type: &DataType, column: &str) -> Result<Arc<dyn PhysicalExpr>> {
    let value = match literal {
        Literal::Null => ScalarValue::try_from(data_type).map_err(|e| {
            Error::invalid(format!("column '{}' cannot be set to NULL", excerpt(column))).with_source(e)
        })?,
        literal => literal::typed(literal, data_type, column)?,
    };
    Ok(Arc::new(PhysicalLiteral::new(value)))
}

fn physical(expr: &Expr, schema: &LanceSchema) -> Result<Arc<dyn PhysicalExpr>> {
    Planner::new(Arc::new(ArrowSchema::from(schema))).create_physical_expr(expr).map_err(|e| {
        let why = detail(&e);
        Error::invalid(format!("the value cannot be planned: {why}")).with_source(e)
    })
}

/// Walks without recursion: this is what protects the recursions that follow.
fn check_depth(expression: &Expression, max_depth: usize) -> Result<()> {
    let mut open = vec![(expression, 1)];
    while let Some((expression, depth)) = open.pop() {
        if depth > max_depth {
            return Err(too_deep(max_depth));
        }
        if let Expression::Call(_, arguments) = expression {
            open.extend(arguments.iter().map(|argument| (argument, depth + 1)));
        }
    }
    Ok(())
}

fn too_deep(max_depth: usize) -> Error {
    Error::invalid(format!("the filter is nested deeper than {max_depth}, the bound scan.max-filter-depth"))
}

struct Builder<'a> {
    schema: &'a LanceSchema,
}

/// One side of a comparison.
enum Operand<'a> {
    Value { expr: Expr, data_type: DataType, name: String },
    Literal(&'a Literal),
}

impl Builder<'_> {
    fn condition(&self, expression: &Expression) -> Result<Expr> {
        match expression {
            Expression::Literal(Literal::Boolean(value)) => Ok(lit(*value)),
            Expression::Literal(Literal::Null) => Ok(lit(ScalarValue::Boolean(None))),
            Expression::Literal(_) => Err(Error::invalid("a condition of the filter is a constant that is no boolean")),
            Expression::Column(path) => {
                let (expr, data_type, name) = self.column(path)?;
                if data_type != DataType::Boolean {
                    return Err(Error::invalid(format!("{name} of type {data_type} is no condition")));
                }
                Ok(expr)
            }
            Expression::Call(operator, arguments) => self.call(*operator, arguments),
        }
    }

    fn call(&self, operator: Operator, arguments: &[Expression]) -> Result<Expr> {
        use Operator as O;
        let expect = |count: usize| match arguments.len() == count {
            true => Ok(()),
            false => Err(Error::invalid(format!("{operator:?} takes {count} arguments, not {}", arguments.len()))),
        };
        match operator {
            O::Equal | O::NotEqual | O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => {
                expect(2)?;
                compare(operator, self.operand(&arguments[0])?, self.operand(&arguments[1])?)
            }
            O::And | O::Or => {
                if arguments.len() < 2 {
                    return Err(Error::invalid(format!("{operator:?} takes two or more arguments")));
                }
                let conditions =
                    arguments.iter().map(|argument| self.condition(argument)).collect::<Result<Vec<_>>>()?;
                let operator = if operator == O::And { DfOperator::And } else { DfOperator::Or };
                Ok(balanced(operator, conditions))
            }
            O::Not | O::IsTrue | O::IsFalse => {
                expect(1)?;
                let condition = Box::new(self.condition(&arguments[0])?);
                Ok(match operator {
                    O::Not => Expr::Not(condition),
                    O::IsTrue => Expr::IsTrue(condition),
                    _ => Expr::IsFalse(condition),
                })
            }
            O::IsNull | O::IsNotNull => {
                expect(1)?;
                let expr = match self.operand(&arguments[0])? {
                    Operand::Value { expr, .. } => Box::new(expr),
                    Operand::Literal(literal) => {
                        return Ok(lit((*literal == Literal::Null) == (operator == O::IsNull)));
                    }
                };
                Ok(if operator == O::IsNull { Expr::IsNull(expr) } else { Expr::IsNotNull(expr) })
            }
            O::In => self.is_in(arguments),
            O::Between => {
                expect(3)?;
                self.between(&arguments[0], &arguments[1], &arguments[2])
            }
            O::Like => self.like(arguments),
        }
    }

    fn is_in(&self, arguments: &[Expression]) -> Result<Expr> {
        let [tested, list @ ..] = arguments else {
            return Err(Error::invalid("In takes a value and a list of constants"));
        };
        let Operand::Value { expr, data_type, name } = self.operand(tested)? else {
            return Err(Error::invalid("the first argument of In is a column, not a constant"));
        };
        if list.is_empty() {
            return Err(Error::invalid("the list of In is empty"));
        }
        check_comparable(&data_type, &name)?;
        let list = list
            .iter()
            .map(|item| match item {
                Expression::Literal(literal) => Ok(lit(literal::typed(literal, &data_type, &name)?)),
                _ => Err(Error::invalid("the list of In holds something that is no constant")),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Expr::InList(InList { expr: Box::new(expr), list, negated: false }))
    }

    fn between(&self, tested: &Expression, low: &Expression, high: &Expression) -> Result<Expr> {
        let Operand::Value { expr, data_type, name } = self.operand(tested)? else {
            return Err(Error::invalid("the first argument of Between is a column, not a constant"));
        };
        let (Expression::Literal(low), Expression::Literal(high)) = (low, high) else {
            return Err(Error::invalid("the bounds of Between are constants"));
        };
        if data_type.is_floating() {
            let value = || Operand::Value { expr: expr.clone(), data_type: data_type.clone(), name: name.clone() };
            let low = compare(Operator::GreaterOrEqual, value(), Operand::Literal(low))?;
            let high = compare(Operator::LessOrEqual, value(), Operand::Literal(high))?;
            return Ok(balanced(DfOperator::And, vec![low, high]));
        }
        check_comparable(&data_type, &name)?;
        Ok(Expr::Between(Between {
            negated: false,
            low: Box::new(lit(literal::typed(low, &data_type, &name)?)),
            high: Box::new(lit(literal::typed(high, &data_type, &name)?)),
            expr: Box::new(expr),
        }))
    }

    fn like(&self, arguments: &[Expression]) -> Result<Expr> {
        let (value, pattern, escape) = match arguments {
            [value, Expression::Literal(Literal::String(pattern))] => (value, pattern, None),
            [value, Expression::Literal(Literal::String(pattern)), Expression::Literal(Literal::String(escape))] => {
                let mut chars = escape.chars();
                match (chars.next(), chars.next()) {
                    (Some(escape), None) => (value, pattern, Some(escape)),
                    _ => return Err(Error::invalid("the escape of Like is one character")),
                }
            }
            _ => {
                return Err(Error::invalid(
                    "Like takes a value, a constant pattern and perhaps a constant escape character",
                ));
            }
        };
        let Operand::Value { expr, data_type, name } = self.operand(value)? else {
            return Err(Error::invalid("the first argument of Like is a column, not a constant"));
        };
        let pattern = Literal::String(backslash_pattern(pattern, escape)?);
        let pattern = literal::typed(&pattern, &data_type, &name)?;
        Ok(Expr::Like(Like::new(false, Box::new(expr), Box::new(lit(pattern)), None, false)))
    }

    fn operand<'a>(&self, expression: &'a Expression) -> Result<Operand<'a>> {
        Ok(match expression {
            Expression::Literal(literal) => Operand::Literal(literal),
            Expression::Column(path) => {
                let (expr, data_type, name) = self.column(path)?;
                Operand::Value { expr, data_type, name }
            }
            Expression::Call(operator, arguments) => Operand::Value {
                expr: self.call(*operator, arguments)?,
                data_type: DataType::Boolean,
                name: "a condition".to_owned(),
            },
        })
    }

    fn column(&self, path: &[String]) -> Result<(Expr, DataType, String)> {
        const PLACE: &str = "the filter";
        let [column, nested @ ..] = path else {
            return Err(Error::invalid("the filter holds a column without a name"));
        };
        let Some(mut field) = find_column(self.schema, column) else {
            let columns = self.schema.fields.iter().map(|f| shown_name(&f.name, &f.metadata));
            return Err(no_such_column(column, columns, PLACE));
        };
        let mut stored = vec![field.name.as_str()];
        for name in nested {
            let children = if field.logical_type.is_struct() { field.children.as_slice() } else { &[] };
            let Some(child) = children.iter().find(|child| child.name == *name) else {
                return Err(no_such_column(&path.join("."), children.iter().map(|c| c.name.as_str()), PLACE));
            };
            field = child;
            stored.push(&child.name);
        }
        let expr = field_path_to_expr(&format_field_path_minimal(&stored))
            .map_err(|e| Error::internal("a stored column name cannot be addressed").with_source(e))?;
        Ok((expr, field.data_type(), format!("column '{}'", excerpt(&path.join(".")))))
    }
}

fn compare(operator: Operator, left: Operand<'_>, right: Operand<'_>) -> Result<Expr> {
    match (left, right) {
        (Operand::Value { expr, data_type, name }, Operand::Literal(literal)) => {
            check_comparable(&data_type, &name)?;
            let value = literal::typed(literal, &data_type, &name)?;
            Ok(compare_value(operator, expr, value))
        }
        (literal @ Operand::Literal(_), value @ Operand::Value { .. }) => compare(mirrored(operator), value, literal),
        (
            Operand::Value { expr: left, data_type: left_type, name: left_name },
            Operand::Value { expr: right, data_type: right_type, name: right_name },
        ) => {
            let family = |t: &DataType| t.is_signed_integer() as u8 + 2 * u8::from(t.is_unsigned_integer());
            let alike =
                left_type == right_type || (family(&left_type) != 0 && family(&left_type) == family(&right_type));
            if !alike || left_type.is_floating() || left_type.is_nested() {
                return Err(Error::invalid(format!(
                    "{left_name} of type {left_type} and {right_name} of type {right_type} cannot be compared exactly"
                )));
            }
            Ok(binary(left, df_operator(operator), right))
        }
        (Operand::Literal(left), Operand::Literal(right)) => {
            let (left, right) = (literal::natural(left), literal::natural(right));
            match (left, right) {
                (Some(left), Some(right))
                    if left.data_type() == right.data_type() && !left.data_type().is_floating() =>
                {
                    Ok(binary(lit(left), df_operator(operator), lit(right)))
                }
                _ => Err(Error::invalid("the filter compares two constants of different types")),
            }
        }
    }
}

fn compare_value(operator: Operator, expr: Expr, value: ScalarValue) -> Expr {
    let bound = match operator {
        Operator::Greater | Operator::GreaterOrEqual => Some((DfOperator::LtEq, f64::INFINITY)),
        Operator::Less | Operator::LessOrEqual => Some((DfOperator::GtEq, f64::NEG_INFINITY)),
        _ => None,
    };
    let bound = bound.and_then(|(operator, infinity)| match value {
        ScalarValue::Float32(Some(_)) => Some((operator, ScalarValue::Float32(Some(infinity as f32)))),
        ScalarValue::Float64(Some(_)) => Some((operator, ScalarValue::Float64(Some(infinity)))),
        _ => None,
    });
    let compared = binary(expr.clone(), df_operator(operator), lit(value));
    match bound {
        Some((operator, infinity)) => balanced(DfOperator::And, vec![compared, binary(expr, operator, lit(infinity))]),
        None => compared,
    }
}

fn check_comparable(data_type: &DataType, name: &str) -> Result<()> {
    if data_type.is_nested() || *data_type == DataType::Float16 {
        return Err(Error::invalid(format!("{name} of type {data_type} cannot be compared")));
    }
    Ok(())
}

fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}

fn df_operator(operator: Operator) -> DfOperator {
    match operator {
        Operator::NotEqual => DfOperator::NotEq,
        Operator::Less => DfOperator::Lt,
        Operator::LessOrEqual => DfOperator::LtEq,
        Operator::Greater => DfOperator::Gt,
        Operator::GreaterOrEqual => DfOperator::GtEq,
        _ => DfOperator::Eq,
    }
}

fn binary(left: Expr, operator: DfOperator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

/// A tree of logarithmic depth, however many conditions there are.
fn balanced(operator: DfOperator, mut conditions: Vec<Expr>) -> Expr {
    while conditions.len() > 1 {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary(left, operator, right),
                None => left,
            });
        }
        conditions = pairs;
    }
    conditions.pop().unwrap_or_else(|| lit(true))
}

/// The pattern for a matcher that takes the backslash as its escape, always.
fn backslash_pattern(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut result = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some(next) if next == '%' || next == '_' || Some(next) == escape => {
                    if matches!(next, '%' | '_' | '\\') {
                        result.push('\\');
                    }
                    result.push(next);
                }
                _ => return Err(Error::invalid("the escape of a Like pattern stands before %, _ or itself")),
            }
        } else if c == '\\' {
            result.push_str("\\\\");
        } else {
            result.push(c);
        }
    }
    Ok(result)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_schema::Field;

    use super::*;
    use crate::error::ErrorKind;
    use crate::schema::to_lance;

    fn schema() -> LanceSchema {
        let child = Field::new("in.ner", DataType::Int32, true);
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("small", DataType::Int8, true),
            Field::new("f", DataType::Float32, true),
            Field::new("g", DataType::Float32, true),
            Field::new("a.b", DataType::Utf8, true),
            Field::new("flag", DataType::Boolean, true),
            Field::new("s", DataType::Struct(vec![child].into()), true),
        ];
        to_lance(&ArrowSchema::new(fields), &[], "2.2").unwrap()
    }

    fn column(name: &str) -> Expression {
        Expression::Column(vec![name.to_owned()])
    }

    fn int(value: i64) -> Expression {
        Expression::Literal(Literal::Integer(value))
    }

    fn text(value: &str) -> Expression {
        Expression::Literal(Literal::String(value.to_owned()))
    }

    fn refused(expression: Expression) -> Error {
        plan(&Filter::Expression(expression), &schema(), 128).unwrap_err()
    }

    fn planned(expression: Expression) -> String {
        plan(&Filter::Expression(expression), &schema(), 128).unwrap().to_string()
    }

    #[test]
    fn a_filter_that_is_nested_too_deep_is_refused() {
        // A large stack, since dropping the nested test value itself recurses.
        let deep = || {
            let mut expression = column("flag");
            for _ in 0..10_000 {
                expression = Expression::Call(Operator::Not, vec![expression]);
            }
            refused(expression)
        };
        let error = std::thread::Builder::new().stack_size(64 << 20).spawn(deep).unwrap().join().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("128"), "{error}");
    }

    #[test]
    fn a_wide_filter_is_planned_as_a_flat_tree() {
        let wide = Expression::Call(
            Operator::Or,
            (0..10_000).map(|i| Expression::Call(Operator::Equal, vec![column("id"), int(i)])).collect(),
        );
        assert!(plan(&Filter::Expression(wide), &schema(), 128).is_ok());
    }

    #[test]
    fn an_unknown_column_is_named_with_its_neighbours() {
        let error = refused(Expression::Call(Operator::Equal, vec![column("Id"), int(1)]));
        assert_eq!(error.kind(), ErrorKind::ColumnNotFound);
        assert!(error.message().contains("'Id'") && error.message().contains("'id'"), "{error}");
        let nested = Expression::Column(vec!["s".into(), "inner".into()]);
        let error = refused(Expression::Call(Operator::IsNull, vec![nested]));
        assert!(error.message().contains("'in.ner'"), "{error}");
        let metadata = refused(Expression::Call(Operator::Equal, vec![column("_rowid"), int(1)]));
        assert_eq!(metadata.kind(), ErrorKind::ColumnNotFound);
    }

    #[test]
    fn what_cannot_be_compared_exactly_is_refused() {
        let pairs = [
            (column("small"), int(300)),
            (column("id"), text("1")),
            (column("a.b"), int(1)),
            (column("f"), column("g")),
            (column("id"), column("a.b")),
            (column("s"), int(1)),
            (int(1), text("1")),
        ];
        for (left, right) in pairs {
            let error = refused(Expression::Call(Operator::Equal, vec![left, right]));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        }
        assert_eq!(refused(column("id")).kind(), ErrorKind::InvalidArgument);
        assert_eq!(refused(Expression::Call(Operator::And, vec![column("flag")])).kind(), ErrorKind::InvalidArgument);
        assert_eq!(refused(Expression::Call(Operator::In, vec![column("id")])).kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn constants_take_the_type_of_their_column() {
        assert_eq!(planned(Expression::Call(Operator::Less, vec![int(5), column("small")])), "small > Int8(5)");
        let half = Expression::Literal(Literal::Float64(0.5));
        let range = planned(Expression::Call(Operator::Greater, vec![column("f"), half]));
        assert!(range.contains("Float32(0.5)") && range.contains("Float32(inf)"), "{range}");
    }

    #[test]
    fn a_pattern_means_the_same_with_any_escape() {
        assert_eq!(backslash_pattern(r"a%b_c", None).unwrap(), r"a%b_c");
        assert_eq!(backslash_pattern(r"10\%", None).unwrap(), r"10\\%");
        assert_eq!(backslash_pattern(r"10\%", Some('\\')).unwrap(), r"10\%");
        assert_eq!(backslash_pattern("10!%!!!_", Some('!')).unwrap(), r"10\%!\_");
        assert_eq!(backslash_pattern(r"\!\", Some('!')).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(backslash_pattern(r"\\", Some('\\')).unwrap(), r"\\");
        assert!(backslash_pattern("x!", Some('!')).is_err());
    }
}
