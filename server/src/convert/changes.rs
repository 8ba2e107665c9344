//! Changes after a version.

use lance_gateway_lake as lake;
use lance_gateway_proto::v1;

use super::{Result, invalid, projection, required, saturating, table_id, version};

/// What changes a request asks for.
pub fn spec(request: v1::ScanRequest) -> Result<lake::ChangesSpec> {
    let changes = required(request.changes, "changes")?;
    for (is_set, name) in [
        (request.search.is_some(), "search"),
        (request.version.is_some(), "version"),
        (request.filter.is_some(), "filter"),
        (request.limit.is_some(), "limit"),
        (request.metadata.is_some(), "metadata"),
        (request.split_bytes > 0, "split_bytes"),
        (request.max_splits > 0, "max_splits"),
    ] {
        if is_set {
            return Err(invalid(format!("a request for changes has no {name}; leave it out")));
        }
    }
    if changes.after_oldest && changes.after.is_some() {
        return Err(invalid("changes begin after a version or after the oldest one, not both"));
    }
    Ok(lake::ChangesSpec {
        table: table_id(request.table)?,
        projection: projection(request.projection)?,
        after: match changes.after_oldest {
            true => lake::ChangesStart::Oldest,
            false => lake::ChangesStart::After(version(changes.after)?),
        },
        initial: changes.initial,
        to: version(changes.to)?,
        parts: saturating(changes.parts),
    })
}

/// One part, for its ticket.
pub fn split(split: lake::ChangesSplit) -> v1::ChangesSplit {
    let lake::ChangesSplit { after, initial, to, part, parts, rows_at_once, incarnation } = split;
    v1::ChangesSplit { after, initial, to, part, parts, rows_at_once, incarnation }
}

/// One part to read.
pub fn read(ticket: v1::ScanTicket) -> Result<lake::ChangesRead> {
    let v1::ChangesSplit { after, initial, to, part, parts, rows_at_once, incarnation } =
        required(ticket.changes, "changes")?;
    if !ticket.fragments.is_empty() || ticket.filter.is_some() || ticket.limit.is_some() || ticket.search.is_some() {
        return Err(invalid("the ticket of changes has no fragments, filter, limit or search"));
    }
    let batch = ticket.batch.unwrap_or_default();
    Ok(lake::ChangesRead {
        table: table_id(ticket.table)?,
        projection: projection(ticket.projection)?,
        batch_rows: (batch.rows > 0).then(|| saturating(batch.rows)),
        batch_bytes: (batch.bytes > 0).then(|| saturating(batch.bytes)),
        split: lake::ChangesSplit { after, initial, to, part, parts, rows_at_once, incarnation },
        row_offset: ticket.row_offset,
    })
}
