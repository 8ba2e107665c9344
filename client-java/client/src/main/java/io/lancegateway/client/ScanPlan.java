package io.lancegateway.client;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.proto.flight.FlightEndpoint;
import io.lancegateway.proto.flight.FlightInfo;
import java.util.ArrayList;
import java.util.List;

/** How a scan is read: its splits, all of one version. */
public final class ScanPlan {

    private static final String DOING = "GetFlightInfo";

    private final ArrowSchema schema;
    private final long version;
    private final long rows;
    private final long bytes;
    private final List<ScanSplit> splits;

    private ScanPlan(
            ArrowSchema schema, long version, long rows, long bytes, List<ScanSplit> splits) {
        this.schema = schema;
        this.version = version;
        this.rows = rows;
        this.bytes = bytes;
        this.splits = List.copyOf(splits);
    }

    static ScanPlan of(FlightInfo info) {
        try {
            io.lancegateway.proto.v1.ScanPlan plan =
                    io.lancegateway.proto.v1.ScanPlan.parseFrom(info.getAppMetadata());
            List<ScanSplit> splits = new ArrayList<>(info.getEndpointCount());
            for (FlightEndpoint endpoint : info.getEndpointList()) {
                splits.add(ScanSplit.of(endpoint));
            }
            return new ScanPlan(
                    GatewayClient.schema(info.getSchema(), DOING),
                    plan.getVersion(),
                    plan.getNumRows(),
                    plan.getNumBytes(),
                    splits);
        } catch (InvalidProtocolBufferException e) {
            throw Failure.local(Reason.CORRUPT_DATA, "a plan cannot be read", e).toException(DOING);
        }
    }

    /** The columns that are read. */
    public ArrowSchema schema() {
        return schema;
    }

    /** The version that all splits read, whatever is committed meanwhile. */
    public long version() {
        return version;
    }

    /** Rows before the filter, bounded by the limit. */
    public long rows() {
        return rows;
    }

    /** Bytes, as estimated by the gateway. */
    public long bytes() {
        return bytes;
    }

    public List<ScanSplit> splits() {
        return splits;
    }
}
