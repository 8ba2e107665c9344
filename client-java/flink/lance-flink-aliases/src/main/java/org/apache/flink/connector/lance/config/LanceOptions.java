package org.apache.flink.connector.lance.config;

import io.lancegateway.flink.Metric;

/** Values of options, by the names of other connectors. */
public final class LanceOptions {

    private LanceOptions() {}

    /** Types of indexes over vectors. */
    public enum IndexType {
        IVF_PQ("IVF_PQ"),
        /** A graph in each partition, over the codes of PQ. */
        IVF_HNSW("IVF_HNSW"),
        IVF_FLAT("IVF_FLAT");

        private final String value;

        IndexType(String value) {
            this.value = value;
        }

        public String getValue() {
            return value;
        }

        /**
         * The type of this name, in any case.
         *
         * @throws IllegalArgumentException if there is none
         */
        public static IndexType fromValue(String value) {
            for (IndexType type : values()) {
                if (type.value.equalsIgnoreCase(value)) {
                    return type;
                }
            }
            throw new IllegalArgumentException(
                    String.format("'%s' is no type: IVF_PQ, IVF_HNSW or IVF_FLAT", value));
        }
    }

    /** Another name of {@link Metric}. */
    public enum MetricType {
        L2("L2", Metric.L2),
        COSINE("Cosine", Metric.COSINE),
        DOT("Dot", Metric.DOT);

        private final String value;
        private final Metric metric;

        MetricType(String value, Metric metric) {
            this.value = value;
            this.metric = metric;
        }

        public String getValue() {
            return value;
        }

        /** Our own name of it. */
        public Metric metric() {
            return metric;
        }

        /**
         * The metric of this name, in any case.
         *
         * @throws IllegalArgumentException if there is none
         */
        public static MetricType fromValue(String value) {
            for (MetricType type : values()) {
                if (type.value.equalsIgnoreCase(value)) {
                    return type;
                }
            }
            throw new IllegalArgumentException(
                    String.format("'%s' is no metric: L2, Cosine or Dot", value));
        }
    }
}
