package io.lancegateway.flink.sink;

import org.apache.flink.streaming.runtime.tasks.StreamTask;

/** What this version of Flink tells a task about the checkpoints of its job. */
final class Checkpoints {

    private Checkpoints() {}

    /** Whether the job takes any by itself. */
    static boolean enabled(StreamTask<?, ?> task) {
        return task.getConfiguration().isCheckpointingEnabled();
    }
}
