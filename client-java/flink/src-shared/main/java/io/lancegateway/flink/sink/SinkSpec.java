package io.lancegateway.flink.sink;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.Table;
import java.io.Serializable;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.logical.RowType;

/** What is written, and where. */
public final class SinkSpec implements Serializable {

    private static final long serialVersionUID = 1L;

    /** Bytes of one message, if the options do not ask for less. */
    private static final long TARGET_BYTES = 2L << 20;

    private final GatewayAddress address;
    private final byte[] table;
    private final RowType rowType;
    private final Set<String> columns;
    private final boolean overwrite;
    private final long maxRowsPerBatch;
    private final long maxBytesPerBatch;
    private final long maxRowsPerFile;
    private final NewTable newTable;
    @Nullable private final byte[] index;

    /** The version whose rows are changed, told apart by their ids; null: rows are written. */
    @Nullable private final Long chosenIn;

    /**
     * @param maxRowsPerBatch rows that are sent together at most; 0: batches are cut by bytes alone
     * @param memoryCap bytes that are buffered at most; not positive: no bound but the usual one
     * @param maxRowsPerFile 0: the gateway decides
     * @param index what the table is to have once it has rows; null: none
     * @throws ValidationException if the rows, or these columns of them, cannot be kept so
     */
    public SinkSpec(
            GatewayAddress address,
            Table table,
            RowType rowType,
            boolean overwrite,
            long maxRowsPerBatch,
            long memoryCap,
            long maxRowsPerFile,
            NewTable newTable,
            @Nullable IndexBuild index) {
        this(
                address,
                table,
                rowType,
                Set.copyOf(rowType.getFieldNames()),
                overwrite,
                maxRowsPerBatch,
                memoryCap,
                maxRowsPerFile,
                newTable,
                index,
                null);
    }

    private SinkSpec(
            GatewayAddress address,
            Table table,
            RowType rowType,
            Set<String> columns,
            boolean overwrite,
            long maxRowsPerBatch,
            long memoryCap,
            long maxRowsPerFile,
            NewTable newTable,
            @Nullable IndexBuild index,
            @Nullable Long chosenIn) {
        ArrowTypes.check(rowType, newTable.storageVersion());
        ArrowTypes.checkLargeStrings(rowType, newTable.largeStrings());
        ArrowTypes.checkVectorDimensions(rowType, newTable.vectorDimensions());
        this.address = address;
        this.table = table.toByteArray();
        this.rowType = Keys.check(rowType, newTable.primaryKey());
        this.columns = columns;
        this.overwrite = overwrite;
        this.maxRowsPerBatch = maxRowsPerBatch > 0 ? maxRowsPerBatch : Long.MAX_VALUE;
        this.maxBytesPerBatch = memoryCap > 0 ? Math.min(memoryCap, TARGET_BYTES) : TARGET_BYTES;
        this.maxRowsPerFile = maxRowsPerFile;
        this.newTable = newTable;
        this.index = index == null ? null : index.toByteArray();
        this.chosenIn = chosenIn;
    }

    /** The same, but the rows replace those of the table. */
    public SinkSpec overwriting() {
        return new SinkSpec(
                address,
                table(),
                rowType,
                columns,
                true,
                maxRowsPerBatch,
                maxBytesPerBatch,
                maxRowsPerFile,
                newTable,
                index().orElse(null),
                chosenIn);
    }

    /** The same, but of rows that are there only these columns change. */
    public SinkSpec writingOnly(Set<String> columns) {
        return new SinkSpec(
                address,
                table(),
                rowType,
                Set.copyOf(columns),
                overwrite,
                maxRowsPerBatch,
                maxBytesPerBatch,
                maxRowsPerFile,
                newTable,
                index().orElse(null),
                chosenIn);
    }

    /**
     * Changes of rows that were chosen in a version.
     *
     * @param rowType what is set, and {@link WriteHandle#ROW_ID}
     */
    public SinkSpec changing(RowType rowType, long version) {
        return new SinkSpec(
                address,
                table(),
                rowType,
                Set.copyOf(rowType.getFieldNames()),
                false,
                maxRowsPerBatch,
                maxBytesPerBatch,
                maxRowsPerFile,
                NewTable.byDefault(),
                index().orElse(null),
                version);
    }

    /**
     * @param column of a primary key, which an UPDATE sets
     */
    public static void refuseToSet(String column) {
        throw new ValidationException(
                String.format(
                        "column '%s' is of the primary key, which UPDATE does not set: delete the"
                                + " row, and insert it with its new key",
                        column));
    }

    public GatewayAddress address() {
        return address;
    }

    public Table table() {
        try {
            return Table.parseFrom(table);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the sink in the job graph names no table", corrupt);
        }
    }

    /** The rows that come, with a key that is not null. */
    public RowType rowType() {
        return rowType;
    }

    /** Whether the rows replace those of the table. */
    public boolean overwrite() {
        return overwrite;
    }

    /** What tells rows apart; empty: nothing does. */
    public List<String> key() {
        return newTable.primaryKey();
    }

    /** The version whose rows are changed, if rows are told apart by their ids. */
    public Optional<Long> chosenIn() {
        return Optional.ofNullable(chosenIn);
    }

    /** Whether rows are changes, which replace and delete others of their key or id. */
    public boolean merges() {
        return chosenIn != null || !key().isEmpty() && !overwrite;
    }

    /** Whether a change sets this column. */
    boolean sets(String column) {
        return columns.contains(column) || key().contains(column);
    }

    long maxRowsPerBatch() {
        return maxRowsPerBatch;
    }

    long maxBytesPerBatch() {
        return maxBytesPerBatch;
    }

    long maxRowsPerFile() {
        return maxRowsPerFile;
    }

    NewTable newTable() {
        return newTable;
    }

    Optional<IndexBuild> index() {
        if (index == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(IndexBuild.parseFrom(index));
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the sink in the job graph names no index", corrupt);
        }
    }
}
