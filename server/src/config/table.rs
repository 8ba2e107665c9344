//! The one table of options. From it come the keys of the file, the names in the environment, the typed configuration and
//! `docs/configuration.md`.

use super::read::Reader;
use super::values::{
    ByteSize, FileMode, HumanDuration, InstanceName, Listen, LogFormat, LogLevel, OtlpEndpoint, Ratio, SecretMap,
    StorageVersion, StoreMap, TextList, Warehouse,
};

/// One option, as people see it.
#[derive(Debug)]
pub struct OptionSpec {
    /// Group and field as identifiers; `key` is what people type.
    path: &'static str,
    /// Sentences for the page of options.
    pub doc: &'static str,
    /// Kind of value, for people.
    pub kind: &'static str,
    /// As it would stand in the file.
    pub default: &'static str,
    /// Least and most, inclusive.
    pub bounds: Option<(&'static str, &'static str)>,
    /// What is counted; empty if the kind says it.
    pub unit: &'static str,
    /// The version that brought it.
    pub since: &'static str,
    /// Its value is never shown.
    pub secret: bool,
}

/// Options that belong together.
#[derive(Debug)]
pub struct GroupSpec {
    /// First part of the keys; empty: the keys have one part.
    pub name: &'static str,
    /// One sentence for the page of options.
    pub doc: &'static str,
    /// In the order of the page.
    pub options: &'static [OptionSpec],
}

impl OptionSpec {
    /// The key in the file: dots between groups, hyphens inside.
    pub fn key(&self) -> String {
        self.path.replace('_', "-")
    }

    /// The name in the environment.
    pub fn env(&self) -> String {
        format!("{}{}", super::ENV_PREFIX, self.path.replace('.', "_").to_uppercase())
    }
}

/// All options.
pub fn all() -> impl Iterator<Item = &'static OptionSpec> {
    GROUPS.iter().flat_map(|group| group.options)
}

