package io.lancegateway.client;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.proto.flight.FlightEndpoint;

/** A part of a scan that one reader reads. */
public final class ScanSplit {

    private final byte[] ticket;
    private final long rows;
    private final long bytes;

    private ScanSplit(byte[] ticket, long rows, long bytes) {
        this.ticket = ticket;
        this.rows = rows;
        this.bytes = bytes;
    }

    static ScanSplit of(FlightEndpoint endpoint) throws InvalidProtocolBufferException {
        io.lancegateway.proto.v1.ScanSplit split =
                io.lancegateway.proto.v1.ScanSplit.parseFrom(endpoint.getAppMetadata());
        return new ScanSplit(
                endpoint.getTicket().getTicket().toByteArray(),
                split.getNumRows(),
                split.getNumBytes());
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
