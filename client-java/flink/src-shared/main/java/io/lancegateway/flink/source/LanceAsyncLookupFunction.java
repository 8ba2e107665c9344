package io.lancegateway.flink.source;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.AsyncLookupFunction;
import org.apache.flink.table.functions.FunctionContext;

/** Looks up many keys at once: those that wait go to the gateway together. */
public final class LanceAsyncLookupFunction extends AsyncLookupFunction {

    private static final long serialVersionUID = 1L;

    private final LookupSpec spec;

    @Nullable private transient Asker gateway;

    public LanceAsyncLookupFunction(LookupSpec spec) {
        this.spec = spec;
    }

    @Override
    public void open(FunctionContext context) {
        gateway = spec.open();
    }

    @Override
    public CompletableFuture<Collection<RowData>> asyncLookup(RowData key) {
        return spec.hasNull(key) ? CompletableFuture.completedFuture(List.of()) : gateway.ask(key);
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
    }
}
