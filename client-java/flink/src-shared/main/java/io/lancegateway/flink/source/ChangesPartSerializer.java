package io.lancegateway.flink.source;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.core.memory.DataOutputView;

/** Parts of changes in checkpoints and on their way to readers. */
public final class ChangesPartSerializer implements SimpleVersionedSerializer<ChangesPart> {

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(ChangesPart part) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(64 + part.ticket().length);
        write(part, out);
        return out.getCopyOfBuffer();
    }

    @Override
    public ChangesPart deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("part of changes", version, VERSION);
        return read(new DataInputDeserializer(serialized));
    }

    static void write(ChangesPart part, DataOutputView out) throws IOException {
        out.writeInt(part.part());
        out.writeInt(part.ticket().length);
        out.write(part.ticket());
        out.writeLong(part.until());
        out.writeLong(part.after());
        out.writeBoolean(part.initial());
        out.writeLong(part.rowOffset());
    }

    static ChangesPart read(DataInputView in) throws IOException {
        int part = in.readInt();
        byte[] ticket = new byte[in.readInt()];
        in.readFully(ticket);
        return new ChangesPart(
                part, ticket, in.readLong(), in.readLong(), in.readBoolean(), in.readLong());
    }
}
