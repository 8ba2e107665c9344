//! A merge in one call: rows come, and a rule says what becomes of them and of those that are there.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;

use super::CHANGE_KIND;
use crate::Lake;
use crate::commit::open_merge;
use crate::error::{ErrorKind, Result};
use crate::types::{BegunWrite, ChangedRows, CommitId, Committed, CreateOptions, MergeRule, TableId, WhenMatched};

impl Lake {
    /// Begins a merge of rows with the columns of `schema`, as [`Self::begin_merge`].
    pub fn begin_merge_rows<'a>(
        &'a self,
        table: &'a TableId,
        schema: &'a Schema,
        create: Option<&'a CreateOptions>,
        key: &'a [String],
        request_id: &'a str,
        rule: &'a MergeRule,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        let later = matches!(rule.when_matched, WhenMatched::UpdateIf(_));
        self.begin_changes(table, Some(rows_of(schema)), create, ChangedRows::of(key), request_id, later)
    }

    /// Merges staged rows as one version, once for an id. Of what is refused for what it is, nothing is left behind.
    pub fn merge_rows<'a>(
        &'a self,
        id: CommitId,
        write: &'a [u8],
        staged: &'a [Bytes],
        rule: &'a MergeRule,
    ) -> BoxFuture<'a, Result<Committed>> {
        Box::pin(async move {
            let commit = open_merge(id, write, staged, rule)?;
            let landed = self.commit_opened(&commit).await;
            if let Err(error) = &landed
                && is_refused(error.kind())
            {
                self.discard_staged(&commit).await;
            }
            landed
        })
    }
}

/// Nothing was put, and the same call would be refused again.
fn is_refused(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DuplicateKey | ErrorKind::InvalidArgument | ErrorKind::ColumnNotFound | ErrorKind::SchemaMismatch
    )
}

/// The columns of the rows, whose changes may come with their kinds.
fn rows_of(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().filter(|field| field.name() != CHANGE_KIND).cloned().collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
