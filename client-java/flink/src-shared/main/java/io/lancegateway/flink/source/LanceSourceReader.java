package io.lancegateway.flink.source;

import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.connector.base.source.reader.RecordEmitter;
import org.apache.flink.connector.base.source.reader.SingleThreadMultiplexSourceReaderBase;
import org.apache.flink.connector.base.source.reader.splitreader.SplitReader;
import org.apache.flink.metrics.Counter;
import org.apache.flink.table.data.RowData;

/** Reads the splits that it asks the enumerator for, one at a time. */
@SuppressWarnings("try") // Flink's close() may be interrupted.
final class LanceSourceReader
        extends SingleThreadMultiplexSourceReaderBase<
                RowChunk, RowData, LanceSplit, LanceSourceReader.Progress> {

    private final AtomicLong pendingRows;

    static LanceSourceReader create(
            Supplier<SplitReader<RowChunk, LanceSplit>> splitReaders, SourceReaderContext context) {
        return new LanceSourceReader(splitReaders, context, new AtomicLong());
    }

    private LanceSourceReader(
            Supplier<SplitReader<RowChunk, LanceSplit>> splitReaders,
            SourceReaderContext context,
            AtomicLong pendingRows) {
        super(splitReaders, new Emitter(context, pendingRows), context.getConfiguration(), context);
        this.pendingRows = pendingRows;
        context.metricGroup().setPendingRecordsGauge(pendingRows::get);
    }

    @Override
    public void start() {
        if (getNumberOfCurrentlyAssignedSplits() == 0) {
            context.sendSplitRequest();
        }
    }

    @Override
    protected void onSplitFinished(Map<String, Progress> finished) {
        finished.values().forEach(progress -> pendingRows.addAndGet(-progress.pending()));
        context.sendSplitRequest();
    }

    @Override
    protected Progress initializedState(LanceSplit split) {
        Progress progress = new Progress(split);
        pendingRows.addAndGet(progress.pending());
        return progress;
    }

    @Override
    protected LanceSplit toSplitType(String splitId, Progress progress) {
        return progress.split.at(progress.offset);
    }

    /** How far a split was emitted. */
    static final class Progress {
        private final LanceSplit split;
        private long offset;

        Progress(LanceSplit split) {
            this.split = split;
            this.offset = split.rowOffset();
        }

        /** Rows to come, at most. */
        private long pending() {
            return Math.max(0, split.rows() - offset);
        }
    }

    private static final class Emitter implements RecordEmitter<RowChunk, RowData, Progress> {
        private final Counter rowsIn;
        private final Counter bytesIn;
        private final AtomicLong pendingRows;

        Emitter(SourceReaderContext context, AtomicLong pendingRows) {
            this.rowsIn = context.metricGroup().getIOMetricGroup().getNumRecordsInCounter();
            this.bytesIn = context.metricGroup().getIOMetricGroup().getNumBytesInCounter();
            this.pendingRows = pendingRows;
        }

        @Override
        public void emitRecord(RowChunk chunk, SourceOutput<RowData> output, Progress progress) {
            RowBatch batch = chunk.batch();
            if (chunk.from() == 0) {
                bytesIn.inc(batch.sizeInBytes());
            }
            for (int i = chunk.from(); i < chunk.to(); i++) {
                output.collect(batch.row(i));
            }
            int rows = chunk.to() - chunk.from();
            // The base class counts a chunk as one record.
            rowsIn.inc(rows - 1L);
            long before = progress.pending();
            progress.offset += rows;
            pendingRows.addAndGet(progress.pending() - before);
        }
    }
}
