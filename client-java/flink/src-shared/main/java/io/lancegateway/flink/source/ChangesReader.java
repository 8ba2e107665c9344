package io.lancegateway.flink.source;

import io.lancegateway.flink.util.GatewayAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.connector.base.source.reader.RecordEmitter;
import org.apache.flink.connector.base.source.reader.SingleThreadMultiplexSourceReaderBase;
import org.apache.flink.metrics.Counter;
import org.apache.flink.table.data.RowData;

/**
 * Emits the changes of its parts, and tells the enumerator at each checkpoint which versions are
 * not needed any more.
 */
@SuppressWarnings("try") // Flink's close() may be interrupted.
final class ChangesReader
        extends SingleThreadMultiplexSourceReaderBase<
                ChangesChunk, RowData, ChangesPart, ChangesPosition> {

    /** What each checkpoint holds, until it is complete. */
    private final TreeMap<Long, Map<Integer, Long>> checkpoints = new TreeMap<>();

    static ChangesReader create(
            GatewayAddress address, ChangesSpec spec, SourceReaderContext context) {
        AtomicLong currentVersion = new AtomicLong();
        context.metricGroup().gauge("currentVersion", currentVersion::get);
        Counter skippedVersions = context.metricGroup().counter("skippedVersions");
        return new ChangesReader(address, spec, context, currentVersion, skippedVersions);
    }

    private ChangesReader(
            GatewayAddress address,
            ChangesSpec spec,
            SourceReaderContext context,
            AtomicLong currentVersion,
            Counter skippedVersions) {
        super(
                () -> new ChangesSplitReader(address, spec, skippedVersions),
                new Emitter(context, currentVersion),
                context.getConfiguration(),
                context);
    }

    @Override
    public void start() {
        // Parts of a checkpoint come without the enumerator.
        tell(positions(super.snapshotState(-1)));
    }

    @Override
    public List<ChangesPart> snapshotState(long checkpointId) {
        List<ChangesPart> parts = super.snapshotState(checkpointId);
        checkpoints.put(checkpointId, positions(parts));
        return parts;
    }

    @Override
    public void notifyCheckpointComplete(long checkpointId) throws Exception {
        super.notifyCheckpointComplete(checkpointId);
        Map<Integer, Long> positions = checkpoints.remove(checkpointId);
        checkpoints.headMap(checkpointId).clear();
        if (positions != null) {
            tell(positions);
        }
    }

    @Override
    public void notifyCheckpointAborted(long checkpointId) {
        checkpoints.remove(checkpointId);
    }

    @Override
    protected void onSplitFinished(Map<String, ChangesPosition> finished) {
        Map<Integer, Long> done = new HashMap<>();
        finished.values()
                .forEach(position -> done.put(position.toPart().part(), ReadPositions.DONE));
        tell(done);
    }

    private void tell(Map<Integer, Long> positions) {
        if (!positions.isEmpty()) {
            context.sendSourceEventToCoordinator(new ReadPositions(positions));
        }
    }

    private static Map<Integer, Long> positions(List<ChangesPart> parts) {
        Map<Integer, Long> positions = new HashMap<>();
        parts.forEach(part -> positions.put(part.part(), part.after()));
        return positions;
    }

    @Override
    protected ChangesPosition initializedState(ChangesPart part) {
        return new ChangesPosition(part);
    }

    @Override
    protected ChangesPart toSplitType(String splitId, ChangesPosition position) {
        return position.toPart();
    }

    private static final class Emitter
            implements RecordEmitter<ChangesChunk, RowData, ChangesPosition> {

        private final Counter rowsIn;
        private final Counter bytesIn;
        private final AtomicLong currentVersion;

        Emitter(SourceReaderContext context, AtomicLong currentVersion) {
            this.rowsIn = context.metricGroup().getIOMetricGroup().getNumRecordsInCounter();
            this.bytesIn = context.metricGroup().getIOMetricGroup().getNumBytesInCounter();
            this.currentVersion = currentVersion;
        }

        @Override
        public void emitRecord(
                ChangesChunk chunk, SourceOutput<RowData> output, ChangesPosition position) {
            if (chunk.hasRows()) {
                emitRows(chunk, output, position);
            } else {
                position.reached(chunk.reached());
            }
            // The base class counts a chunk as one record.
            rowsIn.inc(chunk.to() - chunk.from() - 1L);
            currentVersion.set(position.after());
        }

        private void emitRows(
                ChangesChunk chunk, SourceOutput<RowData> output, ChangesPosition position) {
            if (chunk.from() == 0) {
                bytesIn.inc(chunk.batch().sizeInBytes());
            }
            for (int i = chunk.from(); i < chunk.to(); i++) {
                output.collect(chunk.row(i));
                position.emitted(chunk.version(i));
            }
        }
    }
}
