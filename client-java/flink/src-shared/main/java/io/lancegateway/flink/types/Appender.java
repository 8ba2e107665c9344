package io.lancegateway.flink.types;

import org.apache.flink.table.data.RowData;

/** Appends rows of Flink to a batch. */
public interface Appender {

    /**
     * Appends a row.
     *
     * @throws IllegalArgumentException if a value does not fit; the message names the column. The
     *     batch is unusable then.
     */
    void append(RowData row);
}
