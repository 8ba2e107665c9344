package io.lancegateway.flink.source;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** The state of the enumerator of changes in checkpoints. */
public final class ChangesStateSerializer implements SimpleVersionedSerializer<ChangesState> {

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(ChangesState state) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(256);
        out.writeUTF(state.consumer());
        out.writeInt(state.parts());
        out.writeInt(state.pending().size());
        for (ChangesPart part : state.pending()) {
            ChangesPartSerializer.write(part, out);
        }
        return out.getCopyOfBuffer();
    }

    @Override
    public ChangesState deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("change feed", version, VERSION);
        DataInputDeserializer in = new DataInputDeserializer(serialized);
        String consumer = in.readUTF();
        int parts = in.readInt();
        int count = in.readInt();
        List<ChangesPart> pending = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            pending.add(ChangesPartSerializer.read(in));
        }
        return new ChangesState(consumer, parts, pending);
    }
}
