package io.lancegateway.flink.sink;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** Committables in checkpoints. */
public final class CommittableSerializer implements SimpleVersionedSerializer<Committable> {

    /** "LGFC": so that state of another sink under our uid is recognised. */
    private static final int MAGIC = 0x4c474643;

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(Committable committable) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(committable.sealed().length + 24);
        out.writeInt(MAGIC);
        out.writeLong(committable.rows());
        out.writeLong(committable.sizeInBytes());
        out.writeInt(committable.sealed().length);
        out.write(committable.sealed());
        return out.getCopyOfBuffer();
    }

    @Override
    public Committable deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("committable", version, VERSION);
        DataInputDeserializer in = new DataInputDeserializer(serialized);
        if (serialized.length < Integer.BYTES || in.readInt() != MAGIC) {
            throw new IOException(
                    "the state holds no committable of this sink: the uid of the sink belonged to"
                            + " another one");
        }
        long rows = in.readLong();
        long sizeInBytes = in.readLong();
        byte[] sealed = new byte[in.readInt()];
        in.readFully(sealed);
        return new Committable(sealed, rows, sizeInBytes);
    }
}
