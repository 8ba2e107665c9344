package io.lancegateway.flink.sink;

import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;

/** Where {@link Checkpoints} looks. */
final class CheckpointsOfHarness {

    private CheckpointsOfHarness() {}

    static void set(AbstractStreamOperatorTestHarness<?> harness, boolean enabled) {
        harness.getStreamConfig().setCheckpointingEnabled(enabled);
        harness.getStreamConfig().serializeAllConfigs();
    }
}
