package io.lancegateway.flink.source;

import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimitedSourceReader;
import org.apache.flink.table.data.RowData;

/** Each reader reads a few batches, then waits until it is let go. One at a time in a process. */
final class HeldSource extends WrappedSource<LanceSplit, ScanState> {

    private static final long serialVersionUID = 1L;

    private static volatile CompletableFuture<Void> letGo;

    HeldSource(ScanSource source) {
        super(source);
        letGo = new CompletableFuture<>();
    }

    static void letGo() {
        letGo.complete(null);
    }

    @Override
    public SourceReader<RowData, LanceSplit> createReader(SourceReaderContext context)
            throws Exception {
        return new RateLimitedSourceReader<>(super.createReader(context), new Hold(letGo));
    }
}
