package io.lancegateway.flink;

/** How far two vectors are from each other. */
public enum Metric {
    /** The square of the Euclidean distance. */
    L2,
    /** 1 - cosine of the angle. */
    COSINE,
    /** 1 - dot product. */
    DOT,
    /** Bits that differ. For vectors of bytes, and the only one for them. */
    HAMMING;

    /**
     * The metric of this name, in any case.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static Metric of(String name) {
        for (Metric metric : values()) {
            if (metric.name().equalsIgnoreCase(name)) {
                return metric;
            }
        }
        throw new IllegalArgumentException(
                String.format("'%s' is no metric: L2, COSINE, DOT or HAMMING", name));
    }
}
