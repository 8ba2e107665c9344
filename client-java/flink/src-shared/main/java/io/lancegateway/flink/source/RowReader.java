package io.lancegateway.flink.source;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowVector;
import io.lancegateway.client.arrow.StructVector;
import io.lancegateway.flink.types.ColumnReader;
import io.lancegateway.flink.types.ColumnReaders;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.types.logical.RowType;

/** Shows the batches of one stream as rows. */
final class RowReader {

    private static final ColumnVector NULLS = index -> true;

    private final RowType rowType;

    /** For each field the way down to its column; null: the field is null. */
    private final int[][] positions;

    private final ColumnReader[] readers;

    RowReader(RowType rowType, int[][] positions, ColumnReader[] readers) {
        this.rowType = rowType;
        this.positions = positions;
        this.readers = readers;
    }

    RowBatch read(ArrowBatch batch) {
        ColumnVector[] columns = new ColumnVector[positions.length];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = positions[i] == null ? NULLS : column(batch, i);
        }
        return RowBatch.columnar(columns, batch.rows(), batch.sizeInBytes());
    }

    private ColumnVector column(ArrowBatch batch, int field) {
        int[] way = positions[field];
        ArrowVector vector = batch.column(way[0]);
        List<ArrowVector> structs = new ArrayList<>();
        for (int depth = 1; depth < way.length; depth++) {
            if (vector.hasNulls()) {
                structs.add(vector);
            }
            vector = ((StructVector) vector).child(way[depth]);
        }
        boolean nulls = vector.hasNulls() || !structs.isEmpty();
        if (nulls && !rowType.getTypeAt(field).isNullable()) {
            throw new IllegalStateException(
                    String.format(
                            "column '%s' is declared NOT NULL, but the table has nulls there",
                            rowType.getFieldNames().get(field)));
        }
        return ColumnReaders.below(structs, readers[field].read(vector));
    }
}
