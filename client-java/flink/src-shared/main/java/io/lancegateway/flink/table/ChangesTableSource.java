package io.lancegateway.flink.table;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.search.TableSearch;
import io.lancegateway.flink.source.ChangeMetadata;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.types.DataType;

/**
 * The changes of a Lance table. Lookups and searches are those of the table itself. Changes have no
 * filter, limit or count in the gateway: those stay in Flink.
 */
final class ChangesTableSource
        implements PortableTableSource,
                LookupTableSource,
                SupportsProjectionPushDown,
                SupportsReadingMetadata {

    /** Gets the columns of the table, without metadata. */
    private final LanceTableSource table;

    private final ChangeFeed feed;
    private List<ChangeMetadata> metadata = List.of();

    ChangesTableSource(LanceTableSource table, ChangeFeed feed) {
        this.table = table;
        this.feed = feed;
    }

    @Override
    public ChangelogMode getChangelogMode() {
        return feed.changelog() ? ChangelogMode.all() : ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        return table.changes(feed, metadata);
    }

    @Override
    public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
        refuseMetadata("a lookup join");
        return table.getLookupRuntimeProvider(context);
    }

    /** Of VECTOR_SEARCH, where Flink has it: see {@link PortableTableSource}. */
    public TableSearch vectorSearch(int[] column, Map<String, String> config) {
        refuseMetadata("a search");
        return table.vectorSearch(column, config);
    }

    private void refuseMetadata(String where) {
        if (!metadata.isEmpty()) {
            throw new ValidationException(
                    String.format(
                            "the metadata columns 'version' and 'timestamp' are of changes, and %s"
                                    + " finds rows: leave them out",
                            where));
        }
    }

    @Override
    public boolean supportsNestedProjection() {
        return true;
    }

    @Override
    public void applyProjection(int[][] projectedFields, DataType producedDataType) {
        // Metadata columns come behind.
        table.applyProjection(projectedFields, producedDataType);
    }

    @Override
    public Map<String, DataType> listReadableMetadata() {
        Map<String, DataType> readable = new LinkedHashMap<>();
        for (ChangeMetadata column : ChangeMetadata.values()) {
            readable.put(column.key(), column.type());
        }
        return readable;
    }

    @Override
    public void applyReadableMetadata(List<String> keys, DataType producedDataType) {
        metadata = keys.stream().map(ChangeMetadata::of).collect(Collectors.toList());
    }

    @Override
    public DynamicTableSource copy() {
        ChangesTableSource copy = new ChangesTableSource(table.copy(), feed);
        copy.metadata = metadata;
        return copy;
    }

    @Override
    public String asSummaryString() {
        return "Lance changes";
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ChangesTableSource)) {
            return false;
        }
        ChangesTableSource that = (ChangesTableSource) other;
        return table.equals(that.table) && feed.equals(that.feed) && metadata.equals(that.metadata);
    }

    @Override
    public int hashCode() {
        return Objects.hash(table, feed, metadata);
    }
}
