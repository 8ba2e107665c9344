package io.lancegateway.client;

/** Rows that are in data files which nobody sees yet. */
public final class StagedWrite {

    private final byte[] bytes;
    private final long rows;
    private final long sizeInBytes;

    StagedWrite(byte[] bytes, long rows, long sizeInBytes) {
        this.bytes = bytes;
        this.rows = rows;
        this.sizeInBytes = sizeInBytes;
    }

    /** Opaque, for {@link GatewayClient#prepareCommit}. Empty if no row was staged. */
    public byte[] bytes() {
        return bytes.clone();
    }

    public long rows() {
        return rows;
    }

    public long sizeInBytes() {
        return sizeInBytes;
    }
}
