package org.apache.flink.connector.lance;

import io.lancegateway.client.LanceGatewayException;
import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import javax.annotation.Nullable;
import org.apache.flink.connector.lance.config.LanceOptions.MetricType;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.utils.ProjectedRowData;
import org.apache.flink.table.types.logical.RowType;

/** Another name of {@link io.lancegateway.flink.LanceVectorSearch}. */
public class LanceVectorSearch implements Closeable, Serializable {

    private static final long serialVersionUID = 1L;

    private final io.lancegateway.flink.LanceVectorSearch search;

    private LanceVectorSearch(io.lancegateway.flink.LanceVectorSearch search) {
        this.search = search;
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Asks the gateway for the table. */
    public void open() throws IOException {
        told(
                () -> {
                    search.open();
                    return null;
                });
    }

    /** The nearest rows, the nearest first. */
    public List<SearchResult> search(float[] queryVector, int k) throws IOException {
        return results(searchRowData(queryVector, k));
    }

    /** The nearest of the rows that a filter keeps; null or empty: of all. */
    public List<SearchResult> search(float[] queryVector, int k, @Nullable String filter)
            throws IOException {
        return filter == null || filter.isEmpty()
                ? search(queryVector, k)
                : results(told(() -> search.search(checked(queryVector), k, filter)));
    }

    /** The same rows as of {@link #search}, each with its distance as last field. */
    public List<RowData> searchRowData(float[] queryVector, int k) throws IOException {
        return told(() -> search.search(checked(queryVector), k));
    }

    private static float[] checked(float[] queryVector) {
        if (queryVector == null || queryVector.length == 0) {
            throw new IllegalArgumentException("the query vector is empty");
        }
        return queryVector;
    }

    private List<SearchResult> results(List<RowData> rows) throws IOException {
        int distance = told(search::rowType).getFieldCount() - 1;
        int[] columns = IntStream.range(0, distance).toArray();
        List<SearchResult> results = new ArrayList<>(rows.size());
        for (RowData row : rows) {
            RowData own = ProjectedRowData.from(columns).replaceRow(row);
            results.add(new SearchResult(own, row.getDouble(distance)));
        }
        return results;
    }

    /** The columns of the table. */
    public RowType getRowType() {
        RowType all = search.rowType();
        return new RowType(false, all.getFields().subList(0, all.getFieldCount() - 1));
    }

    @Override
    public void close() throws IOException {
        search.close();
    }

    /** What goes wrong, as callers expect it. */
    private static <T> T told(java.util.function.Supplier<T> call) throws IOException {
        try {
            return call.get();
        } catch (LanceGatewayException | ValidationException failed) {
            throw new IOException(failed.getMessage(), failed);
        }
    }

    /** Sets what is searched; dataset and column are needed. */
    public static class Builder {

        private final io.lancegateway.flink.LanceVectorSearch.Builder builder =
                io.lancegateway.flink.LanceVectorSearch.builder();

        @Nullable private String datasetPath;
        @Nullable private String columnName;

        public Builder datasetPath(String datasetPath) {
            this.datasetPath = datasetPath;
            builder.path(datasetPath);
            return this;
        }

        /** Where the gateway is. Default: {@code LANCE_GATEWAY_URI}, else a sidecar. */
        public Builder gatewayUri(@Nullable String gatewayUri) {
            builder.gatewayUri(gatewayUri);
            return this;
        }

        public Builder columnName(String columnName) {
            this.columnName = columnName;
            builder.column(columnName);
            return this;
        }

        /**
         * Default: the one that the table declares, else that of the index, else L2 (the cosine
         * among lists of vectors).
         */
        public Builder metricType(@Nullable MetricType metricType) {
            builder.metric(metricType == null ? null : metricType.metric());
            return this;
        }

        public Builder nprobes(int nprobes) {
            if (nprobes <= 0) {
                throw new IllegalArgumentException(
                        "nprobes is " + nprobes + "; it must be 1 or more");
            }
            builder.nprobes(nprobes);
            return this;
        }

        /** 0 or less: the default. */
        public Builder ef(int ef) {
            if (ef > 0) {
                builder.ef(ef);
            }
            return this;
        }

        /** Null, 0 or less: none. */
        public Builder refineFactor(@Nullable Integer refineFactor) {
            if (refineFactor != null && refineFactor > 0) {
                builder.refineFactor(refineFactor);
            }
            return this;
        }

        public LanceVectorSearch build() {
            if (datasetPath == null || datasetPath.isEmpty()) {
                throw new IllegalArgumentException("the path of the dataset is empty");
            }
            if (columnName == null || columnName.isEmpty()) {
                throw new IllegalArgumentException("the name of the column is empty");
            }
            return new LanceVectorSearch(builder.build());
        }
    }

    /** A row that was found. */
    public static class SearchResult implements Serializable {

        private static final long serialVersionUID = 1L;

        private final RowData rowData;
        private final double distance;

        public SearchResult(RowData rowData, double distance) {
            this.rowData = rowData;
            this.distance = distance;
        }

        public RowData getRowData() {
            return rowData;
        }

        public double getDistance() {
            return distance;
        }

        /** 1 / (1 + distance). */
        public double getSimilarity() {
            return 1.0 / (1.0 + distance);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof SearchResult
                    && Double.compare(((SearchResult) other).distance, distance) == 0
                    && rowData.equals(((SearchResult) other).rowData);
        }

        @Override
        public int hashCode() {
            return Objects.hash(rowData, distance);
        }

        @Override
        public String toString() {
            return "SearchResult{rowData=" + rowData + ", distance=" + distance + "}";
        }
    }
}
