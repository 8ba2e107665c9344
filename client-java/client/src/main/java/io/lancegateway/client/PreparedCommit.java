package io.lancegateway.client;

/** Staged rows, sealed for one commit. */
public final class PreparedCommit {

    private final byte[] committable;
    private final long rows;
    private final long sizeInBytes;

    PreparedCommit(byte[] committable, long rows, long sizeInBytes) {
        this.committable = committable;
        this.rows = rows;
        this.sizeInBytes = sizeInBytes;
    }

    /** Opaque, for {@link GatewayClient#commit}. Keep it durably before committing. */
    public byte[] committable() {
        return committable.clone();
    }

    public long rows() {
        return rows;
    }

    public long sizeInBytes() {
        return sizeInBytes;
    }
}
