package io.lancegateway.flink.source;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** The enumerator's state in checkpoints. */
public final class ScanStateSerializer implements SimpleVersionedSerializer<ScanState> {

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(ScanState state) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(256);
        out.writeBoolean(state.planned());
        out.writeInt(state.pending().size());
        for (LanceSplit split : state.pending()) {
            LanceSplitSerializer.write(split, out);
        }
        return out.getCopyOfBuffer();
    }

    @Override
    public ScanState deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("scan", version, VERSION);
        DataInputDeserializer in = new DataInputDeserializer(serialized);
        boolean planned = in.readBoolean();
        int count = in.readInt();
        List<LanceSplit> pending = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            pending.add(LanceSplitSerializer.read(in));
        }
        return new ScanState(planned, pending);
    }
}
