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

    /** The row at this position, as an object of its own. It keeps the whole batch. */
    abstract RowData rowToKeep(int index);

    private static final class Columnar extends RowBatch {
        private final VectorizedColumnBatch batch;
        private final ColumnarRowData row;

        Columnar(ColumnVector[] columns, int rows, int sizeInBytes) {
            super(rows, sizeInBytes);
            this.batch = new VectorizedColumnBatch(columns);
            batch.setNumRows(rows);
            this.row = new ColumnarRowData(batch);
        }

        @Override
        RowData row(int index) {
            row.setRowId(index);
            return row;
        }

        @Override
        RowData rowToKeep(int index) {
            return new ColumnarRowData(batch, index);
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

        @Override
        RowData rowToKeep(int index) {
            return row;
        }
    }
}
