package io.lancegateway.flink.source;

import io.lancegateway.client.BatchStream;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.flink.util.GatewayAddress;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import javax.annotation.Nullable;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;
import org.apache.flink.connector.base.source.reader.splitreader.SplitReader;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsAddition;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsChange;

/** Reads splits one after the other, on the fetcher's thread. */
final class LanceSplitReader implements SplitReader<RowChunk, LanceSplit> {

    /** How long a fetch may last without a result; a wake-up ends it earlier. */
    private static final Duration MAX_FETCH = Duration.ofSeconds(10);

    private final GatewayAddress address;
    private final ScanSpec spec;
    private final Deque<LanceSplit> queue = new ArrayDeque<>();

    @Nullable private GatewayClient client;
    @Nullable private LanceSplit split;
    @Nullable private RowReader rows;

    /** Read by the thread that wakes up. */
    @Nullable private volatile BatchStream stream;

    LanceSplitReader(GatewayAddress address, ScanSpec spec) {
        this.address = address;
        this.spec = spec;
    }

    @Override
    public RecordsWithSplitIds<RowChunk> fetch() throws IOException {
        if (split == null && !nextSplit()) {
            return FetchedRows.nothing();
        }
        return spec.counting() ? fetchCount() : fetchBatch();
    }

    private boolean nextSplit() {
        split = queue.poll();
        if (split == null) {
            return false;
        }
        if (!spec.counting()) {
            if (client == null) {
                client = address.connect();
            }
            rows = null;
            stream = client.read(split.ticket(), split.rowOffset());
        }
        return true;
    }

    private FetchedRows<RowChunk> fetchCount() {
        LanceSplit counted = split;
        split = null;
        return counted.rowOffset() == 0
                ? FetchedRows.last(counted.splitId(), new RowChunk(RowBatch.ofLong(counted.rows())))
                : FetchedRows.finished(counted.splitId());
    }

    private FetchedRows<RowChunk> fetchBatch() throws IOException {
        ArrowBatch batch;
        try {
            batch = stream.poll(MAX_FETCH);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw (IOException)
                    new InterruptedIOException("interrupted while reading " + split)
                            .initCause(interrupted);
        }
        if (batch != null) {
            if (rows == null) {
                rows = spec.reader(batch.schema());
            }
            return FetchedRows.of(split.splitId(), new RowChunk(rows.read(batch)));
        }
        if (!stream.isFinished()) {
            return FetchedRows.nothing();
        }
        String finished = split.splitId();
        stream.close();
        stream = null;
        split = null;
        return FetchedRows.finished(finished);
    }

    @Override
    public void handleSplitsChanges(SplitsChange<LanceSplit> change) {
        if (!(change instanceof SplitsAddition)) {
            throw new UnsupportedOperationException("unknown change of splits: " + change);
        }
        queue.addAll(change.splits());
    }

    @Override
    public void wakeUp() {
        BatchStream current = stream;
        if (current != null) {
            current.wakeUp();
        }
    }

    @Override
    public void close() {
        BatchStream current = stream;
        if (current != null) {
            current.close();
        }
        if (client != null) {
            client.close();
        }
    }
}
