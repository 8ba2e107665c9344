package io.lancegateway.flink.table;

import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.abilities.SupportsTargetColumnWriting;

/** What a table sink must be in this version of Flink. */
interface PortableTableSink extends DynamicTableSink, SupportsTargetColumnWriting {

    /**
     * Of rows that are there, only these columns are to change.
     *
     * @param columns their ways down, by positions
     */
    void writeOnly(int[][] columns);

    /** What runs, once all is said of it. */
    SinkRuntimeProvider provider(boolean bounded);

    @Override
    default boolean applyTargetColumns(int[][] columns) {
        writeOnly(columns);
        return true;
    }

    @Override
    default SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        return provider(context.isBounded());
    }
}
