//! Lookups: from messages to the words of the lake.

use lance_gateway_lake as lake;
use lance_gateway_proto::v1;

use super::{Result, column_path, filter, invalid, projection, row_metadata, saturating, table_id, version};

/// Where and in which rows is looked up, and what is compared.
pub fn spec(request: v1::LookupRequest, max_filter_depth: usize) -> Result<lake::LookupSpec> {
    let r = request;
    if r.keys.is_empty() {
        return Err(invalid("lookup.keys is empty; it names the columns that are compared"));
    }
    let batch = r.batch.unwrap_or_default();
    Ok(lake::LookupSpec {
        table: table_id(r.table)?,
        version: version(r.version)?,
        projection: projection(r.projection)?,
        filter: filter(r.filter, max_filter_depth)?,
        metadata: row_metadata(r.metadata),
        batch_rows: (batch.rows > 0).then(|| saturating(batch.rows)),
        batch_bytes: (batch.bytes > 0).then(|| saturating(batch.bytes)),
        keys: r.keys.into_iter().map(column_path).collect::<Result<_>>()?,
    })
}
