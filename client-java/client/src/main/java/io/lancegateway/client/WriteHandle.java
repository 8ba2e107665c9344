package io.lancegateway.client;

import io.lancegateway.client.arrow.ArrowSchema;

/** A table that is open for writing. Good for any number of streams, in any process. */
public final class WriteHandle {

    /** The last column of a write of mode MERGE: what happened to the row. */
    public static final String CHANGE_KIND = "_change_kind";

    /** The column with the id of the row that a change is about, where rows are told apart so. */
    public static final String ROW_ID = "_rowid";

    private final byte[] bytes;
    private final ArrowSchema schema;

    /** A handle that was kept elsewhere. */
    public WriteHandle(byte[] bytes, ArrowSchema schema) {
        this.bytes = bytes.clone();
        this.schema = schema;
    }

    /** Opaque. */
    public byte[] bytes() {
        return bytes.clone();
    }

    /** What staged batches must have. */
    public ArrowSchema schema() {
        return schema;
    }
}
