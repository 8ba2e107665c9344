package io.lancegateway.flink.source;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;

/** Looks up one key after the other. */
public final class LanceLookupFunction extends LookupFunction {

    private static final long serialVersionUID = 1L;

    private final LookupSpec spec;

    @Nullable private transient Asker gateway;

    public LanceLookupFunction(LookupSpec spec) {
        this.spec = spec;
    }

    @Override
    public void open(FunctionContext context) {
        gateway = spec.open();
    }

    @Override
    public Collection<RowData> lookup(RowData key) throws IOException {
        return spec.hasNull(key) ? List.of() : gateway.find(key);
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
    }
}
