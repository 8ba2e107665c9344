package io.lancegateway.flink.table;

import io.lancegateway.flink.WriteMode;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;

/** The options of {@code 'connector' = 'lance'}. */
public final class LanceOptions {

    /** What comes with it goes to the file system; storage belongs to the gateway here. */
    public static final String HADOOP_PREFIX = "hadoop.";

    public static final ConfigOption<String> PATH =
            ConfigOptions.key("path")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "The table: 'table', 'namespace.table', or the URI of a dataset.");

    public static final ConfigOption<String> GATEWAY_URI =
            ConfigOptions.key("gateway.uri")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Where the gateway is. Default: LANCE_GATEWAY_URI of each process, else"
                                    + " grpc://localhost:8815.");

    public static final ConfigOption<Integer> READ_BATCH_SIZE =
            ConfigOptions.key("read.batch-size")
                    .intType()
                    .defaultValue(1024)
                    .withDescription(
                            "Most rows of a batch, if set. Else batches are cut by bytes alone.");

    public static final ConfigOption<Long> READ_LIMIT =
            ConfigOptions.key("read.limit")
                    .longType()
                    .noDefaultValue()
                    .withDescription("Rows that a job reads at most.");

    public static final ConfigOption<String> READ_COLUMNS =
            ConfigOptions.key("read.columns")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Columns that are read, separated by commas; the others are null.");

    public static final ConfigOption<String> READ_FILTER =
            ConfigOptions.key("read.filter")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("Rows that are read: a WHERE clause in Lance's dialect.");

    public static final ConfigOption<Long> READ_VERSION =
            ConfigOptions.key("read.version")
                    .longType()
                    .noDefaultValue()
                    .withDescription("The version that is read. Default: the latest.");

    public static final ConfigOption<String> READ_AS_OF_TIMESTAMP =
            ConfigOptions.key("read.as-of-timestamp")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Reads the newest version that is not younger than this ISO-8601 time"
                                    + " (without zone: UTC).");

    public static final ConfigOption<SourceMode> SOURCE_MODE =
            ConfigOptions.key("source.mode")
                    .enumType(SourceMode.class)
                    .defaultValue(SourceMode.BATCH)
                    .withDescription(
                            "'batch' ends after the rows that are there; 'streaming' goes on with"
                                    + " what comes.");

    public static final ConfigOption<Long> SOURCE_DISCOVERY_INTERVAL =
            ConfigOptions.key("source.discovery-interval")
                    .longType()
                    .defaultValue(10_000L)
                    .withDescription("Milliseconds between looks for new versions when streaming.");

    public static final ConfigOption<ScanMode> SCAN_MODE =
            ConfigOptions.key("scan.mode")
                    .enumType(ScanMode.class)
                    .defaultValue(ScanMode.APPEND)
                    .withDescription(
                            "'changelog' is a streaming source of all changes; with 'append' one"
                                    + " fails at an update or a delete.");

    public static final ConfigOption<StartupMode> SCAN_STARTUP_MODE =
            ConfigOptions.key("scan.startup.mode")
                    .enumType(StartupMode.class)
                    .defaultValue(StartupMode.INITIAL)
                    .withDescription(
                            "Where a streaming source begins: with the rows of the latest version,"
                                    + " those of the earliest one, or changes after a version.");

    public static final ConfigOption<Long> SCAN_STARTUP_VERSION =
            ConfigOptions.key("scan.startup.version")
                    .longType()
                    .noDefaultValue()
                    .withDescription(
                            "Changes after this version, with the startup mode 'version'.");

    public static final ConfigOption<String> SCAN_STARTUP_TIMESTAMP =
            ConfigOptions.key("scan.startup.timestamp")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Changes after the newest version that is not younger than this"
                                    + " ISO-8601 time (without zone: UTC), with the startup mode"
                                    + " 'timestamp'.");

    public static final ConfigOption<BoundedMode> SCAN_BOUNDED_MODE =
            ConfigOptions.key("scan.bounded.mode")
                    .enumType(BoundedMode.class)
                    .noDefaultValue()
                    .withDescription(
                            "Where a streaming source ends. Default: 'version' if"
                                    + " 'scan.bounded.version' is set, else 'unbounded'.");

    public static final ConfigOption<Long> SCAN_BOUNDED_VERSION =
            ConfigOptions.key("scan.bounded.version")
                    .longType()
                    .noDefaultValue()
                    .withDescription("The last version that a streaming source reads.");

    public static final ConfigOption<MissingVersions> SCAN_MISSING_VERSIONS =
            ConfigOptions.key("scan.missing-versions")
                    .enumType(MissingVersions.class)
                    .defaultValue(MissingVersions.FAIL)
                    .withDescription(
                            "What a streaming source does if a cleanup has removed the version"
                                    + " where it stands: fail, or skip what is missing.");

    public static final ConfigOption<String> SCAN_CONSUMER_ID =
            ConfigOptions.key("scan.consumer-id")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Name under which a streaming source keeps versions from cleanups."
                                    + " Default: drawn, and kept in the state.");

    /** What only a streaming source takes. */
    static final List<ConfigOption<?>> STREAMING =
            List.of(
                    SCAN_STARTUP_MODE,
                    SCAN_STARTUP_VERSION,
                    SCAN_STARTUP_TIMESTAMP,
                    SCAN_BOUNDED_MODE,
                    SCAN_BOUNDED_VERSION,
                    SCAN_MISSING_VERSIONS,
                    SCAN_CONSUMER_ID);

    public static final ConfigOption<Integer> WRITE_BATCH_SIZE =
            ConfigOptions.key("write.batch-size")
                    .intType()
                    .defaultValue(1024)
                    .withDescription(
                            "Most rows that a writer sends together, if set. Else batches are cut"
                                    + " by bytes alone. Does not decide about files.");

    public static final ConfigOption<WriteMode> WRITE_MODE =
            ConfigOptions.key("write.mode")
                    .enumType(WriteMode.class)
                    .defaultValue(WriteMode.APPEND)
                    .withDescription("'append', or 'overwrite': replace the rows once per job.");

    public static final ConfigOption<Long> WRITE_MAX_ROWS_PER_FILE =
            ConfigOptions.key("write.max-rows-per-file")
                    .longType()
                    .defaultValue(1_000_000L)
                    .withDescription("Rows of one data file.");

    public static final ConfigOption<Long> WRITE_MEMORY_CAP_BYTES =
            ConfigOptions.key("write.memory-cap-bytes")
                    .longType()
                    .defaultValue(-1L)
                    .withDescription(
                            "Bytes that wait in a writer at most. -1: no bound but the usual one"
                                    + " of 2 MiB.");

    public static final ConfigOption<String> WRITE_LARGE_STRING_COLUMNS =
            ConfigOptions.key("write.large-string-columns")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "STRING columns that a new table keeps as LargeUtf8, separated by"
                                    + " commas; case matters.");

    public static final ConfigOption<Map<String, String>> WRITE_VECTOR_DIMENSIONS =
            ConfigOptions.key("write.vector-dimensions")
                    .mapType()
                    .noDefaultValue()
                    .withDescription(
                            "Lengths of the vectors of a new table, as 'column:768,other:512'. Else"
                                    + " the first row tells.");

    public static final ConfigOption<String> WRITE_DATA_STORAGE_VERSION =
            ConfigOptions.key("write.data-storage-version")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("Lance's file format of a new table.");

    public static final ConfigOption<String> INDEX_TYPE =
            ConfigOptions.key("index.type")
                    .stringType()
                    .defaultValue("IVF_PQ")
                    .withDescription(
                            "The index that the table gets once it has rows, if 'index.column' is"
                                    + " set: IVF_PQ, IVF_HNSW, IVF_FLAT, BTREE, INVERTED, ...");
    public static final ConfigOption<String> INDEX_COLUMN =
            ConfigOptions.key("index.column")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("The column that the index is over.");
    public static final ConfigOption<Integer> INDEX_NUM_PARTITIONS =
            ConfigOptions.key("index.num-partitions")
                    .intType()
                    .noDefaultValue()
                    .withDescription("Partitions of IVF. Default: from the number of rows.");
    public static final ConfigOption<Integer> INDEX_NUM_SUB_VECTORS =
            ConfigOptions.key("index.num-sub-vectors")
                    .intType()
                    .noDefaultValue()
                    .withDescription("Parts of a vector in PQ. Default: one for 16 numbers.");
    public static final ConfigOption<Integer> INDEX_NUM_BITS =
            ConfigOptions.key("index.num-bits")
                    .intType()
                    .defaultValue(8)
                    .withDescription("Bits of a code of PQ.");
    public static final ConfigOption<Integer> INDEX_MAX_LEVEL =
            ConfigOptions.key("index.max-level")
                    .intType()
                    .defaultValue(7)
                    .withDescription("Levels of the graph of HNSW.");
    public static final ConfigOption<Integer> INDEX_M =
            ConfigOptions.key("index.m")
                    .intType()
                    .defaultValue(16)
                    .withDescription("Neighbours in the graph of HNSW.");
    public static final ConfigOption<Integer> INDEX_EF_CONSTRUCTION =
            ConfigOptions.key("index.ef-construction")
                    .intType()
                    .defaultValue(100)
                    .withDescription("Candidates while the graph of HNSW is built.");

    /** What an index is built with, besides its column and its type. */
    static final List<ConfigOption<?>> INDEX =
            List.of(
                    INDEX_NUM_PARTITIONS,
                    INDEX_NUM_SUB_VECTORS,
                    INDEX_NUM_BITS,
                    INDEX_MAX_LEVEL,
                    INDEX_M,
                    INDEX_EF_CONSTRUCTION);

    public static final ConfigOption<String> VECTOR_COLUMN =
            ConfigOptions.key("vector.column")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "The column that the other 'vector' options are about. Default: each.");
    public static final ConfigOption<String> VECTOR_METRIC =
            ConfigOptions.key("vector.metric")
                    .stringType()
                    .defaultValue("L2")
                    .withDescription(
                            "How vectors are compared: L2, Cosine or Dot. A new table declares it."
                                    + " Default of a search: what the table declares, or its index"
                                    + " has.");
    public static final ConfigOption<Integer> VECTOR_NPROBES =
            ConfigOptions.key("vector.nprobes")
                    .intType()
                    .defaultValue(20)
                    .withDescription(
                            "Partitions that a search asks; if not set, more while rows are"
                                    + " missing.");
    public static final ConfigOption<Integer> VECTOR_EF =
            ConfigOptions.key("vector.ef")
                    .intType()
                    .defaultValue(100)
                    .withDescription(
                            "Candidates of a search in HNSW; if not set, more where more rows are"
                                    + " wanted.");
    public static final ConfigOption<Integer> VECTOR_REFINE_FACTOR =
            ConfigOptions.key("vector.refine-factor")
                    .intType()
                    .noDefaultValue()
                    .withDescription(
                            "Reads so many times the rows that are wanted, and ranks them by their"
                                    + " own vectors.");

    /** What a search takes from its table. */
    static final List<ConfigOption<?>> VECTOR =
            List.of(VECTOR_METRIC, VECTOR_NPROBES, VECTOR_EF, VECTOR_REFINE_FACTOR);

    public static final ConfigOption<String> S3_ACCESS_KEY =
            ConfigOptions.key("s3-access-key")
                    .stringType()
                    .noDefaultValue()
                    .withDescription(
                            "Key for the store of an s3:// table, where the operator of the gateway"
                                    + " allows storage options of clients. Default: the gateway's.");
    public static final ConfigOption<String> S3_SECRET_KEY =
            ConfigOptions.key("s3-secret-key")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("The secret of 's3-access-key'.");
    public static final ConfigOption<String> S3_SESSION_TOKEN =
            ConfigOptions.key("s3-session-token")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("The token that comes with keys that run out.");
    public static final ConfigOption<String> S3_REGION =
            ConfigOptions.key("s3-region")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("Region of the store.");
    public static final ConfigOption<String> S3_ENDPOINT =
            ConfigOptions.key("s3-endpoint")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("Where the store is, without the bucket. Default: AWS.");
    public static final ConfigOption<Boolean> S3_VIRTUAL_HOSTED_STYLE =
            ConfigOptions.key("s3-virtual-hosted-style")
                    .booleanType()
                    .defaultValue(true)
                    .withDescription("Whether the bucket is a part of the host, else of the path.");
    public static final ConfigOption<Boolean> S3_ALLOW_HTTP =
            ConfigOptions.key("s3-allow-http")
                    .booleanType()
                    .defaultValue(false)
                    .withDescription("Whether the endpoint may be http.");

    /** Keys that a task's cache of a lookup join holds, if the table does not say. */
    static final long LOOKUP_CACHE_MAX_ROWS = 10_000;

    /** What goes to the gateway with each call, if it is set. */
    static final List<ConfigOption<?>> STORAGE =
            List.of(
                    S3_ACCESS_KEY,
                    S3_SECRET_KEY,
                    S3_SESSION_TOKEN,
                    S3_REGION,
                    S3_ENDPOINT,
                    S3_VIRTUAL_HOSTED_STYLE,
                    S3_ALLOW_HTTP);

    private LanceOptions() {}

    /** Whether a scan ends. */
    public enum SourceMode {
        BATCH,
        STREAMING
    }

    /** Which changes a streaming source gives. */
    public enum ScanMode {
        APPEND,
        CHANGELOG
    }

    /** Where a streaming source begins. */
    public enum StartupMode {
        INITIAL,
        EARLIEST,
        LATEST,
        VERSION,
        TIMESTAMP
    }

    /** Where a streaming source ends. */
    public enum BoundedMode {
        UNBOUNDED,
        LATEST,
        VERSION
    }

    /** What a streaming source does about versions that are gone. */
    public enum MissingVersions {
        FAIL,
        SKIP
    }
}
