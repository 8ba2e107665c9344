package org.apache.flink.connector.lance;

import io.lancegateway.client.LanceGatewayException;
import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import javax.annotation.Nullable;
import org.apache.flink.connector.lance.config.LanceOptions.IndexType;
import org.apache.flink.connector.lance.config.LanceOptions.MetricType;
import org.apache.flink.table.api.ValidationException;

/** Another name of {@link io.lancegateway.flink.LanceIndexBuilder}. */
public class LanceIndexBuilder implements Closeable, Serializable {

    private static final long serialVersionUID = 1L;

    private static final int MAX_BITS = 16;

    private final io.lancegateway.flink.LanceIndexBuilder builder;
    private final IndexType indexType;
    private final String columnName;
    private final String datasetPath;

    private LanceIndexBuilder(Builder given) {
        this.builder = given.builder.build();
        this.indexType = given.indexType;
        this.columnName = given.columnName;
        this.datasetPath = given.datasetPath;
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Builds it, and waits until it is there. What goes wrong is in the result. */
    public IndexBuildResult buildIndex() throws IOException {
        long start = System.nanoTime();
        String error = null;
        try {
            builder.buildIndex();
        } catch (IOException | LanceGatewayException | ValidationException failed) {
            error = failed.getMessage();
        }
        long millis = (System.nanoTime() - start) / 1_000_000;
        return new IndexBuildResult(
                error == null, indexType, columnName, datasetPath, millis, error);
    }

    @Override
    public void close() {
        // Nothing is open between builds.
    }

    /** Sets what is built; dataset and column are needed. */
    public static class Builder {

        private final io.lancegateway.flink.LanceIndexBuilder.Builder builder =
                io.lancegateway.flink.LanceIndexBuilder.builder();

        @Nullable private String datasetPath;
        @Nullable private String columnName;
        private IndexType indexType = IndexType.IVF_PQ;

        public Builder datasetPath(String datasetPath) {
            this.datasetPath = datasetPath;
            builder.path(datasetPath);
            return this;
        }

        public Builder columnName(String columnName) {
            this.columnName = columnName;
            builder.column(columnName);
            return this;
        }

        public Builder indexType(IndexType indexType) {
            this.indexType = indexType;
            builder.type(indexType.getValue());
            return this;
        }

        /** Default: the one that the table declares, else L2. */
        public Builder metricType(MetricType metricType) {
            builder.option("metric", metricType.getValue());
            return this;
        }

        /** Default: from the number of rows. */
        public Builder numPartitions(int numPartitions) {
            return positive("num-partitions", numPartitions);
        }

        /** Null: from the dimension. */
        public Builder numSubVectors(@Nullable Integer numSubVectors) {
            return numSubVectors == null ? this : positive("num-sub-vectors", numSubVectors);
        }

        public Builder numBits(int numBits) {
            if (numBits > MAX_BITS) {
                throw new IllegalArgumentException(
                        "num-bits is " + numBits + "; it must be 1 to " + MAX_BITS);
            }
            return positive("num-bits", numBits);
        }

        public Builder maxLevel(int maxLevel) {
            return positive("max-level", maxLevel);
        }

        public Builder m(int m) {
            return positive("m", m);
        }

        public Builder efConstruction(int efConstruction) {
            return positive("ef-construction", efConstruction);
        }

        /** Whether an index of this name is replaced; else it is an error. */
        public Builder replace(boolean replace) {
            builder.option("replace", replace);
            return this;
        }

        private Builder positive(String option, int value) {
            if (value <= 0) {
                throw new IllegalArgumentException(
                        option + " is " + value + "; it must be 1 or more");
            }
            builder.option(option, value);
            return this;
        }

        public LanceIndexBuilder build() {
            if (datasetPath == null || datasetPath.isEmpty()) {
                throw new IllegalArgumentException("the path of the dataset is empty");
            }
            if (columnName == null || columnName.isEmpty()) {
                throw new IllegalArgumentException("the name of the column is empty");
            }
            return new LanceIndexBuilder(this);
        }
    }

    /** How a build ended. */
    public static class IndexBuildResult implements Serializable {

        private static final long serialVersionUID = 1L;

        private final boolean success;
        private final IndexType indexType;
        private final String columnName;
        private final String datasetPath;
        private final long durationMillis;
        @Nullable private final String errorMessage;

        public IndexBuildResult(
                boolean success,
                IndexType indexType,
                String columnName,
                String datasetPath,
                long durationMillis,
                @Nullable String errorMessage) {
            this.success = success;
            this.indexType = indexType;
            this.columnName = columnName;
            this.datasetPath = datasetPath;
            this.durationMillis = durationMillis;
            this.errorMessage = errorMessage;
        }

        public boolean isSuccess() {
            return success;
        }

        public IndexType getIndexType() {
            return indexType;
        }

        public String getColumnName() {
            return columnName;
        }

        public String getDatasetPath() {
            return datasetPath;
        }

        public long getDurationMillis() {
            return durationMillis;
        }

        /** Null if it went well. */
        @Nullable
        public String getErrorMessage() {
            return errorMessage;
        }

        @Override
        public String toString() {
            return String.format(
                    "IndexBuildResult{success=%s, indexType=%s, columnName='%s', datasetPath='%s',"
                            + " durationMillis=%d, errorMessage='%s'}",
                    success, indexType, columnName, datasetPath, durationMillis, errorMessage);
        }
    }
}
