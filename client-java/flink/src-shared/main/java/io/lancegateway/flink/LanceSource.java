package io.lancegateway.flink;

import io.lancegateway.flink.source.ChangeMetadata;
import io.lancegateway.flink.source.ChangesPart;
import io.lancegateway.flink.source.ChangesSource;
import io.lancegateway.flink.source.ChangesSpec;
import io.lancegateway.flink.source.ChangesState;
import io.lancegateway.flink.source.LanceSplit;
import io.lancegateway.flink.source.ReadVersion;
import io.lancegateway.flink.source.ScanSource;
import io.lancegateway.flink.source.ScanSpec;
import io.lancegateway.flink.source.ScanState;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.TablePath;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.VersionSelector;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import javax.annotation.Nullable;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/**
 * Reads a Lance table through a gateway, as it is when the job starts, or follows its changes.
 *
 * <pre>{@code
 * Source<RowData, ?, ?> source =
 *         LanceSource.builder().path("vectors").rowType(rowType).filter("id < 1000").build();
 * env.fromSource(source, WatermarkStrategy.noWatermarks(), "vectors");
 * }</pre>
 */
public final class LanceSource {

    private LanceSource() {}

    public static Builder builder() {
        return new Builder();
    }

    /** Sets what is read; {@link #path} and {@link #rowType} are needed. */
    public static final class Builder {

        @Nullable private String path;
        @Nullable private String gatewayUri;
        private Map<String, String> storageOptions = Map.of();
        @Nullable private RowType rowType;
        @Nullable private List<String> columns;
        @Nullable private String filter;
        @Nullable private Long limit;
        @Nullable private VersionSelector version;
        private int batchSize;

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

        /** The rows that come out. Their fields are columns of the table, by name. */
        public Builder rowType(RowType rowType) {
            this.rowType = rowType;
            return this;
        }

        /** Of the fields of the row type those that are read; the others are null. Default: all. */
        public Builder columns(List<String> columns) {
            this.columns = List.copyOf(columns);
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

        /** Rows to keep: a WHERE clause in Lance's dialect. */
        public Builder filter(@Nullable String sql) {
            this.filter = sql;
            return this;
        }

        /** At most this many rows, over all readers together. */
        public Builder limit(long rows) {
            this.limit = rows;
            return this;
        }

        /** Reads this version. Default: the latest. */
        public Builder version(long version) {
            this.version = ReadVersion.version(version);
            return this;
        }

        /** Reads the newest version that is not younger than this. */
        public Builder asOf(Instant time) {
            this.version = ReadVersion.asOf(time);
            return this;
        }

        /** Most rows of one batch. Default: batches are cut by bytes alone. */
        public Builder batchSize(int rows) {
            this.batchSize = rows;
            return this;
        }

        public Source<RowData, LanceSplit, ScanState> build() {
            ScanRequest.Builder request = request();
            if (filter != null) {
                request.setFilter(Filter.newBuilder().setSql(filter));
            }
            if (limit != null) {
                request.setLimit(limit);
            }
            if (version != null) {
                request.setVersion(version);
            }
            return new ScanSource(address(), rows(request));
        }

        /**
         * Follows the changes of the table instead. The kind of each {@link RowData} says what it
         * is.
         *
         * @param metadata columns that come behind those of the row type: {@code version} BIGINT,
         *     {@code timestamp} TIMESTAMP_LTZ(6)
         */
        public Source<RowData, ChangesPart, ChangesState> changes(
                ChangeFeed feed, String... metadata) {
            if (filter != null || limit != null || version != null) {
                throw new IllegalStateException(
                        "changes are those of all rows: leave filter, limit and version out");
            }
            List<ChangeMetadata> behind =
                    Arrays.stream(metadata).map(ChangeMetadata::of).collect(Collectors.toList());
            return new ChangesSource(address(), new ChangesSpec(rows(request()), behind, feed));
        }

        private GatewayAddress address() {
            return new GatewayAddress(gatewayUri, storageOptions);
        }

        private ScanRequest.Builder request() {
            Objects.requireNonNull(path, "path");
            ScanRequest.Builder request = ScanRequest.newBuilder().setTable(TablePath.parse(path));
            if (batchSize > 0) {
                request.setBatch(BatchSize.newBuilder().setRows(batchSize));
            }
            return request;
        }

        private ScanSpec rows(ScanRequest.Builder request) {
            Objects.requireNonNull(rowType, "rowType");
            List<List<String>> paths = new ArrayList<>();
            for (String name : rowType.getFieldNames()) {
                boolean read = columns == null || columns.contains(name);
                paths.add(read ? List.of(name) : List.of());
            }
            return ScanSpec.rows(request.build(), rowType, paths);
        }
    }
}
