package io.lancegateway.flink.source;

import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;

/** What one fetch brought: a batch of a split, the end of a split, or nothing. */
final class FetchedRows implements RecordsWithSplitIds<RowChunk> {

    @Nullable private String nextSplit;
    @Nullable private RowChunk rows;
    private final Set<String> finished;

    private FetchedRows(@Nullable String split, @Nullable RowBatch batch, Set<String> finished) {
        this.nextSplit = split;
        this.rows = batch == null ? null : new RowChunk(batch);
        this.finished = finished;
    }

    static FetchedRows of(String split, RowBatch batch) {
        return new FetchedRows(split, batch, Set.of());
    }

    static FetchedRows last(String split, RowBatch batch) {
        return new FetchedRows(split, batch, Set.of(split));
    }

    static FetchedRows finished(String split) {
        return new FetchedRows(null, null, Set.of(split));
    }

    static FetchedRows nothing() {
        return new FetchedRows(null, null, Set.of());
    }

    @Override
    @Nullable
    public String nextSplit() {
        String split = nextSplit;
        nextSplit = null;
        return split;
    }

    @Override
    @Nullable
    public RowChunk nextRecordFromSplit() {
        return rows != null && rows.next() ? rows : null;
    }

    @Override
    public Set<String> finishedSplits() {
        return finished;
    }

    @Override
    public void recycle() {
        rows = null;
    }
}
