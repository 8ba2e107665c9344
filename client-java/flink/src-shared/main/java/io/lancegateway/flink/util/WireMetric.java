package io.lancegateway.flink.util;

import io.lancegateway.flink.Metric;
import org.apache.flink.table.api.ValidationException;

/** Metrics of the gateway's messages. */
public final class WireMetric {

    private WireMetric() {}

    public static io.lancegateway.proto.v1.Metric of(Metric metric) {
        return io.lancegateway.proto.v1.Metric.valueOf("METRIC_" + metric.name());
    }

    /**
     * The metric of this name.
     *
     * @param option that gives it
     */
    public static Metric parse(String option, String name) {
        try {
            return Metric.of(name);
        } catch (IllegalArgumentException none) {
            throw new ValidationException(
                    String.format("'%s': %s", option, none.getMessage()), none);
        }
    }
}