macro_rules! options {
    (
        $(#[doc = $top_doc:literal])+
        { $( $(#[doc = $tdoc:literal])+ $tname:ident: $ttype:ty = $tdefault:literal, since $tsince:literal; )+ }
        $(
            $(#[doc = $gdoc:literal])+
            $group:ident: $Group:ident {
                $(
                    $(#[doc = $doc:literal])+
                    $name:ident: $type:ty = $default:literal $(in $min:literal..$max:literal)? $(of $unit:literal)?, since $since:literal;
                )+
            }
        )+
    ) => {
        /// The configuration of the process, checked.
        #[derive(Debug, Clone)]
        pub struct Config {
            $( $(#[doc = $tdoc])+ pub $tname: $ttype, )+
            $( $(#[doc = $gdoc])+ pub $group: $Group, )+
        }

        $(
            $(#[doc = $gdoc])+
            #[derive(Debug, Clone)]
            pub struct $Group {
                $( $(#[doc = $doc])+ pub $name: $type, )+
            }
        )+

        /// The table.
        pub static GROUPS: &[GroupSpec] = &[
            GroupSpec {
                name: "",
                doc: concat!($($top_doc),+),
                options: &[$(
                    OptionSpec {
                        path: stringify!($tname),
                        doc: concat!($($tdoc),+),
                        kind: <$ttype as super::values::OptionValue>::KIND,
                        default: $tdefault,
                        bounds: None,
                        unit: "",
                        since: $tsince,
                        secret: <$ttype as super::values::OptionValue>::SECRET,
                    },
                )+],
            },
            $(
                GroupSpec {
                    name: stringify!($group),
                    doc: concat!($($gdoc),+),
                    options: &[$(
                        OptionSpec {
                            path: concat!(stringify!($group), ".", stringify!($name)),
                            doc: concat!($($doc),+),
                            kind: <$type as super::values::OptionValue>::KIND,
                            default: $default,
                            bounds: options!(@bounds $($min, $max)?),
                            unit: concat!("" $(, $unit)?),
                            since: $since,
                            secret: <$type as super::values::OptionValue>::SECRET,
                        },
                    )+],
                },
            )+
        ];

        impl Config {
            /// Reads all options, so that all problems come to light, then builds.
            pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
                $( let $tname = reader.value::<$ttype>(stringify!($tname)); )+
                $(
                    let $group = {
                        $( let $name = reader.value::<$type>(concat!(stringify!($group), ".", stringify!($name))); )+
                        (|| Some($Group { $($name: $name?,)+ }))()
                    };
                )+
                Some(Self { $($tname: $tname?,)+ $($group: $group?,)+ })
            }
        }
    };
    (@bounds) => { None };
    (@bounds $min:literal, $max:literal) => { Some(($min, $max)) };
}

impl OptionSpec {
    pub(super) fn is(&self, path: &str) -> bool {
        self.path == path
    }
}

options! {
    /// Where the gateway listens and where its tables are.
    {
        /// Addresses for Flight and gRPC, any number: `HOST:PORT` (port 0: any free one) and `unix:/PATH`. Only loopback
        /// and Unix sockets, since there is no authentication.
        listen: Vec<Listen> = "127.0.0.1:8815", since "0.1.0";
        /// Address for `/live`, `/ready` and `/metrics`. Loopback only.
        admin_listen: std::net::SocketAddr = "127.0.0.1:8816", since "0.1.0";
        /// Root of all tables that are addressed by name: a local folder, created if missing, or a URI such as
        /// `s3://bucket/path` or `memory://name`. Credentials belong into `storage.options`.
        warehouse: Warehouse = "./lance-warehouse", since "0.1.0";
    }

    /// Tables.
    table: TableConfig {
        /// Paths and URIs below which clients may address tables directly, besides the warehouse.
        uri_prefixes: TextList = "", since "0.1.0";
        /// Open tables that are kept.
        open: u32 = "256" in "1".."65536" of "tables", since "0.1.0";
        /// Entries of one listing.
        max_list: u32 = "10000" in "1".."1000000" of "entries", since "0.1.0";
        /// Lance file format of new tables.
        data_storage_version: StorageVersion = "2.2", since "0.1.0";
        /// Which version brought a row stands in the manifest, some 70 bytes for each commit. What is more than this for one
        /// fragment moves into data files of new tables when they are compacted; such a table is read by Lance 14 and newer. 0:
        /// nothing moves, and each commit writes all of it.
        row_lineage_inline_bytes: ByteSize = "8KiB" in "0".."1GiB", since "0.1.0";
    }

    /// Object stores.
    storage: StorageConfig {
        /// Options of the object store, such as `aws_access_key_id`; without keys, those of the environment, a web identity or
        /// the instance are found. A value may be `{env: NAME}` or `{file: PATH}` in the file. Values are never shown. In
        /// the environment: `KEY=VALUE,KEY=VALUE`, or a JSON object.
        options: SecretMap = "", since "0.1.0";
        /// Options of the stores below a folder or URI, as a map of maps: `{s3://bucket-a/: {aws_access_key_id: …}}`. The longest
        /// one that fits holds by itself; `storage.options` holds elsewhere. In the environment: a JSON object of objects.
        stores: StoreMap = "", since "0.1.0";
        /// Whether calls may bring storage options of their own (`s3-access-key` and the like of a Flink table) for s3:// tables that
        /// they may address. Such a client chooses the server that the gateway connects to. Else they are PERMISSION_DENIED.
        client_options: bool = "false", since "0.1.0";
        /// Stores that are kept open for them.
        client_stores: u32 = "64" in "1".."4096" of "stores", since "0.1.0";
        /// Races by which a store is asked, before the first commit to it, whether it creates a key for one writer only.
        /// One that does not is refused with STORE_NOT_ATOMIC. Local files need none.
        probe_rounds: u32 = "4" in "1".."100" of "races", since "0.1.0";
        /// Writers of one such race.
        probe_writers: u32 = "16" in "2".."256" of "writers", since "0.1.0";
        /// What each of them sends in every other race; a few bytes in the others.
        probe_bytes: ByteSize = "1MiB" in "1KiB".."64MiB", since "0.1.0";
        /// Time for all races together.
        probe_timeout: HumanDuration = "30s" in "1s".."10m", since "0.1.0";
    }

    /// Caches of Lance, one each for the whole process.
    cache: CacheConfig {
        /// Parts of indexes.
        index_bytes: ByteSize = "256MiB" in "1MiB".."1TiB", since "0.1.0";
        /// Manifests and metadata of files.
        metadata_bytes: ByteSize = "128MiB" in "1MiB".."1TiB", since "0.1.0";
    }

    /// Scans.
    scan: ScanConfig {
        /// Rows of one batch, if the client does not say.
        batch_rows: u32 = "65536" in "1".."16777216" of "rows", since "0.1.0";
        /// Bytes of one batch, approximately, if the client does not say.
        batch_bytes: ByteSize = "2MiB" in "4KiB".."64MiB", since "0.1.0";
        /// A larger row is refused with ROW_TOO_LARGE.
        max_row_bytes: ByteSize = "64MiB" in "64KiB".."1GiB", since "0.1.0";
        /// Bytes of one split, if the client does not say.
        split_bytes: ByteSize = "64MiB" in "1MiB".."1TiB", since "0.1.0";
        /// Splits of one plan.
        max_splits: u32 = "10000" in "1".."1000000" of "splits", since "0.1.0";
        /// Memory of one scan for reading ahead and for its plan.
        memory_bytes: ByteSize = "128MiB" in "16MiB".."1TiB", since "0.1.0";
        /// Streams that read at once.
        max_streams: u32 = "64" in "1".."65536" of "streams", since "0.1.0";
        /// Depth of a filter expression. AND, OR and IN take any number of arguments.
        max_filter_depth: u32 = "48" in "1".."48" of "levels", since "0.1.0";
        /// Bytes that wait for a slow client, for each stream.
        send_buffer_bytes: ByteSize = "8MiB" in "64KiB".."1GiB", since "0.1.0";
        /// A stream whose client takes nothing for this long is ended with STREAM_IDLE.
        write_stall_timeout: HumanDuration = "60s" in "100ms".."1d", since "0.1.0";
    }

    /// Searches and lookups. Each has the memory of one scan.
    search: SearchConfig {
        /// Searches at once, batches of keys included. Above it a call is OVERLOADED, and a query of a DoExchange waits.
        max_in_flight: u32 = "64" in "1".."65536" of "searches", since "0.1.0";
        /// Queries of one DoExchange at once, of lookups the batches of keys; the stream reads no further until some are answered.
        stream_queries: u32 = "32" in "1".."1024" of "queries", since "0.1.0";
        /// Rows that one search finds, `offset` included.
        max_k: u32 = "10000" in "1".."1000000" of "rows", since "0.1.0";
        /// Candidates of one search: `k` times its refine factor, its `ef`, the words that a fuzzy one stands for.
        max_candidates: u32 = "100000" in "1".."10000000" of "candidates", since "0.1.0";
        /// Clauses of one full-text query.
        max_clauses: u32 = "100" in "1".."1000" of "clauses", since "0.1.0";
        /// Bytes of the rows of one answer; above it a search is QUOTA_EXCEEDED.
        max_reply_bytes: ByteSize = "16MiB" in "64KiB".."1GiB", since "0.1.0";
        /// Keys of a lookup that one scan looks for, and those of one stream at once; a larger batch of keys takes several scans.
        lookup_keys: u32 = "10000" in "1".."1000000" of "keys", since "0.1.0";
    }

    /// Streams that write.
    write: WriteConfig {
        /// Streams that write at once.
        max_streams: u32 = "64" in "1".."65536" of "streams", since "0.1.0";
        /// Largest message that is taken; the default holds 64 MiB of data and its framing.
        max_message_bytes: ByteSize = "66MiB" in "1MiB".."1GiB", since "0.1.0";
        /// A stream that sends nothing for this long is ended with STREAM_IDLE.
        idle_timeout: HumanDuration = "60s" in "100ms".."1d", since "0.1.0";
        /// A data file is closed after this many rows, if the client does not say.
        max_rows_per_file: u32 = "1000000" in "1".."1000000000" of "rows", since "0.1.0";
        /// A data file is closed after about this many bytes.
        max_bytes_per_file: ByteSize = "1GiB" in "1MiB".."1TiB", since "0.1.0";
        /// Bytes that wait for the store, for each stream.
        queue_bytes: ByteSize = "16MiB" in "64KiB".."4GiB", since "0.1.0";
    }

    /// Commits.
    commit: CommitConfig {
        /// Older committables are refused with COMMITTABLE_EXPIRED. Tables remember commits a little longer.
        max_committable_age: HumanDuration = "6d" in "1m".."365d", since "0.1.0";
        /// Attempts against other writers before CONCURRENT_MODIFICATION.
        max_attempts: u32 = "100" in "1".."10000" of "attempts", since "0.1.0";
        /// Time for one commit; after it the outcome is COMMIT_STATE_UNKNOWN. Shorter than `request.timeout`.
        timeout: HumanDuration = "60s" in "1s".."1h", since "0.1.0";
        /// Finished commits above a gap that one epoch may hold.
        max_out_of_order: u32 = "1000" in "1".."100000" of "commits", since "0.1.0";
        /// Newest commits of an epoch whose version is remembered.
        remembered_versions: u32 = "64" in "1".."10000" of "commits", since "0.1.0";
    }

    /// Changes by key.
    merge: MergeConfig {
        /// Keys that one commit holds in memory, about 100 bytes each. With more of them it reads the changes several times.
        keys: u32 = "1000000" in "1000".."1000000000" of "keys", since "0.1.0";
    }

    /// The change feed.
    changes: ChangesConfig {
        /// Rows of one version that are compared at once, about 150 bytes and a key each. Of a version that changed more, the keys are
        /// read several times.
        rows_at_once: u32 = "1000000" in "1000".."1000000000" of "rows", since "0.1.0";
        /// How long a version is held for a reader that does not come back. A running reader renews it.
        hold_age: HumanDuration = "24h" in "1s".."365d", since "0.1.0";
    }

    /// Jobs on tables, and the policy that starts them by itself. Tables override the last seven rules by properties of the
    /// same names, see [maintenance.md](maintenance.md).
    maintenance: MaintenanceConfig {
        /// Threads for jobs, besides those for requests.
        threads: u32 = "1" in "1".."64" of "threads", since "0.1.0";
        /// Memory of one compaction for reading ahead.
        memory_bytes: ByteSize = "256MiB" in "16MiB".."1TiB", since "0.1.0";
        /// Jobs that work at once.
        max_running: u32 = "2" in "1".."64" of "jobs", since "0.1.0";
        /// Jobs that wait or work.
        max_jobs: u32 = "100" in "1".."10000" of "jobs", since "0.1.0";
        /// Jobs that are remembered after their end, and of those that a restart broke off.
        remembered_jobs: u32 = "200" in "1".."10000" of "jobs", since "0.1.0";
        /// Name by which a gateway that comes back finds the jobs that it broke off; each gateway of a warehouse has its own. Empty: that
        /// of the host with the first address of `listen`. Set it where one of them changes with a restart.
        instance: InstanceName = "", since "0.1.0";
        /// Streams that follow a job at once.
        max_watches: u32 = "64" in "1".."65536" of "streams", since "0.1.0";
        /// Attempts of one step of a compaction against other writers.
        max_attempts: u32 = "5" in "1".."1000" of "attempts", since "0.1.0";
        /// Rows that one step of a compaction rewrites while commits of this gateway wait, once a commit was faster than a step beside
        /// it. 0: commits never wait, and a table whose rows change everywhere all the time is not compacted.
        held_rows: u32 = "100000" in "0".."100000000" of "rows", since "0.1.0";
        /// Files that the result of a sweep names; it counts all.
        listed_files: u32 = "1000" in "0".."10000" of "files", since "0.1.0";
        /// How often the policy looks at the tables of the warehouse. 0s: there is no policy.
        interval: HumanDuration = "0s" in "0s".."30d", since "0.1.0";
        /// Tables of one look; the next one goes on from there.
        max_tables: u32 = "1000" in "1".."1000000" of "tables", since "0.1.0";
        /// Keep the fragments that can be merged below this: a table is compacted once there are half as many. 0: never.
        compact_fragments: u32 = "0" in "0".."1000000" of "fragments", since "0.1.0";
        /// Clean up a table once it has more versions than this, down to this many. 0: whatever their number.
        keep_versions: u32 = "0" in "0".."1000000" of "versions", since "0.1.0";
        /// Clean up only versions older than this. 0s: whatever their age. If both are 0, nothing is cleaned up.
        keep_age: HumanDuration = "0s" in "0s".."3650d", since "0.1.0";
        /// Optimize the indexes of a table once this many rows are outside of one. 0: whatever their number.
        optimize_rows: u32 = "0" in "0".."4000000000" of "rows", since "0.1.0";
        /// Optimize the indexes of a table once rows are outside of one that was built or optimized longer ago than this. 0s: whatever
        /// its age. If both are 0, no index is optimized.
        optimize_age: HumanDuration = "0s" in "0s".."3650d", since "0.1.0";
        /// Index the primary key of a table that is merged into, and bring that index up to date, once this many rows are outside of
        /// it. Done after merges, whatever `interval` is. 0: never.
        key_index_rows: u32 = "100000" in "0".."1000000000" of "rows", since "0.1.0";
        /// How often a table is swept. 0s: never.
        sweep_interval: HumanDuration = "0s" in "0s".."365d", since "0.1.0";
    }

    /// Unary calls.
    request: RequestConfig {
        /// Time for one call. A shorter `grpc-timeout` of the client holds, a longer one is capped.
        timeout: HumanDuration = "5m" in "1s".."1d", since "0.1.0";
        /// Calls at once.
        max_in_flight: u32 = "256" in "1".."65536" of "calls", since "0.1.0";
        /// Headers of one call.
        max_header_bytes: ByteSize = "16KiB" in "4KiB".."1MiB", since "0.1.0";
        /// Answers of DropTable, CreateNamespace and DropNamespace that are remembered for a repeat.
        remembered_answers: u32 = "10000" in "1".."1000000" of "answers", since "0.1.0";
        /// How long they are remembered.
        remembered_for: HumanDuration = "10m" in "1s".."1d", since "0.1.0";
    }

    /// HTTP/2.
    http2: Http2Config {
        /// What a client may send ahead on one stream.
        stream_window: ByteSize = "8MiB" in "64KiB".."1GiB", since "0.1.0";
        /// What a client may send ahead on one connection. At least `http2.stream-window`.
        connection_window: ByteSize = "32MiB" in "64KiB".."1GiB", since "0.1.0";
        /// Largest frame that clients may send.
        max_frame: ByteSize = "1MiB" in "16KiB".."8MiB", since "0.1.0";
        /// Streams of one connection.
        max_concurrent_streams: u32 = "256" in "1".."65536" of "streams", since "0.1.0";
        /// A connection that is silent for this long is asked whether it lives.
        keepalive_interval: HumanDuration = "30s" in "1s".."1h", since "0.1.0";
        /// A connection that does not answer for this long is closed.
        keepalive_timeout: HumanDuration = "20s" in "1s".."1h", since "0.1.0";
    }

    /// Connections.
    connection: ConnectionConfig {
        /// Connections at once; more are closed at once.
        max: u32 = "1024" in "1".."65536" of "connections", since "0.1.0";
        /// A connection that sends nothing for this long after it opened is closed.
        handshake_timeout: HumanDuration = "10s" in "100ms".."10m", since "0.1.0";
        /// Permissions of Unix sockets, octal: whoever may write to one may use the gateway.
        unix_mode: FileMode = "0600", since "0.1.0";
    }

    /// Stopping.
    drain: DrainConfig {
        /// After SIGTERM, streams and commits have this long to finish.
        timeout: HumanDuration = "25s" in "0s".."1h", since "0.1.0";
    }

    /// The log, on standard error.
    log: LogConfig {
        /// `error`, `warn`, `info`, `debug` or `trace` for the gateway itself, or directives such as `info,lance=debug`.
        level: LogLevel = "info", since "0.1.0";
        /// `text` or `json`.
        format: LogFormat = "text", since "0.1.0";
    }

    /// OpenTelemetry.
    telemetry: TelemetryConfig {
        /// Where traces and metrics go over OTLP/gRPC, such as `http://127.0.0.1:4317`. Empty: nowhere.
        otlp_endpoint: OtlpEndpoint = "", since "0.1.0";
        /// Share of the traces that begin here; a caller's decision holds.
        sample_ratio: Ratio = "1", since "0.1.0";
        /// How often metrics are sent.
        export_interval: HumanDuration = "30s" in "1s".."1h", since "0.1.0";
        /// Time for one export.
        export_timeout: HumanDuration = "10s" in "1s".."5m", since "0.1.0";
        /// Finished spans that wait for their export; more are dropped.
        queue_spans: u32 = "2048" in "1".."1000000" of "spans", since "0.1.0";
    }

    /// Threads.
    runtime: RuntimeConfig {
        /// Threads for requests. 0: one a core, at most 8.
        worker_threads: u32 = "0" in "0".."1024" of "threads", since "0.1.0";
        /// Threads for local files, started when needed.
        blocking_threads: u32 = "128" in "4".."4096" of "threads", since "0.1.0";
    }
}
