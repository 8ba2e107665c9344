//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use arrow_schema::SchemaRef;
use chrono::{DateTime, Utc};
use clap::{ArgAction, ArgGroup, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use lance_gateway_client::{ColumnPath, CommitId, Metric, VersionSelector};

use crate::{names, sql_type};

mod changes;
mod search;

pub use changes::Span;
pub use search::{Effort, SearchFor};

/// Tables behind a lance-gateway, for people and scripts.
///
/// TABLE is `table`, `namespace.table` or, where the operator allows it, a URI. Results go to stdout, progress and notes to
/// stderr. Exit code: 0 done, 1 refused or failed, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "lgw", version, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Where the gateway is: grpc://HOST:PORT, grpc+tls://HOST:PORT or grpc+unix:///PATH.
    #[arg(long, global = true, env = "LANCE_GATEWAY_URI", default_value = "grpc://127.0.0.1:8815")]
    pub uri: String,
    /// How results are shown. In a table, long values are cut; json and csv have them whole.
    #[arg(long, global = true, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// No progress and no notes.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Longest wait for an answer and for the next rows, for example 30s or 5m [default: 60s and 5m].
    #[arg(long, global = true, value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Certificates (PEM) of the authorities to trust with grpc+tls, instead of the system's.
    #[arg(long, global = true, env = "LANCE_GATEWAY_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Option of the store of the tables, such as s3-access-key, where the operator allows it. KEY=@FILE reads the value from a
    /// file, so that it is in no list of processes. Repeatable.
    #[arg(
        long = "storage-option",
        global = true,
        env = "LANCE_GATEWAY_STORAGE_OPTIONS",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "KEY=VALUE",
        value_parser = parse_storage_option
    )]
    pub storage_options: Vec<StorageOption>,
}

/// A part of `--storage-option`. Its value is never shown.
#[derive(Clone)]
pub struct StorageOption {
    pub key: String,
    pub value: String,
}

