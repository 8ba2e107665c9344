package io.lancegateway.flink.source;

import io.lancegateway.client.arrow.FixedWidthVector;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.types.RowKind;

/** Changes that are emitted in one go; or no row, but how far their part was read. */
final class ChangesChunk extends RowChunk {

    @Nullable private final FixedWidthVector kinds;
    @Nullable private final FixedWidthVector versions;

    /** The version up to which everything was read, if there are no rows. */
    private final long reached;

    private boolean isTold;

    private ChangesChunk(
            RowBatch batch,
            @Nullable FixedWidthVector kinds,
            @Nullable FixedWidthVector versions,
            long reached) {
        super(batch);
        this.kinds = kinds;
        this.versions = versions;
        this.reached = reached;
    }

    static ChangesChunk of(RowBatch batch, FixedWidthVector kinds, FixedWidthVector versions) {
        return new ChangesChunk(batch, kinds, versions, 0);
    }

    static ChangesChunk reached(long version) {
        return new ChangesChunk(RowBatch.columnar(new ColumnVector[0], 0, 0), null, null, version);
    }

    @Override
    boolean next() {
        if (hasRows()) {
            return super.next();
        }
        boolean isFirst = !isTold;
        isTold = true;
        return isFirst;
    }

    boolean hasRows() {
        return versions != null;
    }

    long reached() {
        return reached;
    }

    RowKind kind(int index) {
        return RowKind.fromByteValue(kinds.getByte(index));
    }

    long version(int index) {
        return versions.getLong(index);
    }

    /** The row at this position with its kind: valid until the next call. */
    RowData row(int index) {
        RowData row = batch().row(index);
        row.setRowKind(kind(index));
        return row;
    }
}
