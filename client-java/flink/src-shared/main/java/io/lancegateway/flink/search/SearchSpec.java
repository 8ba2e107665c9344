package io.lancegateway.flink.search;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.Serializable;
import org.apache.flink.table.types.logical.RowType;

/** A search but for what each query brings: its vector, its text and its k. */
public final class SearchSpec implements Serializable {

    private static final long serialVersionUID = 1L;

    private final GatewayAddress address;

    /** A ScanRequest; bytes, because job graphs outlive classes. */
    private final byte[] request;

    private final RowType rowType;

    SearchSpec(GatewayAddress address, ScanRequest request, RowType rowType) {
        this.address = address;
        this.request = request.toByteArray();
        this.rowType = rowType;
    }

    GatewayAddress address() {
        return address;
    }

    /** Where is searched, and for what. */
    ScanRequest request() {
        try {
            return ScanRequest.parseFrom(request);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException(
                    "the search in the job graph is no ScanRequest", corrupt);
        }
    }

    /** The columns that come out, and behind them the ranks. */
    public RowType rowType() {
        return rowType;
    }
}
