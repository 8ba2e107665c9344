package io.lancegateway.flink.table;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.search.TableSearch;
import io.lancegateway.flink.source.ChangeMetadata;
import io.lancegateway.flink.source.ChangesSource;
import io.lancegateway.flink.source.ChangesSpec;
import io.lancegateway.flink.source.LookupSpec;
import io.lancegateway.flink.source.ReadVersion;
import io.lancegateway.flink.source.ScanSource;
import io.lancegateway.flink.source.ScanSpec;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.ScanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.RowLevelModificationScanContext;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsAggregatePushDown;
import org.apache.flink.table.connector.source.abilities.SupportsFilterPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsLimitPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.connector.source.abilities.SupportsRowLevelModificationScan;
import org.apache.flink.table.connector.source.lookup.cache.LookupCache;
import org.apache.flink.table.expressions.AggregateExpression;
import org.apache.flink.table.expressions.ResolvedExpression;
import org.apache.flink.table.functions.BuiltInFunctionDefinitions;
import org.apache.flink.table.functions.FunctionDefinition;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;

/** A Lance table as it is when the job starts. */
final class LanceTableSource
        implements PortableTableSource,
                LookupTableSource,
                SupportsProjectionPushDown,
                SupportsFilterPushDown,
                SupportsLimitPushDown,
                SupportsAggregatePushDown,
                SupportsReadingMetadata,
                SupportsRowLevelModificationScan {

    private final GatewayAddress address;

    /** From the options alone, but for the version that a row-level statement reads. */
    private ScanRequest options;

    /** All columns as declared. */
    private final RowType declared;

    /** Columns that are read, if not all are. */
    @Nullable private final Set<String> readColumns;

    @Nullable private final Integer parallelism;

    /** Of lookup joins. */
    @Nullable private final LookupCache cache;

    /** What the table says of searches. */
    private final VectorOptions searches;

    private RowType produced;
    private List<List<String>> paths;

    /** Keys of what is read of rows beside their columns, which comes behind these. */
    private List<String> metadata = List.of();

    @Nullable private Expression filter;
    @Nullable private Long limit;
    private boolean counting;

    LanceTableSource(
            GatewayAddress address,
            ScanRequest options,
            RowType declared,
            @Nullable Set<String> readColumns,
            @Nullable Integer parallelism,
            @Nullable LookupCache cache,
            VectorOptions searches) {
        this.address = address;
        this.options = options;
        this.declared = declared;
        this.readColumns = readColumns;
        this.parallelism = parallelism;
        this.cache = cache;
        this.searches = searches;
        this.produced = declared;
        this.paths = new ArrayList<>();
        for (String name : declared.getFieldNames()) {
            paths.add(path(List.of(name)));
        }
    }

    private LanceTableSource(LanceTableSource other) {
        this(
                other.address,
                other.options,
                other.declared,
                other.readColumns,
                other.parallelism,
                other.cache,
                other.searches);
        this.produced = other.produced;
        this.paths = other.paths;
        this.metadata = other.metadata;
        this.filter = other.filter;
        this.limit = other.limit;
        this.counting = other.counting;
    }

    /** The way to a column, or an empty one if the options leave the column out. */
    private List<String> path(List<String> names) {
        return readColumns == null || readColumns.contains(names.get(0)) ? names : List.of();
    }

    @Override
    public ChangelogMode getChangelogMode() {
        return ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        ScanRequest.Builder request = options.toBuilder();
        RowMetadataColumn.ask(metadata, request);
        if (filter != null) {
            request.setFilter(Filter.newBuilder().setExpression(filter));
        }
        if (limit != null) {
            request.setLimit(limit);
        }
        ScanSpec spec =
                counting
                        ? ScanSpec.count(request.build(), produced)
                        : ScanSpec.rows(request.build(), produced, paths, metadata);
        return SourceProvider.of(new ScanSource(address, spec), parallelism);
    }

    /** The changes of the table instead of its rows. */
    ScanRuntimeProvider changes(ChangeFeed feed, List<ChangeMetadata> metadata) {
        ScanSpec rows = ScanSpec.rows(options, produced, paths);
        return SourceProvider.of(
                new ChangesSource(address, new ChangesSpec(rows, metadata, feed)), parallelism);
    }

    @Override
    public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
        if (options.hasLimit()) {
            throw new ValidationException(
                    "'read.limit' has no meaning in a lookup join: leave it out");
        }
        List<List<String>> keys = new ArrayList<>();
        List<RowType.RowField> fields = new ArrayList<>();
        for (int[] key : context.getKeys()) {
            if (key[0] >= paths.size()) {
                throw new ValidationException(
                        "a lookup join compares columns, not '" + metadata.get(0) + "'");
            }
            List<String> path = new ArrayList<>(paths.get(key[0]));
            LogicalType type = produced.getTypeAt(key[0]);
            if (path.isEmpty()) {
                throw new ValidationException(
                        String.format(
                                "a lookup join compares column '%s', which 'read.columns' leaves"
                                        + " out",
                                produced.getFieldNames().get(key[0])));
            }
            for (int i = 1; i < key.length; i++) {
                RowType row = (RowType) type;
                path.add(row.getFieldNames().get(key[i]));
                type = row.getTypeAt(key[i]);
            }
            keys.add(path);
            fields.add(new RowType.RowField(String.join(".", path), type));
        }
        ScanRequest.Builder request = options.toBuilder();
        RowMetadataColumn.ask(metadata, request);
        if (filter != null) {
            request.setFilter(Filter.newBuilder().setExpression(filter));
        }
        ScanSpec rows = ScanSpec.rows(request.build(), produced, paths, metadata);
        return LookupProvider.of(
                new LookupSpec(address, rows, keys, new RowType(fields), cache != null), cache);
    }

    /** Of VECTOR_SEARCH, where Flink has it: see {@link PortableTableSource}. */
    public TableSearch vectorSearch(int[] column, Map<String, String> config) {
        if (options.hasLimit()) {
            throw new ValidationException(
                    "'read.limit' has no meaning in a search: it has a k of its own");
        }
        if (!metadata.isEmpty()) {
            throw new ValidationException("VECTOR_SEARCH gives columns, not " + metadata);
        }
        List<String> path = paths.get(column[0]);
        String name = produced.getFieldNames().get(column[0]);
        if (path.isEmpty()) {
            throw new ValidationException(
                    String.format(
                            "VECTOR_SEARCH is about column '%s', which 'read.columns' leaves out",
                            name));
        }
        ScanRequest scan = ScanSpec.rows(options, produced, paths).request();
        return TableSearch.of(
                address,
                scan,
                produced,
                paths,
                path,
                (ArrayType) produced.getTypeAt(column[0]),
                searches.of(name),
                config);
    }

    @Override
    public boolean supportsNestedProjection() {
        return true;
    }

    @Override
    public void applyProjection(int[][] projectedFields, DataType producedDataType) {
        RowType type = (RowType) producedDataType.getLogicalType();
        // Behind them may be metadata, which is not of the table.
        produced =
                new RowType(type.isNullable(), type.getFields().subList(0, projectedFields.length));
        paths = new ArrayList<>();
        for (int[] indices : projectedFields) {
            paths.add(path(names(indices)));
        }
    }

    @Override
    public Map<String, DataType> listReadableMetadata() {
        return RowMetadataColumn.all();
    }

    @Override
    public void applyReadableMetadata(List<String> keys, DataType producedDataType) {
        metadata = List.copyOf(keys);
        produced = (RowType) producedDataType.getLogicalType();
    }

    /** All scans of the statement read one version of this table, and its sink knows which. */
    @Override
    public RowLevelModificationScanContext applyRowLevelModificationScan(
            RowLevelModificationType type, @Nullable RowLevelModificationScanContext previous) {
        PinnedVersions versions = PinnedVersions.of(previous);
        options =
                options.toBuilder()
                        .setVersion(ReadVersion.version(versions.pin(address, options)))
                        .build();
        return versions;
    }

    private List<String> names(int[] indices) {
        List<String> names = new ArrayList<>();
        LogicalType type = declared;
        for (int index : indices) {
            RowType row = (RowType) type;
            names.add(row.getFieldNames().get(index));
            type = row.getTypeAt(index);
        }
        return names;
    }

    /**
     * The gateway takes what it can decide exactly, or can decide too generously; the latter Flink
     * checks again. With a static filter or limit, which come before WHERE, it takes nothing.
     */
    @Override
    public Result applyFilters(List<ResolvedExpression> filters) {
        if (options.hasFilter() || options.hasLimit()) {
            return Result.of(List.of(), filters);
        }
        FilterTranslator translator = new FilterTranslator(readColumns);
        List<ResolvedExpression> accepted = new ArrayList<>();
        List<ResolvedExpression> remaining = new ArrayList<>();
        List<Predicate> predicates = new ArrayList<>();
        for (ResolvedExpression expression : filters) {
            Predicate predicate = translator.translate(expression);
            if (predicate != null) {
                predicates.add(predicate);
                accepted.add(expression);
            }
            if (predicate == null || !predicate.exact()) {
                remaining.add(expression);
            }
        }
        filter = predicates.isEmpty() ? null : Predicate.and(predicates).expression();
        return Result.of(accepted, remaining);
    }

    @Override
    public void applyLimit(long rows) {
        limit = options.hasLimit() ? Math.min(options.getLimit(), rows) : rows;
    }

    /** COUNT(*) over everything that is read, which the gateway counts without reading. */
    @Override
    public boolean applyAggregates(
            List<int[]> groupingSets,
            List<AggregateExpression> aggregates,
            DataType producedDataType) {
        boolean bareCount =
                groupingSets.size() == 1
                        && groupingSets.get(0).length == 0
                        && aggregates.size() == 1
                        && isCountOfRows(aggregates.get(0));
        RowType result = (RowType) producedDataType.getLogicalType();
        if (!bareCount
                || limit != null
                || options.hasLimit()
                || result.getFieldCount() != 1
                || !result.getTypeAt(0).is(LogicalTypeRoot.BIGINT)) {
            return false;
        }
        counting = true;
        produced = result;
        return true;
    }

    private static boolean isCountOfRows(AggregateExpression aggregate) {
        FunctionDefinition function = aggregate.getFunctionDefinition();
        boolean counts =
                function == BuiltInFunctionDefinitions.COUNT
                        || function.getClass().getSimpleName().equals("Count1AggFunction");
        return counts
                && aggregate.getArgs().isEmpty()
                && !aggregate.isDistinct()
                && !aggregate.isApproximate()
                && !aggregate.getFilterExpression().isPresent();
    }

    @Override
    public LanceTableSource copy() {
        return new LanceTableSource(this);
    }

    @Override
    public String asSummaryString() {
        return "Lance";
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof LanceTableSource)) {
            return false;
        }
        LanceTableSource that = (LanceTableSource) other;
        return address.equals(that.address)
                && options.equals(that.options)
                && declared.equals(that.declared)
                && Objects.equals(readColumns, that.readColumns)
                && Objects.equals(parallelism, that.parallelism)
                && Objects.equals(cache, that.cache)
                && searches.equals(that.searches)
                && produced.equals(that.produced)
                && paths.equals(that.paths)
                && metadata.equals(that.metadata)
                && Objects.equals(filter, that.filter)
                && Objects.equals(limit, that.limit)
                && counting == that.counting;
    }

    @Override
    public int hashCode() {
        return Objects.hash(address, options, produced, metadata, filter, limit, counting);
    }
}
