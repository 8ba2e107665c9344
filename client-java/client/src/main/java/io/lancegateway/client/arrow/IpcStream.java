package io.lancegateway.client.arrow;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.flatbuf.Message;

/** An Arrow IPC stream that is in memory as a whole, as answers of single calls hold their rows. */
public final class IpcStream {

    private static final int CONTINUATION = -1;

    private final ArrowSchema schema;
    private final List<ArrowBatch> batches;

    private IpcStream(ArrowSchema schema, List<ArrowBatch> batches) {
        this.schema = schema;
        this.batches = List.copyOf(batches);
    }

    /**
     * Reads a stream. Its batches have copies of the bytes.
     *
     * @throws ArrowFormatException if it is none, ends early, or has a type that this client cannot
     *     hold
     */
    public static IpcStream read(ByteBuffer stream) {
        ByteBuffer in = stream.slice().order(ByteOrder.LITTLE_ENDIAN);
        BatchDecoder decoder = new BatchDecoder();
        List<ArrowBatch> batches = new ArrayList<>();
        try {
            int size;
            while ((size = headerSize(in)) > 0) {
                ByteBuffer header = in.slice();
                header.limit(size);
                in.position(in.position() + size);
                byte[] body = new byte[bodySize(header.slice(), in.remaining())];
                in.get(body);
                ArrowBatch batch = decoder.decode(header.slice(), body);
                if (batch != null) {
                    batches.add(batch);
                }
            }
        } catch (IndexOutOfBoundsException
                | IllegalArgumentException
                | BufferUnderflowException e) {
            throw new ArrowFormatException("the bytes are no Arrow stream", e);
        }
        if (decoder.schema() == null) {
            throw new ArrowFormatException("an Arrow stream has no schema");
        }
        return new IpcStream(decoder.schema(), batches);
    }

    /** Of the next message; 0 at the end. */
    private static int headerSize(ByteBuffer in) {
        if (!in.hasRemaining()) {
            return 0;
        }
        int size = in.getInt();
        return size == CONTINUATION ? in.getInt() : size;
    }

    private static int bodySize(ByteBuffer header, int available) {
        long size = Message.getRootAsMessage(header).bodyLength();
        if (size < 0 || size > available) {
            throw new ArrowFormatException(
                    String.format(
                            "an Arrow stream ends in a body of %d bytes after %d",
                            size, available));
        }
        return (int) size;
    }

    public ArrowSchema schema() {
        return schema;
    }

    public List<ArrowBatch> batches() {
        return batches;
    }
}
