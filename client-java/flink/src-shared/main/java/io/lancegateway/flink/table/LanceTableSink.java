package io.lancegateway.flink.table;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.flink.sink.SinkSpec;
import io.lancegateway.flink.sink.TableSink;
import io.lancegateway.proto.v1.DeleteRowsRequest;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Filter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.RowLevelModificationScanContext;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsDeletePushDown;
import org.apache.flink.table.connector.sink.abilities.SupportsOverwrite;
import org.apache.flink.table.connector.sink.abilities.SupportsRowLevelDelete;
import org.apache.flink.table.connector.sink.abilities.SupportsRowLevelUpdate;
import org.apache.flink.table.connector.sink.abilities.SupportsTruncate;
import org.apache.flink.table.expressions.ResolvedExpression;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;

/** A Lance table as the target of INSERT, UPDATE, DELETE and TRUNCATE. */
final class LanceTableSink
        implements PortableTableSink,
                SupportsOverwrite,
                SupportsDeletePushDown,
                SupportsTruncate,
                SupportsRowLevelDelete,
                SupportsRowLevelUpdate {

    /** Of deleted rows too. */
    private static final ChangelogMode WHOLE_ROWS =
            ChangelogMode.newBuilder()
                    .addContainedKind(RowKind.INSERT)
                    .addContainedKind(RowKind.UPDATE_AFTER)
                    .addContainedKind(RowKind.DELETE)
                    .build();

    private SinkSpec spec;
    @Nullable private final Integer parallelism;

    /** Whether the table shows all rows of its latest version. */
    private final boolean showsAll;

    /** By which rows are told apart that are updated or deleted. */
    private final Column rowId;

    /** Which rows a DELETE is about; null: all. */
    @Nullable private Expression deleted;

    LanceTableSink(SinkSpec spec, @Nullable Integer parallelism, boolean showsAll, Column rowId) {
        this.spec = spec;
        this.parallelism = parallelism;
        this.showsAll = showsAll;
        this.rowId = rowId;
    }

    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
        if (spec.merges()) {
            // Where each -U has its +U behind it the planner leaves it out; the others delete.
            return hasRequiredValues() ? WHOLE_ROWS : ChangelogMode.upsert();
        }
        if (spec.overwrite() && !requested.containsOnly(RowKind.INSERT)) {
            throw new ValidationException(
                    "a table is overwritten with rows, not with changes of rows: leave out"
                            + " 'write.mode' = 'overwrite', or write a query that only inserts");
        }
        return ChangelogMode.insertOnly();
    }

    /** Whether a column beside the key is NOT NULL: Flink refuses a deleted key alone then. */
    private boolean hasRequiredValues() {
        return spec.rowType().getFields().stream()
                .anyMatch(
                        column ->
                                !column.getType().isNullable()
                                        && !spec.key().contains(column.getName()));
    }

    @Override
    public SinkRuntimeProvider provider(boolean bounded) {
        if (spec.overwrite() && !spec.key().isEmpty() && !bounded) {
            throw new ValidationException(
                    "a stream cannot overwrite a table with a primary key: what its later"
                            + " checkpoints append could repeat keys. Use batch mode, or leave out"
                            + " 'write.mode' = 'overwrite'");
        }
        return SinkV2Provider.of(new TableSink(spec, true), parallelism);
    }

    /** INSERT OVERWRITE; INSERT INTO leaves it to {@code write.mode}. */
    @Override
    public void applyOverwrite(boolean overwritten) {
        if (overwritten) {
            spec = spec.overwriting();
        }
    }

    @Override
    public void writeOnly(int[][] columns) {
        if (spec.chosenIn().isPresent()) {
            return; // The statement has said what comes.
        }
        Set<String> names = new HashSet<>();
        for (int[] path : columns) {
            String name = spec.rowType().getFieldNames().get(path[0]);
            if (path.length > 1) {
                throw new ValidationException(
                        String.format("a part of column '%s' cannot be written alone", name));
            }
            names.add(name);
        }
        spec = spec.writingOnly(names);
    }

    /** The gateway deletes what it can tell exactly, among all rows. */
    @Override
    public boolean applyDeleteFilters(List<ResolvedExpression> filters) {
        if (!showsAll) {
            return false;
        }
        FilterTranslator translator = new FilterTranslator(null);
        List<Predicate> predicates = new ArrayList<>();
        for (ResolvedExpression filter : filters) {
            Predicate predicate = translator.translate(filter);
            if (predicate == null || !predicate.exact()) {
                return false;
            }
            predicates.add(predicate);
        }
        deleted = predicates.isEmpty() ? null : Predicate.and(predicates).expression();
        return true;
    }

    @Override
    public Optional<Long> executeDeletion() {
        return Optional.of(delete(deleted));
    }

    @Override
    public void executeTruncation() {
        delete(null);
    }

    private long delete(@Nullable Expression which) {
        DeleteRowsRequest.Builder request = DeleteRowsRequest.newBuilder().setTable(spec.table());
        if (which != null) {
            request.setFilter(Filter.newBuilder().setExpression(which));
        }
        try (GatewayClient client = spec.address().connect()) {
            return client.deleteRows(request.build()).getNumRows();
        }
    }

    @Override
    public RowLevelDeleteInfo applyRowLevelDelete(
            @Nullable RowLevelModificationScanContext context) {
        List<Column> required = changing(List.of(), context);
        return new RowLevelDeleteInfo() {
            @Override
            public Optional<List<Column>> requiredColumns() {
                return Optional.of(required);
            }

            @Override
            public RowLevelDeleteMode getRowLevelDeleteMode() {
                return RowLevelDeleteMode.DELETED_ROWS;
            }
        };
    }

    @Override
    public RowLevelUpdateInfo applyRowLevelUpdate(
            List<Column> updated, @Nullable RowLevelModificationScanContext context) {
        for (Column column : updated) {
            if (spec.key().contains(column.getName())) {
                SinkSpec.refuseToSet(column.getName());
            }
        }
        List<Column> required = changing(updated, context);
        return new RowLevelUpdateInfo() {
            @Override
            public Optional<List<Column>> requiredColumns() {
                return Optional.of(required);
            }

            @Override
            public RowLevelUpdateMode getRowLevelUpdateMode() {
                return RowLevelUpdateMode.UPDATED_ROWS;
            }
        };
    }

    /**
     * Takes changes of rows that the scan of the statement finds.
     *
     * @param set what changes
     * @return the columns that come
     */
    private List<Column> changing(
            List<Column> set, @Nullable RowLevelModificationScanContext context) {
        List<Column> required = new ArrayList<>(set);
        List<RowType.RowField> fields = new ArrayList<>();
        for (Column column : set) {
            fields.add(field(column.getName(), column));
        }
        // Behind the others: Flink counts the columns that it checks without it.
        required.add(rowId);
        fields.add(field(RowMetadataColumn.ROW_ID.key(), rowId));
        long version = PinnedVersions.of(context).of(spec.address(), spec.table());
        spec = spec.changing(new RowType(fields), version);
        return required;
    }

    private static RowType.RowField field(String name, Column column) {
        return new RowType.RowField(name, column.getDataType().getLogicalType());
    }

    @Override
    public DynamicTableSink copy() {
        LanceTableSink copy = new LanceTableSink(spec, parallelism, showsAll, rowId);
        copy.deleted = deleted;
        return copy;
    }

    @Override
    public String asSummaryString() {
        return "Lance";
    }
}
