package io.lancegateway.flink.table;

import io.lancegateway.flink.source.LanceAsyncLookupFunction;
import io.lancegateway.flink.source.LanceLookupFunction;
import io.lancegateway.flink.source.LookupSpec;
import javax.annotation.Nullable;
import org.apache.flink.table.connector.source.LookupTableSource.LookupRuntimeProvider;
import org.apache.flink.table.connector.source.lookup.AsyncLookupFunctionProvider;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.connector.source.lookup.PartialCachingAsyncLookupProvider;
import org.apache.flink.table.connector.source.lookup.PartialCachingLookupProvider;
import org.apache.flink.table.connector.source.lookup.cache.LookupCache;
import org.apache.flink.table.functions.AsyncLookupFunction;
import org.apache.flink.table.functions.LookupFunction;

/** Lookups one by one or many at once, as the planner chooses. */
class LookupProvider implements LookupFunctionProvider, AsyncLookupFunctionProvider {

    private final LookupSpec spec;

    private LookupProvider(LookupSpec spec) {
        this.spec = spec;
    }

    static LookupRuntimeProvider of(LookupSpec spec, @Nullable LookupCache cache) {
        return cache == null ? new LookupProvider(spec) : new Cached(spec, cache);
    }

    @Override
    public LookupFunction createLookupFunction() {
        return new LanceLookupFunction(spec);
    }

    @Override
    public AsyncLookupFunction createAsyncLookupFunction() {
        return new LanceAsyncLookupFunction(spec);
    }

    private static final class Cached extends LookupProvider
            implements PartialCachingLookupProvider, PartialCachingAsyncLookupProvider {

        private final LookupCache cache;

        Cached(LookupSpec spec, LookupCache cache) {
            super(spec);
            this.cache = cache;
        }

        @Override
        public LookupCache getCache() {
            return cache;
        }
    }
}
