//! Merges and changes of rows.

use lance_gateway_lake as lake;
use lance_gateway_proto::v1;

use super::{Result, filter, invalid, literal, required};

/// What a merge did.
pub fn merge_counts(counts: lake::MergeCounts) -> v1::MergeCounts {
    let lake::MergeCounts { num_inserted, num_updated, num_deleted, num_unchanged } = counts;
    v1::MergeCounts { num_inserted, num_updated, num_deleted, num_unchanged }
}

/// What a merge does with rows.
pub fn merge_rule(request: &mut v1::MergeRequest, max_filter_depth: usize) -> Result<lake::MergeRule> {
    use v1::{SourceDuplicates as S, WhenMatched as M, WhenNotMatched as N, WhenNotMatchedBySource as B};
    let unknown = |field: &str| invalid(format!("the gateway knows no such {field}"));
    let matched = M::try_from(request.when_matched).map_err(|_| unknown("when_matched"))?;
    let not_matched = N::try_from(request.when_not_matched).map_err(|_| unknown("when_not_matched"))?;
    let by_source =
        B::try_from(request.when_not_matched_by_source).map_err(|_| unknown("when_not_matched_by_source"))?;
    let duplicates = S::try_from(request.source_duplicates).map_err(|_| unknown("source_duplicates"))?;
    let update_if = filter(request.update_if.take(), max_filter_depth)?;
    let delete_if = filter(request.delete_if.take(), max_filter_depth)?;
    if update_if.is_some() && matched != M::UpdateIf {
        return Err(invalid("update_if is for when_matched UPDATE_IF"));
    }
    if delete_if.is_some() && by_source != B::DeleteIf {
        return Err(invalid("delete_if is for when_not_matched_by_source DELETE_IF"));
    }
    Ok(lake::MergeRule {
        when_matched: match matched {
            M::Unspecified | M::UpdateAll => lake::WhenMatched::UpdateAll,
            M::UpdateIf => lake::WhenMatched::UpdateIf(required(update_if, "update_if")?),
            M::DoNothing => lake::WhenMatched::DoNothing,
            M::Fail => lake::WhenMatched::Fail,
            M::Delete => lake::WhenMatched::Delete,
        },
        when_not_matched: match not_matched {
            N::Unspecified | N::InsertAll => lake::WhenNotMatched::InsertAll,
            N::DoNothing => lake::WhenNotMatched::DoNothing,
        },
        when_not_matched_by_source: match by_source {
            B::Unspecified | B::Keep => lake::WhenNotMatchedBySource::Keep,
            B::Delete => lake::WhenNotMatchedBySource::Delete,
            B::DeleteIf => lake::WhenNotMatchedBySource::DeleteIf(required(delete_if, "delete_if")?),
        },
        refuse_duplicates: duplicates != S::LastWins,
    })
}

/// What an update sets.
pub fn assignment(assignment: v1::Assignment) -> Result<lake::Assignment> {
    let column = assignment.column;
    if column.is_empty() {
        return Err(invalid("an assignment names no column"));
    }
    let value = match required(assignment.value, "the value of an assignment")? {
        v1::assignment::Value::Literal(value) => lake::Assigned::Literal(literal(value)?),
        v1::assignment::Value::Sql(text) => lake::Assigned::Sql(text),
    };
    Ok(lake::Assignment { column, value })
}
