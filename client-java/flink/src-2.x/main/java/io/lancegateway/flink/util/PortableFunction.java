package io.lancegateway.flink.util;

import org.apache.flink.table.functions.TableFunction;

/** A function that asks the gateway, which may answer otherwise tomorrow. */
public abstract class PortableFunction<T> extends TableFunction<T> {

    private static final long serialVersionUID = 1L;

    @Override
    public boolean isDeterministic() {
        return false;
    }
}
