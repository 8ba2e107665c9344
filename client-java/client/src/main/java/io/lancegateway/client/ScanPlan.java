package io.lancegateway.client;

import io.lancegateway.client.arrow.ArrowSchema;
import java.util.List;

/** How a scan is read: its splits, all of one version. */
public final class ScanPlan {

    private final ArrowSchema schema;
    private final long version;
    private final long rows;
    private final long bytes;
    private final List<ScanSplit> splits;

    ScanPlan(ArrowSchema schema, long version, long rows, long bytes, List<ScanSplit> splits) {
        this.schema = schema;
        this.version = version;
        this.rows = rows;
        this.bytes = bytes;
        this.splits = List.copyOf(splits);
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
