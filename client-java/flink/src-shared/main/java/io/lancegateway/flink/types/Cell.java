package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ColumnBuilder;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.RowData;

/** Appends the values of one column, or of the elements of one, to a batch. */
abstract class Cell<B extends ColumnBuilder> {

    final B builder;

    Cell(B builder) {
        this.builder = builder;
    }

    final void append(RowData row, int index) {
        if (row.isNullAt(index)) {
            builder.appendNull();
        } else {
            value(row, index);
        }
    }

    final void append(ArrayData array, int index) {
        if (array.isNullAt(index)) {
            builder.appendNull();
        } else {
            value(array, index);
        }
    }

    /** Appends a value that is not null. */
    abstract void value(RowData row, int index);

    /** Appends an element that is not null. */
    abstract void value(ArrayData array, int index);
}
