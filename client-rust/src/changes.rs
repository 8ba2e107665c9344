//! The change feed: what each version of a table changed.

use chrono::{DateTime, Utc};
use lance_gateway_proto::v1;

use crate::client::{Call, send};
use crate::ids::time_from_wire;
use crate::scan::{Plan, Scan};
use crate::{Client, ColumnPath, Error, Result, TableId, VersionSelector};

/// Changes that are being described. End it with [`plan`](Self::plan), whose splits are the parts.
///
/// The rows have the columns of the table as of the last version, and then `_change_kind` (0 inserted, 1 before an update, 2
/// after it, 3 deleted), `_commit_version` and `_commit_timestamp`.
#[derive(Debug, Clone)]
#[must_use = "nothing is read before it is planned"]
pub struct Changes {
    scan: Scan,
    wanted: v1::Changes,
}

impl Client {
    /// Begins to describe what changed after the newest version, which is nothing yet: see [`Changes::after`].
    pub fn changes(&self, table: impl Into<TableId>) -> Changes {
        Changes { scan: self.scan(table), wanted: v1::Changes::default() }
    }

    /// Keeps a version of a table and all newer ones from cleanups, for a reader that has still to read what changed after it.
    /// Holds until the time that it answers, and longer if it is repeated, then perhaps with another version.
    ///
    /// `holder`: 1 to 128 of the characters `A-Z a-z 0-9 _ -`.
    pub async fn hold_version(&self, table: impl Into<TableId>, holder: &str, version: u64) -> Result<DateTime<Utc>> {
        let message = v1::HoldVersionRequest { table: table.into().to_wire(), holder: holder.to_owned(), version };
        let answer = send!(self.tables().hold_version, Call::changes("hold version"), message)?;
        time_from_wire(answer.expires_at).ok_or_else(|| Error::protocol("the gateway did not say how long it holds"))
    }

    /// Lets go of what a holder holds. False: it held no version, or an attempt whose answer was lost let go of it.
    pub async fn release_version(&self, table: impl Into<TableId>, holder: &str) -> Result<bool> {
        let message = v1::ReleaseVersionRequest { table: table.into().to_wire(), holder: holder.to_owned() };
        let answer = send!(self.tables().release_version, Call::changes("release version"), message)?;
        Ok(answer.released)
    }
}

impl Changes {
    /// Changes after this version; 0 stands for the table before its first version.
    pub fn after(mut self, version: impl Into<VersionSelector>) -> Self {
        self.wanted.after = version.into().to_wire();
        self.wanted.after_oldest = false;
        self
    }

    /// Changes after the oldest version that there is.
    pub fn after_oldest(mut self) -> Self {
        self.wanted.after = None;
        self.wanted.after_oldest = true;
        self
    }

    /// The rows of the version after which they begin come first, as inserted ones.
    pub fn initial(mut self, initial: bool) -> Self {
        self.wanted.initial = initial;
        self
    }

    /// The last version.
    pub fn to(mut self, version: impl Into<VersionSelector>) -> Self {
        self.wanted.to = version.into().to_wire();
        self
    }

    /// Spreads the changes over so many splits, by the hash of the key. All changes of a key are in one.
    pub fn parts(mut self, parts: u32) -> Self {
        self.wanted.parts = parts;
        self
    }

    /// Reads these columns, in this order.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Self {
        self.scan = self.scan.columns(columns);
        self
    }

    /// Bounds a batch by rows and by bytes; the smaller bound wins, 0: as the gateway is configured.
    pub fn batch_size(mut self, rows: u32, bytes: u64) -> Self {
        self.scan = self.scan.batch_size(rows, bytes);
        self
    }

    /// Pins both ends. The version of the plan is the last one: where the next plan begins, if it is to follow.
    pub async fn plan(self) -> Result<Plan> {
        let mut scan = self.scan;
        scan.request.changes = Some(self.wanted);
        scan.plan().await
    }
}
