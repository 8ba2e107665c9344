package io.lancegateway.client;

/** A part of a scan that one reader reads. */
public final class ScanSplit {

    private final byte[] ticket;
    private final long rows;
    private final long bytes;

    ScanSplit(byte[] ticket, long rows, long bytes) {
        this.ticket = ticket;
        this.rows = rows;
        this.bytes = bytes;
    }

    /** For {@link GatewayClient#read}, of any client, at any time that the version exists. */
    public byte[] ticket() {
        return ticket.clone();
    }

    /** Rows before the filter. */
    public long rows() {
        return rows;
    }

    public long bytes() {
        return bytes;
    }
}
