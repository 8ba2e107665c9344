package io.lancegateway.flink.search;

import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.TableFunction;

/** The same query finds other rows tomorrow, and Flink 2.x may know it. */
public abstract class PortableFunction extends TableFunction<RowData> {

    private static final long serialVersionUID = 1L;

    @Override
    public boolean isDeterministic() {
        return false;
    }
}
