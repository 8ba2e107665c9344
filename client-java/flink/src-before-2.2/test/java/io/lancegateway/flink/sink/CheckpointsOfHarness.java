package io.lancegateway.flink.sink;

import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;

/** Where {@link Checkpoints} looks. */
final class CheckpointsOfHarness {

    private CheckpointsOfHarness() {}

    static void enable(AbstractStreamOperatorTestHarness<?> harness) {
        harness.getStreamConfig().setCheckpointingEnabled(true);
        harness.getStreamConfig().serializeAllConfigs();
    }
}
