package io.lancegateway.flink.source;

import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimitedSourceReader;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.table.data.RowData;

/** Each reader reads a few batches, then waits for a checkpoint. */
final class SlowSource<SplitT extends SourceSplit, StateT> extends WrappedSource<SplitT, StateT> {

    private static final long serialVersionUID = 1L;

    private final int batches;

    SlowSource(Source<RowData, SplitT, StateT> source, int batches) {
        super(source);
        this.batches = batches;
    }

    // As of Flink 2.2 a strategy knows the type of the splits, and perCheckpoint leaves it out.
    @SuppressWarnings("unchecked")
    @Override
    public SourceReader<RowData, SplitT> createReader(SourceReaderContext context)
            throws Exception {
        return new RateLimitedSourceReader<>(
                super.createReader(context),
                RateLimiterStrategy.perCheckpoint(batches).createRateLimiter(1));
    }
}