impl std::fmt::Debug for StorageOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.key)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
    Csv,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Health, version and limits of the gateway.
    Status,
    /// List the tables and namespaces of a namespace.
    Tables {
        /// The root if absent.
        #[arg(value_parser = parse_namespace)]
        namespace: Option<Namespace>,
    },
    /// Create an empty table.
    #[command(group(ArgGroup::new("columns").required(true).args(["schema", "like"])))]
    Create {
        table: String,
        /// Columns with SQL types, for example 'id BIGINT NOT NULL, embedding FLOAT[50]'.
        #[arg(long, value_parser = sql_type::parse_schema)]
        schema: Option<SchemaRef>,
        /// Columns as in this file (parquet, csv, json lines, arrow).
        #[arg(long, value_name = "FILE")]
        like: Option<PathBuf>,
        /// Columns of the primary key, in order; they must be NOT NULL.
        #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
        primary_key: Vec<String>,
    },
    /// Schema, rows, version, fragments, indexes and bytes of a table.
    Describe { table: String },
    /// Delete a table with all its versions.
    Drop {
        table: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Write files into a table as one version, and print that version.
    ///
    /// Columns are matched by name. A value that does not fit the type of its column is an error, and then nothing is written.
    Put {
        table: String,
        /// parquet, csv, json lines or arrow, by their endings.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[arg(long, value_enum, default_value_t = PutMode::Append)]
        mode: PutMode,
        /// Create the table if it is not there, with the columns of the first file.
        #[arg(long)]
        create: bool,
        /// With --mode merge: a column that tells rows apart; may be given several times. Default: the primary key.
        #[arg(long, value_name = "COL")]
        on: Vec<String>,
    },
    /// Delete rows, as one version.
    Delete {
        table: String,
        /// The WHERE clause of SQL; quote names with backticks. `true` is all rows.
        #[arg(long, value_name = "EXPR")]
        filter: String,
    },
    /// Set columns in rows, as one version.
    Update {
        table: String,
        /// What a column becomes: SQL over the row as it was, such as 'price=price * 2'.
        #[arg(long, required = true, value_name = "COL=EXPR", value_parser = names::parse_assignment)]
        set: Vec<(String, String)>,
        /// The WHERE clause of SQL; quote names with backticks. `true` is all rows.
        #[arg(long, value_name = "EXPR")]
        filter: String,
    },
    /// Read rows.
    Scan {
        table: String,
        /// Columns in order; `a.b` is a field of a struct column, "a.b" or `a.b` in quotes is a column of that name.
        #[arg(long, value_name = "COLUMN,...", value_parser = names::parse_columns)]
        columns: Option<Columns>,
        /// The WHERE clause of SQL; quote names with backticks.
        #[arg(long, value_name = "EXPR")]
        filter: Option<String>,
        /// At most this many rows.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        #[command(flatten)]
        at: At,
        /// Write to this file instead: .parquet, .csv, .jsonl, .arrow (file) or .arrows (stream).
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Read what each version of a table changed.
    ///
    /// The columns of the table, and then `_change_kind` (0 inserted, 1 before an update, 2 after it, 3 deleted), `_commit_version`
    /// and `_commit_timestamp`.
    Changes {
        table: String,
        #[command(flatten)]
        span: Span,
        /// Columns in order, as in `scan`.
        #[arg(long, value_name = "COLUMN,...", value_parser = names::parse_columns)]
        columns: Option<Columns>,
        /// Read on as new versions come, until Ctrl-C; needs --output json.
        #[arg(long, conflicts_with = "out")]
        follow: bool,
        /// Keep the version up to which was read, and all newer ones, from cleanups, in this name, for a later `--after`.
        #[arg(long, value_name = "NAME")]
        hold: Option<String>,
        /// Write to this file instead, as in `scan`.
        #[arg(long = "out", value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Find the nearest vectors, or the best texts.
    #[command(group(ArgGroup::new("for").required(true).args(["vector", "vectors", "text"])))]
    Search {
        table: String,
        /// The column that is searched; `a.b` is a field of a struct column.
        #[arg(value_parser = names::parse_column)]
        column: ColumnPath,
        #[command(flatten)]
        wanted: SearchFor,
        #[command(flatten)]
        effort: Effort,
        /// Columns in order, as in `scan`.
        #[arg(long, value_name = "COLUMN,...", value_parser = names::parse_columns)]
        columns: Option<Columns>,
        /// The WHERE clause of SQL: only these rows are searched.
        #[arg(long, value_name = "EXPR")]
        filter: Option<String>,
        #[command(flatten)]
        at: At,
    },
    /// Count rows.
    Count {
        table: String,
        /// The WHERE clause of SQL; quote names with backticks.
        #[arg(long, value_name = "EXPR")]
        filter: Option<String>,
        #[command(flatten)]
        at: At,
    },
    /// List the versions that can be read, newest first.
    Versions {
        table: String,
        /// At most this many.
        #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
        limit: u32,
    },
    /// Prepared and finished commits of a table.
    Commits {
        table: String,
        #[command(subcommand)]
        action: Option<CommitAction>,
    },
    /// Merge small fragments of a table into large ones.
    Compact { table: String },
    /// Remove old versions of a table. The latest, and those with a tag or a branch, stay.
    #[command(group(ArgGroup::new("which").required(true).multiple(true).args(["older_than", "keep"])))]
    Cleanup {
        table: String,
        /// Remove only versions older than this, for example 14d.
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        older_than: Option<Duration>,
        /// Keep the newest N versions in any case.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        keep: Option<u64>,
        /// Only tell what would go.
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete files of a table that no version names and that are too old to be committed any more.
    Sweep {
        table: String,
        /// Only list them.
        #[arg(long)]
        dry_run: bool,
    },
    /// Indexes of a table.
    Index {
        #[command(subcommand)]
        action: IndexAction,
    },
    /// Jobs of the gateway.
    Jobs {
        #[command(subcommand)]
        action: Option<JobAction>,
    },
    /// Print the completions of a shell.
    Completions { shell: Shell },
}

#[derive(Debug, Subcommand)]
pub enum CommitAction {
    /// Those that are prepared, and the newest that are finished, with their rows, bytes and time.
    List,
    /// What the table knows of one commit.
    Show {
        /// EPOCH:SEQ
        id: CommitId,
    },
    /// Fence a commit that is not finished, so that it can never become visible.
    Abort {
        /// EPOCH:SEQ
        id: CommitId,
    },
}

#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Build an index. Searches do without it until it is there.
    Create {
        table: String,
        /// `a.b` is a field of a struct column.
        #[arg(value_parser = names::parse_column)]
        column: ColumnPath,
        /// How it keeps what it finds.
        #[arg(long = "type", value_enum, ignore_case = true, value_name = "TYPE")]
        index_type: IndexType,
        /// Its name, by default the column and `_idx`.
        #[arg(long)]
        name: Option<String>,
        /// In place of an index of this name, if there is one.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        vector: VectorKnobs,
        #[command(flatten)]
        text: TextKnobs,
        /// Show the job until it ends.
        #[arg(long)]
        wait: bool,
    },
    /// Bring rows that came later into indexes.
    Optimize {
        table: String,
        /// All indexes, if none is named.
        #[arg(value_name = "INDEX")]
        names: Vec<String>,
        /// Merge the newest N parts of each index with the new rows; 0: the new rows become a part of their own.
        #[arg(long, value_name = "N")]
        merge: Option<u32>,
        /// Train anew, with all rows.
        #[arg(long)]
        retrain: bool,
        /// Show the job until it ends.
        #[arg(long)]
        wait: bool,
    },
    /// List the indexes, with how many rows they find.
    List { table: String },
    /// All that is known of one index.
    Describe {
        table: String,
        #[arg(value_name = "INDEX")]
        name: String,
    },
    /// Remove an index.
    Drop {
        table: String,
        #[arg(value_name = "INDEX")]
        name: String,
    },
}

/// Types of indexes, by Lance's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IndexType {
    IvfFlat,
    IvfPq,
    IvfSq,
    IvfRq,
    IvfHnswFlat,
    IvfHnswSq,
    IvfHnswPq,
    #[value(name = "BTREE")]
    BTree,
    Bitmap,
    LabelList,
    Ngram,
    Zonemap,
    BloomFilter,
    /// Full text, with positions.
    Inverted,
}

/// What can be set of an index over vectors.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub struct VectorKnobs {
    /// l2, cosine, dot or hamming; without it as the table declares, else l2, hamming for bytes, and cosine for lists of vectors.
    #[arg(long, value_name = "M")]
    pub metric: Option<Metric>,
    /// Partitions [default: from the number of rows].
    #[arg(long, value_name = "N")]
    pub partitions: Option<u32>,
    /// Parts of a vector, of PQ.
    #[arg(long, value_name = "N")]
    pub sub_vectors: Option<u32>,
    /// Bits of a code, of PQ, SQ and RQ.
    #[arg(long, value_name = "N")]
    pub bits: Option<u32>,
    /// Neighbours in the graph of HNSW.
    #[arg(long, value_name = "N")]
    pub m: Option<u32>,
    /// Levels of the graph of HNSW.
    #[arg(long, value_name = "N")]
    pub max_level: Option<u32>,
    /// Candidates while the graph of HNSW is built.
    #[arg(long, value_name = "N")]
    pub ef_construction: Option<u32>,
}

