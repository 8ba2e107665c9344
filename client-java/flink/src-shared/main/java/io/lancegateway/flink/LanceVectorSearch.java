package io.lancegateway.flink;

import io.lancegateway.flink.search.Searcher;
import io.lancegateway.flink.util.GatewayAddress;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/**
 * Finds the nearest rows to vectors, for programs and for functions of their own. Each search sees
 * what is committed when it begins. For one thread; what is serialized is not open.
 *
 * <pre>{@code
 * try (LanceVectorSearch search =
 *         LanceVectorSearch.builder().path("vectors").column("embedding").build()) {
 *     for (RowData row : search.search(new float[] {0.1f, 0.2f}, 10)) {
 *         double distance = row.getDouble(row.getArity() - 1);
 *     }
 * }
 * }</pre>
 */
public final class LanceVectorSearch implements AutoCloseable, Serializable {

    private static final long serialVersionUID = 1L;

    private final String path;
    private final String column;
    @Nullable private final Metric metric;
    private final HashMap<String, String> options;
    private final GatewayAddress address;

    @Nullable private transient Searcher searcher;

    private LanceVectorSearch(Builder builder) {
        this.path = Objects.requireNonNull(builder.path, "path");
        this.column = Objects.requireNonNull(builder.column, "column");
        this.metric = builder.metric;
        this.options = new HashMap<>(builder.options);
        this.address = new GatewayAddress(builder.gatewayUri, builder.storageOptions);
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Asks the gateway for the table. The first search does it, if nobody did. */
    public void open() {
        if (searcher == null) {
            searcher = Searcher.nearest(address, path, column, metric, options);
        }
    }

    /** The columns of the rows that are found, with {@code _distance DOUBLE} behind them. */
    public RowType rowType() {
        open();
        return searcher.rowType();
    }

    /** The nearest rows, the nearest first. */
    public List<RowData> search(float[] query, int k) {
        open();
        return searcher.nearest(query, k);
    }

    /**
     * The nearest of the rows that a filter keeps, instead of that of the builder.
     *
     * @param filter a WHERE clause in Lance's dialect
     */
    public List<RowData> search(float[] query, int k, String filter) {
        open();
        return searcher.filtered(filter).nearest(query, k);
    }

    @Override
    public void close() {
        if (searcher != null) {
            searcher.close();
            searcher = null;
        }
    }

    /** Sets what is searched; {@link #path} and {@link #column} are needed. */
    public static final class Builder {

        @Nullable private String path;
        @Nullable private String column;
        @Nullable private Metric metric;
        private final Map<String, String> options = new HashMap<>();
        @Nullable private String gatewayUri;
        private Map<String, String> storageOptions = Map.of();

        private Builder() {}

        /** The table: {@code table}, {@code namespace.table}, or a URI. */
        public Builder path(String path) {
            this.path = path;
            return this;
        }

        /** The column of vectors. */
        public Builder column(String column) {
            this.column = column;
            return this;
        }

        /**
         * Default: the one that the table declares, else that of the index, else L2 (the cosine
         * among lists of vectors).
         */
        public Builder metric(@Nullable Metric metric) {
            this.metric = metric;
            return this;
        }

        /** Partitions of the index that are searched. Default: 20, and more to find k rows. */
        public Builder nprobes(int partitions) {
            return option("nprobes", partitions);
        }

        /** Candidates of an HNSW index. Default: 100, and more where more rows are wanted. */
        public Builder ef(int candidates) {
            return option("ef", candidates);
        }

        /** Ranks so many times the wanted rows by their own vectors. Default: no. */
        public Builder refineFactor(int factor) {
            return option("refine-factor", factor);
        }

        /** Rows to search in: a WHERE clause in Lance's dialect. */
        public Builder filter(String sql) {
            return option("filter", sql);
        }

        /** Columns of the result. Default: all. Their names have no commas. */
        public Builder columns(List<String> columns) {
            return option("columns", String.join(",", columns));
        }

        /** Searches this version. Default: the latest, at each search. */
        public Builder version(long version) {
            return option("version", version);
        }

        /**
         * Where the gateway is. Default: {@code LANCE_GATEWAY_URI} of the process, else a sidecar.
         */
        public Builder gatewayUri(@Nullable String gatewayUri) {
            this.gatewayUri = gatewayUri;
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

        private Builder option(String name, Object value) {
            options.put(name, String.valueOf(value));
            return this;
        }

        public LanceVectorSearch build() {
            return new LanceVectorSearch(this);
        }
    }
}
