package io.lancegateway.flink.search;

import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.TableFunction;

/**
 * Flink 1.x plans {@code TABLE(f(...))} of literals only for functions that say that they are
 * deterministic. It calls none of them while it plans.
 */
public abstract class PortableFunction extends TableFunction<RowData> {

    private static final long serialVersionUID = 1L;
}
