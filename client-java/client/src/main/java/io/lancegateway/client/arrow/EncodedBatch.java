package io.lancegateway.client.arrow;

import java.io.IOException;
import java.io.OutputStream;

/** Rows as one message: the header, and the buffers of the body as they stand. */
public final class EncodedBatch {

    private static final byte[] ZEROS = new byte[BodyWriter.ALIGNMENT];

    private final int rows;
    private final byte[] header;
    private final byte[][] buffers;
    private final int[] sizes;
    private final long bodySize;

    EncodedBatch(int rows, byte[] header, byte[][] buffers, int[] sizes, long bodySize) {
        this.rows = rows;
        this.header = header;
        this.buffers = buffers;
        this.sizes = sizes;
        this.bodySize = bodySize;
    }

    public int rows() {
        return rows;
    }

    /** An Arrow IPC Message, without its length. */
    public byte[] header() {
        return header;
    }

    /** Bytes of the body, with padding. */
    public long bodySize() {
        return bodySize;
    }

    /** Writes the body. */
    public void writeBody(OutputStream out) throws IOException {
        for (int i = 0; i < buffers.length; i++) {
            out.write(buffers[i], 0, sizes[i]);
            out.write(ZEROS, 0, BodyWriter.padding(sizes[i]));
        }
    }
}
