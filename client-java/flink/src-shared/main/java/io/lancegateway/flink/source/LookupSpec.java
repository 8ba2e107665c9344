package io.lancegateway.flink.source;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.ExchangeCommand;
import io.lancegateway.proto.v1.LookupRequest;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.Serializable;
import java.util.List;
import java.util.Set;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/** What a lookup join compares, and which rows it gets. */
public final class LookupSpec implements Serializable {

    private static final long serialVersionUID = 1L;

    private final GatewayAddress address;
    private final byte[] request;
    private final RowType keyType;
    private final ScanSpec rows;
    private final boolean keepsRows;

    /**
     * @param rows what comes back; its filter and version hold for each lookup
     * @param keys the columns that are compared, names from the top down
     * @param keyType a field for each of them
     * @param keepsRows whether rows go to a cache
     */
    public LookupSpec(
            GatewayAddress address,
            ScanSpec rows,
            List<List<String>> keys,
            RowType keyType,
            boolean keepsRows) {
        ScanRequest scan = rows.request();
        LookupRequest.Builder lookup =
                LookupRequest.newBuilder()
                        .setTable(scan.getTable())
                        .setProjection(scan.getProjection());
        if (scan.hasVersion()) {
            lookup.setVersion(scan.getVersion());
        }
        if (scan.hasFilter()) {
            lookup.setFilter(scan.getFilter());
        }
        if (scan.hasBatch()) {
            lookup.setBatch(scan.getBatch());
        }
        if (scan.hasMetadata()) {
            lookup.setMetadata(scan.getMetadata());
        }
        keys.forEach(path -> lookup.addKeys(Column.newBuilder().addAllPath(path)));
        this.address = address;
        this.request = lookup.build().toByteArray();
        this.keyType = keyType;
        this.rows = rows;
        this.keepsRows = keepsRows;
    }

    Asker open() {
        ArrowSchema keys = ArrowSchema.of(ArrowTypes.columns(keyType, Set.of(), name -> 0));
        try {
            ExchangeCommand command =
                    ExchangeCommand.newBuilder()
                            .setLookup(LookupRequest.parseFrom(request))
                            .build();
            return new Asker(
                    address, command, keys, keyType, rows.rowType(), rows.paths(), keepsRows);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException(
                    "the lookup in the job graph is no LookupRequest", corrupt);
        }
    }

    /** Whether the key equals nothing, so that nobody need be asked. */
    boolean hasNull(RowData key) {
        for (int i = 0; i < key.getArity(); i++) {
            if (key.isNullAt(i)) {
                return true;
            }
        }
        return false;
    }
}
