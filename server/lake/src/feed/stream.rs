//! The changes of one part: version by version, and in each first what was deleted, then what came, then what was rewritten.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::{ArrayRef, Int8Array, RecordBatch, TimestampMicrosecondArray, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use chrono::{DateTime, Utc};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use roaring::RoaringTreemap;

use super::diff::{self, Diff, diff};
use super::images::{Columns, Images};
use super::lance_failed;
use super::pairs::{Pairs, Share, identity, key_of};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::Key;
use crate::scan::{Bounds, Projected, ScanStream};
use crate::table::{Handle, Location};
use crate::types::{ChangesSplit, VersionSelector};

const INSERTED: i8 = 0;
const BEFORE_UPDATE: i8 = 1;
const AFTER_UPDATE: i8 = 2;
const DELETED: i8 = 3;

/// The rows of one part in their order, which is always the same. Dropping it stops the reading.
pub struct ChangesStream {
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
}

impl ChangesStream {
    pub(super) fn new(
        lake: Lake,
        location: Location,
        split: ChangesSplit,
        columns: Columns,
        first: Option<Handle>,
        bounds: Bounds,
        row_offset: u64,
    ) -> Self {
        let schema = columns.schema();
        let begin = if split.initial { Begin::Rows } else { Begin::Changes };
        let version = split.after;
        let reader = Reader {
            lake,
            location,
            split,
            columns: Arc::new(columns),
            bounds,
            skip: row_offset,
            begin,
            version,
            before: first,
            step: None,
            pieces: VecDeque::new(),
            open: None,
        };
        let batches = stream::try_unfold(reader, |mut reader| async move {
            match reader.next().await {
                Ok(batch) => Ok(batch.map(|batch| (batch, reader))),
                Err(error) => Err(reader.explained(error).await),
            }
        });
        Self { schema, batches: batches.boxed() }
    }

    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Stream for ChangesStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.as_mut().poll_next(context)
    }
}

/// What comes next of a split.
#[derive(Clone, Copy)]
enum Begin {
    /// The rows of the version that it begins after.
    Rows,
    Changes,
}

struct Reader {
    lake: Lake,
    location: Location,
    split: ChangesSplit,
    columns: Arc<Columns>,
    bounds: Bounds,
    /// Rows that the client has already.
    skip: u64,
    begin: Begin,
    /// The newest version that was begun, and the table as of it.
    version: u64,
    before: Option<Handle>,
    step: Option<Step>,
    pieces: VecDeque<Piece>,
    open: Option<Open>,
}

/// The changes of one version.
struct Step {
    before: Option<Handle>,
    after: Handle,
    committed_at: DateTime<Utc>,
    diff: Diff,
    identity: Option<Key>,
    shares: VecDeque<Share>,
}

/// Rows that are read by one scan.
enum Piece {
    Deleted(RoaringTreemap),
    /// Those that replace others in the order of their addresses, with the addresses of the others.
    Came(RoaringTreemap, VecDeque<(u64, u64)>),
    Rewritten(RoaringTreemap),
}

/// A piece that is being read.
struct Open {
    piece: Piece,
    rows: ScanStream,
    projected: Projected,
    /// The version before and what is read of it, if rows replace others.
    before: Option<(Handle, Projected)>,
    /// Whether the first row that it gives was given already.
    half: bool,
}

impl Piece {
    fn num_rows(&self) -> u64 {
        match self {
            Self::Deleted(rows) => rows.len(),
            Self::Came(rows, replaced) => rows.len() + replaced.len() as u64,
            Self::Rewritten(rows) => rows.len() * 2,
        }
    }

