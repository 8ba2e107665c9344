package io.lancegateway.flink.sink;

import java.time.Duration;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;

/** Where {@link Checkpoints} looks. */
final class CheckpointsOfHarness {

    private CheckpointsOfHarness() {}

    static void set(AbstractStreamOperatorTestHarness<?> harness, boolean enabled) {
        if (enabled) {
            harness.getEnvironment()
                    .getJobConfiguration()
                    .set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
        }
    }
}