/// What can be set of a full-text index.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub struct TextKnobs {
    /// How text is cut into words, of INVERTED: simple, whitespace, raw or ngram [default: simple].
    #[arg(long, value_name = "NAME")]
    pub tokenizer: Option<String>,
    /// Of stems and stop words [default: English].
    #[arg(long, value_name = "NAME")]
    pub language: Option<String>,
    /// Keep positions, which phrases need [default: true].
    #[arg(long, value_name = "BOOL")]
    pub with_position: Option<bool>,
    /// Ignore case [default: true].
    #[arg(long, value_name = "BOOL")]
    pub lower_case: Option<bool>,
    /// Reduce words to their stems [default: true, of ngram false].
    #[arg(long, value_name = "BOOL")]
    pub stem: Option<bool>,
    /// Leave out frequent words [default: true, of ngram false].
    #[arg(long, value_name = "BOOL")]
    pub remove_stop_words: Option<bool>,
    /// Ignore accents [default: true].
    #[arg(long, value_name = "BOOL")]
    pub ascii_folding: Option<bool>,
    /// Leave out longer words [default: 40].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_token_length: Option<u32>,
    /// Shortest part of a word, of ngram [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ngram_min_length: Option<u32>,
    /// Longest part of a word, of ngram [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ngram_max_length: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum JobAction {
    /// All jobs that the gateway remembers, newest first.
    List {
        /// Only those of this table.
        table: Option<String>,
    },
    /// Show a job until it ends.
    Watch { id: String },
    /// Stop a job.
    Cancel { id: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PutMode {
    Append,
    Overwrite,
    /// A row replaces the one with its key, and is added if there is none.
    Merge,
}

/// Which version is read.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct At {
    /// This version.
    #[arg(long, value_name = "N", action = ArgAction::Set)]
    version: Option<u64>,
    /// The newest version that is not younger: 2026-01-31, '2026-01-31 12:00:00' (UTC) or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    as_of: Option<DateTime<Utc>>,
    /// The version with this tag.
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
}