    /// Without its first rows. True: the row before an update is left out, and the one after it is not.
    fn skip(&mut self, skip: u64) -> bool {
        let (rows, first, half) = match self {
            Self::Deleted(rows) => {
                let first = rows.select(skip);
                (rows, first, false)
            }
            Self::Rewritten(rows) => {
                let first = rows.select(skip / 2);
                (rows, first, skip % 2 == 1)
            }
            Self::Came(rows, replaced) => {
                let (mut left, mut first, mut half) = (skip, None, false);
                for row in rows.iter() {
                    let size = if replaced.front().is_some_and(|(new, _)| *new == row) { 2 } else { 1 };
                    if left < size {
                        (first, half) = (Some(row), left == 1);
                        break;
                    }
                    left -= size;
                    if size == 2 {
                        replaced.pop_front();
                    }
                }
                (rows, first, half)
            }
        };
        match first {
            Some(first) => rows.remove_range(..first),
            None => std::mem::take(rows).len(),
        };
        half
    }
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.open.is_some() {
                if let Some(batch) = self.read().await? {
                    return Ok(Some(batch));
                }
                self.open = None;
            } else if let Some(piece) = self.pieces.pop_front() {
                self.open = self.opened(piece).await?;
            } else if let Some(pairs) = self.compared().await? {
                let Pairs { deleted, came, replaced, rewritten } = pairs;
                self.pieces.extend([
                    Piece::Deleted(deleted),
                    Piece::Came(came, replaced.into()),
                    Piece::Rewritten(rewritten),
                ]);
            } else if !self.advance().await? {
                return Ok(None);
            }
        }
    }

    /// Goes on to the next version that changed something. False: there is none.
    async fn advance(&mut self) -> Result<bool> {
        if let Some(step) = self.step.take() {
            self.before = Some(step.after);
        }
        let part = Share::part(self.split.part, self.split.parts);
        if let (Begin::Rows, Some(rows)) = (std::mem::replace(&mut self.begin, Begin::Changes), self.before.clone()) {
            let diff = Diff { came: diff::all(&rows).await?, ..Diff::default() };
            self.step = Some(Step {
                before: None,
                committed_at: rows.manifest().timestamp(),
                identity: self.identity(&rows, &rows)?,
                after: rows,
                diff,
                shares: VecDeque::from([part]),
            });
            return Ok(true);
        }
        while self.version < self.split.to {
            let version = self.version + 1;
            let after = self.lake.open_kept(&self.location, &VersionSelector::Version(version)).await?;
            let made = after.read_version_transaction(version).await.map_err(lance_failed)?;
            let operation = made.transaction.as_ref().map(|transaction| &transaction.operation);
            let diff = diff(self.before.as_ref(), &after, operation).await?;
            self.version = version;
            if diff == Diff::default() {
                self.before = Some(after);
                continue;
            }
            let identity = self.identity(self.before.as_ref().unwrap_or(&after), &after)?;
            // Only what is compared is kept in memory.
            let compared =
                if diff.gone.is_empty() || diff.came.is_empty() { 0 } else { diff.gone.len() + diff.came.len() };
            let shares = part.passes(compared, self.split.rows_at_once).collect();
            let before = self.before.clone();
            self.step = Some(Step { before, after, committed_at: made.timestamp, diff, identity, shares });
            return Ok(true);
        }
        Ok(false)
    }

    /// What rows of a version are told apart by. Parts are made by it, so all versions must have the same.
    fn identity(&self, before: &Handle, after: &Handle) -> Result<Option<Key>> {
        let identity = identity(before, after)?;
        let same_key = |dataset: &Handle| key_of(dataset) == self.columns.key;
        if self.split.parts == 1 || identity.is_some() && same_key(before) && same_key(after) {
            return Ok(identity);
        }
        let (version, last) = (after.manifest().version, self.split.to);
        let why = format!("version {version} does not have the primary key of version {last}; read it in one part");
        Err(Error::new(ErrorKind::SchemaMismatch, why))
    }

    /// A file that is missing, if a cleanup took its version meanwhile, is told as the version that is missing.
    async fn explained(self, error: Error) -> Error {
        if !matches!(error.kind(), ErrorKind::TableVersionNotFound | ErrorKind::StoreUnavailable) {
            return error;
        }
        // The one before, the one whose changes are read, and the one that comes next.
        let read = self.step.as_ref().map(|step| step.before.as_ref().unwrap_or(&step.after));
        let before = read.or(self.before.as_ref()).map(|read| read.manifest().version);
        let next = (self.version..=self.split.to).take(2).filter(|version| *version > 0);
        for version in before.into_iter().chain(next) {
            match self.lake.open_kept(&self.location, &VersionSelector::Version(version)).await {
                Err(missing) if missing.kind() == ErrorKind::TableVersionNotFound => return missing,
                _ => {}
            }
        }
        error
    }

    /// What the next share of the version is.
    async fn compared(&mut self) -> Result<Option<Pairs>> {
        let Some(step) = &mut self.step else { return Ok(None) };
        let Some(share) = step.shares.pop_front() else { return Ok(None) };
        let (before, identity) = (step.before.as_ref(), step.identity.as_ref());
        let pairs = self.lake.pairs(before, &step.after, &step.diff, identity, share, self.bounds).await?;
        Ok(Some(pairs))
    }

    /// Begins to read rows, unless the client has them all.
    async fn opened(&mut self, mut piece: Piece) -> Result<Option<Open>> {
        let num_rows = piece.num_rows();
        if num_rows <= self.skip {
            self.skip -= num_rows;
            return Ok(None);
        }
        let half = piece.skip(std::mem::take(&mut self.skip));
        let step = self.step()?;
        let mut bounds = self.bounds;
        let (dataset, rows, updates) = match &piece {
            Piece::Deleted(rows) => (step.before()?, rows, false),
            Piece::Came(rows, replaced) => (&step.after, rows, !replaced.is_empty()),
            Piece::Rewritten(rows) => (&step.after, rows, true),
        };
        let mut before = None;
        if updates {
            // Each row may come twice, and the one before may be wider.
            let dataset = step.before()?.clone();
            let projected = self.columns.of(&dataset)?;
            let widest = self.lake.rows_of_batch(&dataset, &projected, bounds).await?;
            bounds.rows = (bounds.rows.min(widest) / 2).max(1);
            bounds.bytes = (bounds.bytes / 2).max(1);
            before = Some((dataset, projected));
        }
        let projected = self.columns.of(dataset)?;
        let rows = self.lake.at_addresses(dataset, &projected, rows, bounds).await?;
        Ok(Some(Open { piece, rows, projected, before, half }))
    }

    /// The next rows of what is open.
    async fn read(&mut self) -> Result<Option<RecordBatch>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        let Some(batch) = open.rows.try_next().await? else { return Ok(None) };
        let rows = self.columns.images(&open.projected, &batch)?;
        let olds: Vec<Option<u64>> = match &mut open.piece {
            Piece::Deleted(_) => Vec::new(),
            Piece::Rewritten(_) => rows.addresses.iter().copied().map(Some).collect(),
            Piece::Came(_, replaced) => {
                let mut next = |row: &u64| replaced.pop_front_if(|(new, _)| new == row).map(|(_, old)| old);
                rows.addresses.iter().map(&mut next).collect()
            }
        };
        let half = std::mem::take(&mut open.half);
        let is_deleted = matches!(open.piece, Piece::Deleted(_));
        let replaced: RoaringTreemap = olds.iter().flatten().copied().collect();
        let (columns, kinds) = match &open.before {
            Some((dataset, projected)) if !replaced.is_empty() => {
                let images = self.lake.images_at(dataset, &self.columns, projected, &replaced, self.bounds).await?;
                together(self.columns.len(), &rows, &olds, &images)?
            }
            _ => {
                let kind = if is_deleted { DELETED } else { INSERTED };
                (rows.columns, vec![kind; rows.addresses.len()])
            }
        };
        let batch = self.shown(columns, kinds)?;
        Ok(Some(if half { batch.slice(1, batch.num_rows() - 1) } else { batch }))
    }

    fn shown(&self, mut columns: Vec<ArrayRef>, kinds: Vec<i8>) -> Result<RecordBatch> {
        let rows = kinds.len();
        let step = self.step()?;
        let time = step.committed_at.timestamp_micros();
        columns.push(Arc::new(Int8Array::from(kinds)));
        columns.push(Arc::new(UInt64Array::from_value(step.after.manifest().version, rows)));
        columns.push(Arc::new(TimestampMicrosecondArray::from_value(time, rows).with_timezone("UTC")));
        RecordBatch::try_new(self.columns.schema(), columns).map_err(misfit)
    }

    fn step(&self) -> Result<&Step> {
        self.step.as_ref().ok_or_else(|| Error::internal("rows are read of no version"))
    }
}

