//! What a planner does to a filter, without its mistakes about NULL.
//!
//! DataFusion makes one list of `x IN (1) AND x IN (2)`, and takes an empty one for FALSE, though it is NULL where x is; and of
//! `x NOT IN (1) OR x NOT IN (2)` it makes TRUE. The first is no harm where no NOT and the like stand above it, since FALSE and NULL keep
//! the same rows; so these go down to the leaves first. The second is kept from happening.

use std::collections::HashMap;

use lance::deps::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use lance::deps::datafusion::error::DataFusionError;
use lance::deps::datafusion::logical_expr::expr::InList;
use lance::deps::datafusion::logical_expr::{BinaryExpr, Expr, Operator as DfOperator};
use lance_datafusion::planner::Planner;

use super::{balanced, binary};

/// The expression with its types settled and its constants folded.
pub(super) fn optimize(planner: &Planner, expr: Expr) -> lance::Result<Expr> {
    let expr = without_not(expr, false);
    let expr = without_merged_lists(expr)?;
    planner.optimize_expr(expr)
}

/// The same in three-valued logic, with NOT below all AND and OR.
fn without_not(expr: Expr, negated: bool) -> Expr {
    match expr {
        Expr::Not(inner) => without_not(*inner, !negated),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_connective(op) => {
            let op = match (op, negated) {
                (DfOperator::And, true) => DfOperator::Or,
                (DfOperator::Or, true) => DfOperator::And,
                (same, _) => same,
            };
            binary(without_not(*left, negated), op, without_not(*right, negated))
        }
        Expr::InList(list) if negated => Expr::InList(InList { negated: !list.negated, ..list }),
        Expr::IsFalse(inner) if is_compound(&inner) => {
            not_if(negated, Expr::IsTrue(Box::new(without_not(*inner, true))))
        }
        Expr::IsNotFalse(inner) if is_compound(&inner) => {
            not_if(negated, Expr::IsNotTrue(Box::new(without_not(*inner, true))))
        }
        Expr::IsTrue(inner) => not_if(negated, Expr::IsTrue(Box::new(without_not(*inner, false)))),
        Expr::IsNotTrue(inner) => not_if(negated, Expr::IsNotTrue(Box::new(without_not(*inner, false)))),
        leaf => not_if(negated, leaf),
    }
}

fn is_connective(operator: DfOperator) -> bool {
    matches!(operator, DfOperator::And | DfOperator::Or)
}

fn is_compound(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_connective(*op),
        Expr::Not(inner) => is_compound(inner),
        _ => false,
    }
}

fn not_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// Where an OR may bring two lists of one value together, `x NOT IN (1, 2)` becomes `x <> 1 AND x <> 2`.
fn without_merged_lists(expr: Expr) -> Result<Expr, DataFusionError> {
    let (mut has_or, mut lists) = (false, HashMap::<Expr, usize>::new());
    expr.apply(|node| {
        match node {
            Expr::BinaryExpr(BinaryExpr { op: DfOperator::Or, .. }) => has_or = true,
            Expr::InList(InList { expr, negated: true, .. }) => *lists.entry(expr.as_ref().clone()).or_default() += 1,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_or || lists.values().all(|times| *times < 2) {
        return Ok(expr);
    }
    let apart = expr.transform_up(|node| match node {
        Expr::InList(InList { expr, list, negated: true })
            if !list.is_empty() && lists.get(expr.as_ref()).is_some_and(|times| *times > 1) =>
        {
            let others =
                list.into_iter().map(|value| binary(expr.as_ref().clone(), DfOperator::NotEq, value)).collect();
            Ok(Transformed::yes(balanced(DfOperator::And, others)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(apart.data)
}
