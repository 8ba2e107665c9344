package io.lancegateway.flink.table;

import org.apache.flink.table.connector.sink.DynamicTableSink;

/** What a table sink must be in this version of Flink. */
interface PortableTableSink extends DynamicTableSink {

    /**
     * Of rows that are there, only these columns are to change.
     *
     * @param columns their ways down, by positions
     */
    void writeOnly(int[][] columns);

    /** What runs, once all is said of it. */
    SinkRuntimeProvider provider(boolean bounded);

    @Override
    default SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        context.getTargetColumns().ifPresent(this::writeOnly);
        return provider(context.isBounded());
    }
}