impl At {
    pub fn selector(&self) -> VersionSelector {
        match (self.version, self.as_of, &self.tag) {
            (Some(version), _, _) => VersionSelector::Version(version),
            (_, Some(time), _) => VersionSelector::AsOf(time),
            (_, _, Some(tag)) => VersionSelector::Tag(tag.clone()),
            (None, None, None) => VersionSelector::Latest,
        }
    }
}

/// A list in one argument; clap would take a plain `Vec` for a repeated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<ColumnPath>);

/// The parts of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(pub Vec<String>);

fn parse_namespace(text: &str) -> Result<Namespace, String> {
    Ok(Namespace(text.split('.').map(str::to_owned).collect()))
}

/// Never fails, so that a misspelt secret is in no message: what has no `=` is a key without a value.
#[allow(clippy::unnecessary_wraps, reason = "the signature that clap asks for")]
fn parse_storage_option(text: &str) -> Result<StorageOption, std::convert::Infallible> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    Ok(StorageOption { key: key.to_owned(), value: value.to_owned() })
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    // A bare number is what most tools take for seconds.
    let time = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => humantime::parse_duration(text).map_err(|e| e.to_string())?,
    };
    match time.is_zero() {
        true => Err("it must be above zero".to_owned()),
        false => Ok(time),
    }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; use 14d, 36h or 0s"))
}

fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    arrow_cast::parse::string_to_datetime(&Utc, text).map_err(|_| {
        format!("{text:?} is no time; use 2026-01-31, '2026-01-31 12:00:00' (UTC) or 2026-01-31T12:00:00+02:00")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_time_has_utc_unless_it_says_otherwise() {
        let expected = DateTime::parse_from_rfc3339("2026-01-31T10:00:00Z").unwrap();
        assert_eq!(parse_time("2026-01-31 10:00:00").unwrap(), expected);
        assert_eq!(parse_time("2026-01-31T12:00:00+02:00").unwrap(), expected);
        assert_eq!(parse_time("2026-01-31").unwrap().to_rfc3339(), "2026-01-31T00:00:00+00:00");
        assert!(parse_time("yesterday").is_err());
    }

    #[test]
    fn a_timeout_is_in_seconds_or_has_a_unit() {
        assert_eq!(parse_timeout("30").unwrap(), parse_timeout("30s").unwrap());
        assert_eq!(parse_timeout("2m").unwrap(), Duration::from_secs(120));
        assert!(parse_timeout("0").is_err() && parse_timeout("soon").is_err());
    }

    #[test]
    fn a_cleanup_says_what_it_keeps() {
        assert!(Args::try_parse_from(["lgw", "cleanup", "t"]).is_err());
        assert!(Args::try_parse_from(["lgw", "cleanup", "t", "--keep", "0"]).is_err());
        let args = Args::try_parse_from(["lgw", "cleanup", "t", "--older-than", "14d", "--keep", "3"]).unwrap();
        let Command::Cleanup { older_than, keep, .. } = args.command else { panic!("not cleanup") };
        assert_eq!((older_than, keep), (Some(Duration::from_secs(14 * 86_400)), Some(3)));
    }

    #[test]
    fn a_search_is_for_one_thing() {
        let parse = |more: &[&str]| Args::try_parse_from([&["lgw", "search", "t", "v"], more].concat());
        assert!(parse(&[]).is_err());
        assert!(parse(&["--vector", "[1]", "--text", "x"]).is_err());
        assert!(parse(&["--text", "x", "--metric", "l2"]).is_err(), "texts have no metric");
        assert!(parse(&["--vector", "[1]", "--metric", "euclid"]).is_err());
        let args = parse(&["--vector", "[-1]", "-k", "3", "--metric", "DOT"]).unwrap();
        let Command::Search { effort, .. } = args.command else { panic!("not search") };
        assert_eq!((effort.k, effort.metric), (3, Some(Metric::Dot)));
    }

    #[test]
    fn a_read_is_of_one_version() {
        assert!(Args::try_parse_from(["lgw", "scan", "t", "--version", "3", "--tag", "x"]).is_err());
        let args = Args::try_parse_from(["lgw", "count", "t", "--version", "3"]).unwrap();
        let Command::Count { at, .. } = args.command else { panic!("not count") };
        assert_eq!(at.selector(), VersionSelector::Version(3));
    }
}
