package io.lancegateway.flink.sink;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/**
 * What the aggregator keeps of a run of a job. A run begins at the first start and outlives
 * restarts.
 */
final class RunState {

    private static final int VERSION = 1;

    private final String runId;
    private final boolean committed;

    RunState(String runId, boolean committed) {
        this.runId = runId;
        this.committed = committed;
    }

    /** Names the run: an overwriting run replaces the table's rows once. */
    String runId() {
        return runId;
    }

    /** Whether the run has handed over a committable. */
    boolean committed() {
        return committed;
    }

    RunState withCommit() {
        return committed ? this : new RunState(runId, true);
    }

    byte[] serialize() throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(64);
        out.writeInt(VERSION);
        out.writeUTF(runId);
        out.writeBoolean(committed);
        return out.getCopyOfBuffer();
    }

    static RunState deserialize(byte[] serialized) throws IOException {
        DataInputDeserializer in = new DataInputDeserializer(serialized);
        Versions.check("run", in.readInt(), VERSION);
        return new RunState(in.readUTF(), in.readBoolean());
    }
}
