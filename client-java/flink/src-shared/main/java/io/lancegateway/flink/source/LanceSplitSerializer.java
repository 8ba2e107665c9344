package io.lancegateway.flink.source;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.core.memory.DataOutputView;

/** Splits in checkpoints and on their way to readers. */
public final class LanceSplitSerializer implements SimpleVersionedSerializer<LanceSplit> {

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(LanceSplit split) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(64 + split.ticket().length);
        write(split, out);
        return out.getCopyOfBuffer();
    }

    @Override
    public LanceSplit deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("split", version, VERSION);
        return read(new DataInputDeserializer(serialized));
    }

    static void write(LanceSplit split, DataOutputView out) throws IOException {
        out.writeUTF(split.splitId());
        out.writeInt(split.ticket().length);
        out.write(split.ticket());
        out.writeLong(split.rows());
        out.writeLong(split.rowOffset());
    }

    static LanceSplit read(DataInputView in) throws IOException {
        String id = in.readUTF();
        byte[] ticket = new byte[in.readInt()];
        in.readFully(ticket);
        return new LanceSplit(id, ticket, in.readLong(), in.readLong());
    }
}
