package io.lancegateway.flink.source;

import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.columnar.ColumnarRowData;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.VectorizedColumnBatch;

/** Rows that came together. */
abstract class RowBatch {

    private final int rows;
    private final int sizeInBytes;

    private RowBatch(int rows, int sizeInBytes) {
        this.rows = rows;
        this.sizeInBytes = sizeInBytes;
    }

    /** Rows over columns. */
    static RowBatch columnar(ColumnVector[] columns, int rows, int sizeInBytes) {
        return new Columnar(columns, rows, sizeInBytes);
    }

    /** One row that holds a number. */
    static RowBatch ofLong(long value) {
        return new Single(GenericRowData.of(value));
    }

    int rows() {
        return rows;
    }

    int sizeInBytes() {
        return sizeInBytes;
    }

    /** The row at this position: valid until the next call, which may return the same object. */
    abstract RowData row(int index);

    private static final class Columnar extends RowBatch {
        private final ColumnarRowData row;

        Columnar(ColumnVector[] columns, int rows, int sizeInBytes) {
            super(rows, sizeInBytes);
            VectorizedColumnBatch batch = new VectorizedColumnBatch(columns);
            batch.setNumRows(rows);
            this.row = new ColumnarRowData(batch);
        }

        @Override
        RowData row(int index) {
            row.setRowId(index);
            return row;
        }
    }

    private static final class Single extends RowBatch {
        private final RowData row;

        Single(RowData row) {
            super(1, 0);
            this.row = row;
        }

        @Override
        RowData row(int index) {
            return row;
        }
    }
}
