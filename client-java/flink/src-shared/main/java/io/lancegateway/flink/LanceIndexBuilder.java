package io.lancegateway.flink;

import io.lancegateway.flink.index.Indexes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.IndexResult;
import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import javax.annotation.Nullable;

/**
 * Builds an index over a column, from a program.
 *
 * <pre>{@code
 * LanceIndexBuilder.builder().path("vectors").column("embedding").type("IVF_PQ")
 *         .option("metric", "cosine").build().buildIndex();
 * }</pre>
 */
public final class LanceIndexBuilder implements Serializable {

    private static final long serialVersionUID = 1L;

    private final GatewayAddress address;
    private final String path;
    private final String column;
    private final String type;
    private final TreeMap<String, String> options;

    private LanceIndexBuilder(Builder builder) {
        this.address = new GatewayAddress(builder.gatewayUri, builder.storageOptions);
        this.path = Objects.requireNonNull(builder.path, "path");
        this.column = Objects.requireNonNull(builder.column, "column");
        this.type = builder.type;
        this.options = new TreeMap<>(builder.options);
    }

    public static Builder builder() {
        return new Builder();
    }

    /**
     * Builds it, and waits until it is there.
     *
     * @throws IOException if the build failed; says why
     */
    public BuiltIndex buildIndex() throws IOException {
        try (Indexes indexes = new Indexes(address, path)) {
            String id = UUID.randomUUID().toString();
            return new BuiltIndex(indexes.create(id, column, type, options).getIndexResult());
        }
    }

    /** What was built. */
    public static final class BuiltIndex {

        private final IndexResult result;

        private BuiltIndex(IndexResult result) {
            this.result = result;
        }

        public String name() {
            return result.getName();
        }

        /** The version of the table that has it. */
        public long version() {
            return result.getVersion();
        }

        public long indexedRows() {
            return result.getNumIndexedRows();
        }

        /**
         * Whether there were too few rows to train it: searches read all rows until an optimization
         * finds enough.
         */
        public boolean isDeferred() {
            return result.getDeferred();
        }
    }

    /** Sets what is built; {@link #path} and {@link #column} are needed. */
    public static final class Builder {

        @Nullable private String path;
        @Nullable private String column;
        @Nullable private String gatewayUri;
        private Map<String, String> storageOptions = Map.of();
        private String type = "IVF_PQ";
        private final Map<String, String> options = new TreeMap<>();

        private Builder() {}

        /** The table: {@code table}, {@code namespace.table}, or a URI. */
        public Builder path(String path) {
            this.path = path;
            return this;
        }

        public Builder column(String column) {
            this.column = column;
            return this;
        }

        /** As {@code IVF_PQ}, {@code BTREE} or {@code INVERTED}. Default: IVF_PQ. */
        public Builder type(String type) {
            this.type = type;
            return this;
        }

        /** An option of the type, such as {@code num-partitions}. */
        public Builder option(String name, Object value) {
            options.put(name, value.toString());
            return this;
        }

        /** Where the gateway is. Default: {@code LANCE_GATEWAY_URI}, else a sidecar. */
        public Builder gatewayUri(@Nullable String gatewayUri) {
            this.gatewayUri = gatewayUri;
            return this;
        }

        /** How the store of the table is reached, where the operator of the gateway allows it. */
        public Builder storageOptions(Map<String, String> options) {
            this.storageOptions = Map.copyOf(options);
            return this;
        }

        public LanceIndexBuilder build() {
            return new LanceIndexBuilder(this);
        }
    }
}