impl Step {
    fn before(&self) -> Result<&Handle> {
        self.before.as_ref().ok_or_else(|| Error::internal("a row went before the table had a version"))
    }
}

/// Rows that came, each behind the one that it replaces. `olds`: the addresses of those; `images`: they, in the order of their
/// addresses.
fn together(
    num_columns: usize,
    rows: &Images,
    olds: &[Option<u64>],
    images: &[Images],
) -> Result<(Vec<ArrayRef>, Vec<i8>)> {
    let addresses: Vec<u64> = images.iter().flat_map(|images| images.addresses.iter().copied()).collect();
    let mut places = Vec::with_capacity(olds.len() * 2);
    let mut kinds = Vec::with_capacity(olds.len() * 2);
    for (row, old) in olds.iter().enumerate() {
        if let Some(old) = old {
            let found = addresses.binary_search(old);
            places.push((1, found.map_err(|_| Error::internal("a row that was replaced is not where it was"))?));
            kinds.push(BEFORE_UPDATE);
        }
        places.push((0, row));
        kinds.push(if old.is_some() { AFTER_UPDATE } else { INSERTED });
    }
    let columns = (0..num_columns).map(|column| {
        let before: Vec<_> = images.iter().map(|images| images.columns[column].as_ref()).collect();
        let before = concat(&before).map_err(misfit)?;
        interleave(&[rows.columns[column].as_ref(), before.as_ref()], &places).map_err(misfit)
    });
    Ok((columns.collect::<Result<_>>()?, kinds))
}

/// Rows of a version between the ends may have what a column has at neither of them.
fn misfit(error: arrow_schema::ArrowError) -> Error {
    let why = format!("rows of an older version do not fit the columns of now: {error}");
    Error::new(ErrorKind::SchemaMismatch, why).with_source(error)
}
