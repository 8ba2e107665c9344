package io.lancegateway.flink.table;

import static io.lancegateway.flink.table.LanceOptions.GATEWAY_URI;
import static io.lancegateway.flink.table.LanceOptions.HADOOP_PREFIX;
import static io.lancegateway.flink.table.LanceOptions.PATH;
import static io.lancegateway.flink.table.LanceOptions.READ_AS_OF_TIMESTAMP;
import static io.lancegateway.flink.table.LanceOptions.READ_BATCH_SIZE;
import static io.lancegateway.flink.table.LanceOptions.READ_COLUMNS;
import static io.lancegateway.flink.table.LanceOptions.READ_FILTER;
import static io.lancegateway.flink.table.LanceOptions.READ_LIMIT;
import static io.lancegateway.flink.table.LanceOptions.READ_VERSION;
import static io.lancegateway.flink.table.LanceOptions.WRITE_BATCH_SIZE;
import static io.lancegateway.flink.table.LanceOptions.WRITE_DATA_STORAGE_VERSION;
import static io.lancegateway.flink.table.LanceOptions.WRITE_LARGE_STRING_COLUMNS;
import static io.lancegateway.flink.table.LanceOptions.WRITE_MAX_ROWS_PER_FILE;
import static io.lancegateway.flink.table.LanceOptions.WRITE_MEMORY_CAP_BYTES;
import static io.lancegateway.flink.table.LanceOptions.WRITE_MODE;
import static io.lancegateway.flink.table.LanceOptions.WRITE_VECTOR_DIMENSIONS;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.WriteMode;
import io.lancegateway.flink.index.IndexOptions;
import io.lancegateway.flink.sink.NewTable;
import io.lancegateway.flink.sink.SinkSpec;
import io.lancegateway.flink.source.ReadVersion;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.TablePath;
import io.lancegateway.flink.util.WireMetric;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.ScanRequest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import javax.annotation.Nullable;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.lookup.LookupOptions;
import org.apache.flink.table.connector.source.lookup.cache.DefaultLookupCache;
import org.apache.flink.table.connector.source.lookup.cache.LookupCache;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;

/**
 * Makes tables of {@code 'connector' = 'lance'}. Calls no gateway: planning may happen far from
 * one.
 */
