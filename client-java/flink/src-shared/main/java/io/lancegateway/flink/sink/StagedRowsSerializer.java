package io.lancegateway.flink.sink;

import io.lancegateway.flink.util.Versions;
import java.io.IOException;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** Staged rows on their way from writers to the aggregator. */
public final class StagedRowsSerializer implements SimpleVersionedSerializer<StagedRows> {

    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(StagedRows rows) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(4096);
        writeBytes(out, rows.write());
        writeBytes(out, rows.schema());
        writeBytes(out, rows.staged());
        out.writeLong(rows.rows());
        return out.getCopyOfBuffer();
    }

    @Override
    public StagedRows deserialize(int version, byte[] serialized) throws IOException {
        Versions.check("staged write", version, VERSION);
        DataInputDeserializer in = new DataInputDeserializer(serialized);
        return new StagedRows(readBytes(in), readBytes(in), readBytes(in), in.readLong());
    }

    private static void writeBytes(DataOutputSerializer out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static byte[] readBytes(DataInputDeserializer in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }
}
