package io.lancegateway.flink.sink;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.Table;
import java.io.Serializable;
import java.util.Map;
import java.util.Set;
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
    private final boolean overwrite;
    private final long maxRowsPerBatch;
    private final long maxBytesPerBatch;
    private final long maxRowsPerFile;
    private final Set<String> largeStrings;
    private final Map<String, Integer> vectorDimensions;
    private final String storageVersion;

    /**
     * @param maxRowsPerBatch rows that are sent together at most; 0: batches are cut by bytes alone
     * @param memoryCap bytes that are buffered at most; not positive: no bound but the usual one
     * @param maxRowsPerFile 0: the gateway decides
     * @param largeStrings columns of strings that a new table keeps with wide offsets
     * @param vectorDimensions lengths of the vectors of a new table, by column; the first row tells
     *     the others
     * @param storageVersion of a new table; empty: the gateway decides
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
            Set<String> largeStrings,
            Map<String, Integer> vectorDimensions,
            String storageVersion) {
        ArrowTypes.check(rowType, storageVersion);
        ArrowTypes.checkLargeStrings(rowType, largeStrings);
        ArrowTypes.checkVectorDimensions(rowType, vectorDimensions);
        this.address = address;
        this.table = table.toByteArray();
        this.rowType = rowType;
        this.overwrite = overwrite;
        this.maxRowsPerBatch = maxRowsPerBatch > 0 ? maxRowsPerBatch : Long.MAX_VALUE;
        this.maxBytesPerBatch = memoryCap > 0 ? Math.min(memoryCap, TARGET_BYTES) : TARGET_BYTES;
        this.maxRowsPerFile = maxRowsPerFile;
        this.largeStrings = Set.copyOf(largeStrings);
        this.vectorDimensions = Map.copyOf(vectorDimensions);
        this.storageVersion = storageVersion;
    }

    /** The same, but the rows replace those of the table. */
    public SinkSpec overwriting() {
        return new SinkSpec(
                address,
                table(),
                rowType,
                true,
                maxRowsPerBatch,
                maxBytesPerBatch,
                maxRowsPerFile,
                largeStrings,
                vectorDimensions,
                storageVersion);
    }

    GatewayAddress address() {
        return address;
    }

    Table table() {
        try {
            return Table.parseFrom(table);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the sink in the job graph names no table", corrupt);
        }
    }

    RowType rowType() {
        return rowType;
    }

    boolean overwrite() {
        return overwrite;
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

    Set<String> largeStrings() {
        return largeStrings;
    }

    Map<String, Integer> vectorDimensions() {
        return vectorDimensions;
    }

    CreateOptions createOptions() {
        return CreateOptions.newBuilder().setDataStorageVersion(storageVersion).build();
    }
}
