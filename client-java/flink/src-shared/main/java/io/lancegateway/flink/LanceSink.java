package io.lancegateway.flink;

import io.lancegateway.flink.sink.NewTable;
import io.lancegateway.flink.sink.SinkSpec;
import io.lancegateway.flink.sink.TableSink;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.TablePath;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/**
 * Writes rows into a Lance table through a gateway, each once. The table is created by the first
 * row if it is absent. Rows become visible at checkpoints; a job without them commits when it ends,
 * or is stopped with a savepoint.
 *
 * <pre>{@code
 * stream.sinkTo(LanceSink.builder().path("vectors").rowType(rowType).build());
 * }</pre>
 */
public final class LanceSink {

    private LanceSink() {}

    public static Builder builder() {
        return new Builder();
    }

    /** Sets what is written; {@link #path} and {@link #rowType} are needed. */
    public static final class Builder {

        @Nullable private String path;
        @Nullable private String gatewayUri;
        private Map<String, String> storageOptions = Map.of();
        @Nullable private RowType rowType;
        private List<String> primaryKey = List.of();
        private WriteMode writeMode = WriteMode.APPEND;
        private long batchSize;
        private long memoryCapBytes;
        private long maxRowsPerFile;
        private Set<String> largeStringColumns = Set.of();
        private Map<String, Integer> vectorDimensions = Map.of();
        private String dataStorageVersion = "";

        private Builder() {}

        /** The table: {@code table}, {@code namespace.table}, or a URI. */
        public Builder path(String path) {
            this.path = path;
            return this;
        }

        /**
         * Where the gateway is. Default: {@code LANCE_GATEWAY_URI} of the TaskManager, else a
         * sidecar.
         */
        public Builder gatewayUri(@Nullable String gatewayUri) {
            this.gatewayUri = gatewayUri;
            return this;
        }

        /** The rows that come. Their fields are columns of the table, by name. */
        public Builder rowType(RowType rowType) {
            this.rowType = rowType;
            return this;
        }

        /**
         * The columns that tell rows apart. With them, rows are changes by their kind: +I and +U
         * replace the row of their key, or add it; -D and -U delete it, of a -U with its +U behind
         * it the latter counts. Without them, the table takes +I alone. Columns of the table that
         * are no fields of the rows stay as they are.
         */
        public Builder primaryKey(List<String> columns) {
            this.primaryKey = List.copyOf(columns);
            return this;
        }

        public Builder writeMode(WriteMode mode) {
            this.writeMode = mode;
            return this;
        }

        /** Most rows that are sent together. Default: batches are cut by bytes alone. */
        public Builder batchSize(int rows) {
            this.batchSize = rows;
            return this;
        }

        /** Most bytes that wait in a writer, if less than the usual 2 MiB. */
        public Builder memoryCapBytes(long bytes) {
            this.memoryCapBytes = bytes;
            return this;
        }

        /** Rows of one data file. Default: the gateway decides. */
        public Builder maxRowsPerFile(long rows) {
            this.maxRowsPerFile = rows;
            return this;
        }

        /**
         * How the store of the table is reached, by options such as {@code s3-access-key}, where
         * the operator of the gateway allows it. Default: as the gateway does.
         */
        public Builder storageOptions(Map<String, String> options) {
            this.storageOptions = Map.copyOf(options);
            return this;
        }

        /** Columns of strings that a new table keeps with wide offsets. */
        public Builder largeStringColumns(Set<String> columns) {
            this.largeStringColumns = Set.copyOf(columns);
            return this;
        }

        /** Lengths of the vectors of a new table, by column. Default: as in the first row. */
        public Builder vectorDimensions(Map<String, Integer> lengths) {
            this.vectorDimensions = Map.copyOf(lengths);
            return this;
        }

        /** Lance's file format of a new table. Default: the gateway decides. */
        public Builder dataStorageVersion(String version) {
            this.dataStorageVersion = version;
            return this;
        }

        public Sink<RowData> build() {
            Objects.requireNonNull(path, "path");
            Objects.requireNonNull(rowType, "rowType");
            if (!primaryKey.isEmpty() && writeMode == WriteMode.OVERWRITE) {
                throw new ValidationException(
                        "rows with a primary key change a table, and cannot overwrite it: leave out"
                                + " primaryKey or WriteMode.OVERWRITE");
            }
            return new TableSink(
                    new SinkSpec(
                            new GatewayAddress(gatewayUri, storageOptions),
                            TablePath.parse(path),
                            rowType,
                            writeMode == WriteMode.OVERWRITE,
                            batchSize,
                            memoryCapBytes,
                            maxRowsPerFile,
                            new NewTable(
                                    largeStringColumns,
                                    vectorDimensions,
                                    dataStorageVersion,
                                    Map.of(),
                                    primaryKey),
                            null));
        }
    }
}
