package io.lancegateway.client.arrow;

/**
 * Rows that came in one message: columns over one heap array. Garbage collected like any object,
 * and valid after its stream is closed.
 */
public final class ArrowBatch {

    private final ArrowSchema schema;
    private final int rows;
    private final ArrowVector[] columns;
    private final int sizeInBytes;

    ArrowBatch(ArrowSchema schema, int rows, ArrowVector[] columns, int sizeInBytes) {
        this.schema = schema;
        this.rows = rows;
        this.columns = columns;
        this.sizeInBytes = sizeInBytes;
    }

    public ArrowSchema schema() {
        return schema;
    }

    public int rows() {
        return rows;
    }

    /** The column at this position of the schema. */
    public ArrowVector column(int index) {
        return columns[index];
    }

    /** Bytes of the message's body. */
    public int sizeInBytes() {
        return sizeInBytes;
    }
}
