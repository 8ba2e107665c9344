package io.lancegateway.flink.util;

import org.apache.flink.table.functions.TableFunction;

/**
 * A function that asks the gateway. Flink 1.x plans {@code TABLE(f(...))} of literals only for
 * functions that say that they are deterministic; it calls none of them while it plans.
 */
public abstract class PortableFunction<T> extends TableFunction<T> {

    private static final long serialVersionUID = 1L;
}