public final class LanceDynamicTableFactory
        implements DynamicTableSourceFactory, DynamicTableSinkFactory {

    public static final String IDENTIFIER = "lance";

    private static final String INDEX_PREFIX = "index.";

    /** Of a table; with a dot and the name of a column, for that column. */
    private static final String METRIC_PROPERTY = "vector.metric";

    @Override
    public String factoryIdentifier() {
        return IDENTIFIER;
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(PATH);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(
                GATEWAY_URI,
                READ_BATCH_SIZE,
                READ_LIMIT,
                READ_COLUMNS,
                READ_FILTER,
                READ_VERSION,
                READ_AS_OF_TIMESTAMP,
                LanceOptions.SOURCE_MODE,
                LanceOptions.SOURCE_DISCOVERY_INTERVAL,
                LanceOptions.SCAN_MODE,
                LanceOptions.SCAN_STARTUP_MODE,
                LanceOptions.SCAN_STARTUP_VERSION,
                LanceOptions.SCAN_STARTUP_TIMESTAMP,
                LanceOptions.SCAN_BOUNDED_MODE,
                LanceOptions.SCAN_BOUNDED_VERSION,
                LanceOptions.SCAN_MISSING_VERSIONS,
                LanceOptions.SCAN_CONSUMER_ID,
                WRITE_BATCH_SIZE,
                WRITE_MODE,
                WRITE_MAX_ROWS_PER_FILE,
                WRITE_MEMORY_CAP_BYTES,
                WRITE_LARGE_STRING_COLUMNS,
                WRITE_VECTOR_DIMENSIONS,
                WRITE_DATA_STORAGE_VERSION,
                LanceOptions.INDEX_TYPE,
                LanceOptions.INDEX_COLUMN,
                LanceOptions.INDEX_NUM_PARTITIONS,
                LanceOptions.INDEX_NUM_SUB_VECTORS,
                LanceOptions.INDEX_NUM_BITS,
                LanceOptions.INDEX_MAX_LEVEL,
                LanceOptions.INDEX_M,
                LanceOptions.INDEX_EF_CONSTRUCTION,
                LanceOptions.VECTOR_COLUMN,
                LanceOptions.VECTOR_METRIC,
                LanceOptions.VECTOR_NPROBES,
                LanceOptions.VECTOR_EF,
                LanceOptions.VECTOR_REFINE_FACTOR,
                LanceOptions.S3_ACCESS_KEY,
                LanceOptions.S3_SECRET_KEY,
                LanceOptions.S3_SESSION_TOKEN,
                LanceOptions.S3_REGION,
                LanceOptions.S3_ENDPOINT,
                LanceOptions.S3_VIRTUAL_HOSTED_STYLE,
                LanceOptions.S3_ALLOW_HTTP,
                LookupOptions.CACHE_TYPE,
                LookupOptions.PARTIAL_CACHE_MAX_ROWS,
                LookupOptions.PARTIAL_CACHE_EXPIRE_AFTER_ACCESS,
                LookupOptions.PARTIAL_CACHE_EXPIRE_AFTER_WRITE,
                LookupOptions.PARTIAL_CACHE_CACHE_MISSING_KEY,
                FactoryUtil.SOURCE_PARALLELISM,
                FactoryUtil.SINK_PARALLELISM);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        ReadableConfig options = validated(context);
        RowType rowType = rowType(context);
        ArrowTypes.check(rowType);
        Optional<ChangeFeed> feed = ChangeFeedOptions.parse(options);
        ScanRequest.Builder request =
                ScanRequest.newBuilder().setTable(TablePath.parse(options.get(PATH)));
        options.getOptional(READ_BATCH_SIZE)
                .ifPresent(
                        rows ->
                                request.setBatch(
                                        BatchSize.newBuilder()
                                                .setRows(positive(READ_BATCH_SIZE, rows))));
        options.getOptional(READ_LIMIT)
                .ifPresent(rows -> request.setLimit(notNegative(READ_LIMIT, rows)));
        options.getOptional(READ_FILTER)
                .ifPresent(sql -> request.setFilter(Filter.newBuilder().setSql(sql)));
        version(options, request);
        Optional<Set<String>> columns = options.getOptional(READ_COLUMNS).map(s -> names(s));
        columns.ifPresent(names -> checkReadColumns(names, rowType));
        LanceTableSource table =
                new LanceTableSource(
                        address(options),
                        request.build(),
                        rowType,
                        columns.orElse(null),
                        options.getOptional(FactoryUtil.SOURCE_PARALLELISM).orElse(null),
                        lookupCache(options),
                        VectorOptions.of(options));
        if (feed.isPresent()) {
            return new ChangesTableSource(table, feed.get());
        }
        refuseChangeMetadata(context);
        return table;
    }

    private static void refuseChangeMetadata(Context context) {
        for (Column column : context.getCatalogTable().getResolvedSchema().getColumns()) {
            if (column instanceof Column.MetadataColumn
                    && !RowMetadataColumn.declares((Column.MetadataColumn) column)) {
                throw new ValidationException(
                        String.format(
                                "column '%s' is metadata, which only changes have: set"
                                        + " 'source.mode' = 'streaming' or 'scan.mode' ="
                                        + " 'changelog', or leave it out",
                                column.getName()));
            }
        }
    }

    /** A cache of lookup joins with a bound, or null. */
    @Nullable
    private static LookupCache lookupCache(ReadableConfig options) {
        switch (options.get(LookupOptions.CACHE_TYPE)) {
            case NONE:
                return null;
            case PARTIAL:
                return DefaultLookupCache.newBuilder()
                        .maximumSize(
                                options.getOptional(LookupOptions.PARTIAL_CACHE_MAX_ROWS)
                                        .orElse(LanceOptions.LOOKUP_CACHE_MAX_ROWS))
                        .expireAfterAccess(
                                options.get(LookupOptions.PARTIAL_CACHE_EXPIRE_AFTER_ACCESS))
                        .expireAfterWrite(
                                options.get(LookupOptions.PARTIAL_CACHE_EXPIRE_AFTER_WRITE))
                        // A miss that is kept would answer each retry of the LOOKUP hint.
                        .cacheMissingKey(
                                options.getOptional(LookupOptions.PARTIAL_CACHE_CACHE_MISSING_KEY)
                                        .orElse(false))
                        .build();
            default:
                throw new ValidationException(
                        "'lookup.cache' = 'FULL' is not supported: use 'PARTIAL' or 'NONE'");
        }
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        ReadableConfig options = validated(context);
        RowType rowType = rowType(context);
        Set<String> largeStrings =
                options.getOptional(WRITE_LARGE_STRING_COLUMNS).map(s -> names(s)).orElse(Set.of());
        Map<String, Integer> dimensions =
                options.getOptional(WRITE_VECTOR_DIMENSIONS)
                        .map(given -> dimensions(given))
                        .orElse(Map.of());
        long batchRows =
                options.getOptional(WRITE_BATCH_SIZE)
                        .map(rows -> positive(WRITE_BATCH_SIZE, rows))
                        .orElse(0);
        long memoryCap = options.get(LanceOptions.WRITE_MEMORY_CAP_BYTES);
        if (memoryCap != -1) {
            positive(WRITE_MEMORY_CAP_BYTES, memoryCap);
        }
        long rowsPerFile = positive(WRITE_MAX_ROWS_PER_FILE, options.get(WRITE_MAX_ROWS_PER_FILE));
        return new LanceTableSink(
                new SinkSpec(
                        address(options),
                        TablePath.parse(options.get(PATH)),
                        rowType,
                        options.get(WRITE_MODE) == WriteMode.OVERWRITE,
                        batchRows,
                        memoryCap,
                        rowsPerFile,
                        new NewTable(
                                largeStrings,
                                dimensions,
                                options.getOptional(WRITE_DATA_STORAGE_VERSION).orElse(""),
                                metrics(options),
                                primaryKey(context, rowType)),
                        index(options, rowType)),
                options.getOptional(FactoryUtil.SINK_PARALLELISM).orElse(null),
                showsAll(options),
                RowMetadataColumn.ROW_ID.columnOf(context.getCatalogTable().getResolvedSchema()));
    }

    /** Whether what is read are all rows of the latest version, with all columns. */
    private static boolean showsAll(ReadableConfig options) {
        return List.of(READ_FILTER, READ_LIMIT, READ_COLUMNS, READ_VERSION, READ_AS_OF_TIMESTAMP)
                .stream()
                .noneMatch(option -> options.getOptional(option).isPresent());
    }

    private static List<String> primaryKey(Context context, RowType rowType) {
        return Arrays.stream(context.getPrimaryKeyIndexes())
                .mapToObj(rowType.getFieldNames()::get)
                .collect(Collectors.toList());
    }

    /** What a new table declares of the metric of its vectors. */
    private static Map<String, String> metrics(ReadableConfig options) {
        Optional<String> metric = options.getOptional(LanceOptions.VECTOR_METRIC);
        if (metric.isEmpty()) {
            return Map.of();
        }
        String property =
                options.getOptional(LanceOptions.VECTOR_COLUMN)
                        .map(column -> METRIC_PROPERTY + "." + column)
                        .orElse(METRIC_PROPERTY);
        return Map.of(
                property,
                WireMetric.parse("vector.metric", metric.get()).name().toLowerCase(Locale.ROOT));
    }

    /** The index that the options declare, or null. */
    @Nullable
    private static IndexBuild index(ReadableConfig options, RowType rowType) {
        Map<String, String> given = new HashMap<>();
        for (ConfigOption<?> option : LanceOptions.INDEX) {
            options.getOptional(option)
                    .ifPresent(
                            value ->
                                    given.put(
                                            option.key().substring(INDEX_PREFIX.length()),
                                            value.toString()));
        }
        Optional<String> column = options.getOptional(LanceOptions.INDEX_COLUMN);
        if (column.isEmpty()) {
            if (!given.isEmpty() || options.getOptional(LanceOptions.INDEX_TYPE).isPresent()) {
                throw new ValidationException(
                        "the options of an index need 'index.column': which column it is over");
            }
            return null;
        }
        String name = column.get();
        boolean top = rowType.getFieldIndex(name) >= 0;
        List<String> path = top ? List.of(name) : List.of(name.split("\\.", -1));
        if (rowType.getFieldIndex(path.get(0)) < 0) {
            throw new ValidationException(
                    String.format(
                            "'index.column' = '%s' is no column of the table: %s",
                            name, rowType.getFieldNames()));
        }
        Optional.ofNullable(VectorOptions.of(options).of(name).get("metric"))
                .filter(metric -> options.get(LanceOptions.INDEX_TYPE).startsWith("IVF"))
                .ifPresent(metric -> given.put("metric", metric));
        given.put("name", name + "_idx");
        return IndexOptions.build(path, options.get(LanceOptions.INDEX_TYPE), given);
    }

    /** The gateway, and how it reaches the store of the table if the table says so. */
    private static GatewayAddress address(ReadableConfig options) {
        Map<String, String> storage = new HashMap<>();
        for (ConfigOption<?> option : LanceOptions.STORAGE) {
            options.getOptional(option)
                    .ifPresent(value -> storage.put(option.key(), value.toString()));
        }
        return new GatewayAddress(options.getOptional(GATEWAY_URI).orElse(null), storage);
    }

    private ReadableConfig validated(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validateExcept(HADOOP_PREFIX);
        TablePath.parse(helper.getOptions().get(PATH));
        return helper.getOptions();
    }

    private static RowType rowType(Context context) {
        DataType type = context.getPhysicalRowDataType();
        return (RowType) type.getLogicalType();
    }

    private static void version(ReadableConfig options, ScanRequest.Builder request) {
        Optional<Long> version = options.getOptional(READ_VERSION);
        if (version.isPresent()) {
            request.setVersion(ReadVersion.version(positive(READ_VERSION, version.get())));
            return;
        }
        options.getOptional(READ_AS_OF_TIMESTAMP)
                .ifPresent(
                        text -> {
                            try {
                                request.setVersion(ReadVersion.asOf(ReadVersion.parseTime(text)));
                            } catch (IllegalArgumentException malformed) {
                                throw new ValidationException(
                                        "'read.as-of-timestamp': " + malformed.getMessage(),
                                        malformed);
                            }
                        });
    }

    /** Names between commas: exact but for the blanks around them. */
    private static Set<String> names(String list) {
        return Arrays.stream(list.split(","))
                .map(String::trim)
                .filter(name -> !name.isEmpty())
                .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    private static void checkReadColumns(Set<String> columns, RowType rowType) {
        for (String name : columns) {
            if (rowType.getFieldIndex(name) < 0) {
                throw new ValidationException(
                        String.format(
                                "'read.columns' names '%s', which is no column of the table: %s",
                                name, rowType.getFieldNames()));
            }
        }
        for (RowType.RowField field : rowType.getFields()) {
            if (!columns.contains(field.getName()) && !field.getType().isNullable()) {
                throw new ValidationException(
                        String.format(
                                "'read.columns' leaves out '%s', which is NOT NULL",
                                field.getName()));
            }
        }
    }

    private static Map<String, Integer> dimensions(Map<String, String> given) {
        Map<String, Integer> dimensions = new HashMap<>();
        given.forEach(
                (name, text) -> {
                    try {
                        dimensions.put(name, Integer.valueOf(text));
                    } catch (NumberFormatException none) {
                        throw ArrowTypes.noLength(name, text);
                    }
                });
        return dimensions;
    }

    private static <N extends Number> N positive(ConfigOption<N> option, N value) {
        if (value.longValue() <= 0) {
            throw new ValidationException(
                    String.format("'%s' must be positive, not %s", option.key(), value));
        }
        return value;
    }

    private static long notNegative(ConfigOption<Long> option, long value) {
        if (value < 0) {
            throw new ValidationException(
                    String.format("'%s' must not be negative, but is %s", option.key(), value));
        }
        return value;
    }
}
