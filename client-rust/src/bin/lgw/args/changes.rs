//! What `lgw changes` takes.

use clap::ArgGroup;
use lance_gateway_client::{Changes, VersionSelector};

use super::parse_time;

/// Where changes begin and end.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("start").args(["after", "after_tag", "after_time", "after_oldest"])))]
pub struct Span {
    /// Changes after this version; 0 stands for the table before its first one. Without a start: after the latest.
    #[arg(long, value_name = "N")]
    pub after: Option<u64>,
    /// Changes after the version with this tag.
    #[arg(long, value_name = "NAME")]
    pub after_tag: Option<String>,
    /// Changes after the newest version that is not younger than this.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub after_time: Option<chrono::DateTime<chrono::Utc>>,
    /// Changes after the oldest version that there is.
    #[arg(long)]
    pub after_oldest: bool,
    /// The rows of that version first, as inserted ones.
    #[arg(long)]
    pub initial: bool,
    /// Up to this version. Without it: the latest.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub to: Option<u64>,
}

impl Span {
    pub fn apply(&self, mut changes: Changes) -> Changes {
        let start = match (self.after, &self.after_tag, self.after_time) {
            (Some(version), _, _) => Some(VersionSelector::Version(version)),
            (None, Some(tag), _) => Some(VersionSelector::Tag(tag.clone())),
            (None, None, Some(time)) => Some(VersionSelector::AsOf(time)),
            (None, None, None) => None,
        };
        if let Some(start) = start {
            changes = changes.after(start);
        }
        if self.after_oldest {
            changes = changes.after_oldest();
        }
        if let Some(version) = self.to {
            changes = changes.to(version);
        }
        changes.initial(self.initial)
    }
}
