package io.lancegateway.flink.source;

import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;

/** What one fetch brought: rows of a split, the end of a split, or nothing. */
final class FetchedRows<C extends RowChunk> implements RecordsWithSplitIds<C> {

    @Nullable private String nextSplit;
    @Nullable private C rows;
    private final Set<String> finished;

    private FetchedRows(@Nullable String split, @Nullable C rows, Set<String> finished) {
        this.nextSplit = split;
        this.rows = rows;
        this.finished = finished;
    }

    static <C extends RowChunk> FetchedRows<C> of(String split, C rows) {
        return new FetchedRows<>(split, rows, Set.of());
    }

    static <C extends RowChunk> FetchedRows<C> last(String split, C rows) {
        return new FetchedRows<>(split, rows, Set.of(split));
    }

    static <C extends RowChunk> FetchedRows<C> finished(String split) {
        return new FetchedRows<>(null, null, Set.of(split));
    }

    static <C extends RowChunk> FetchedRows<C> nothing() {
        return new FetchedRows<>(null, null, Set.of());
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
    public C nextRecordFromSplit() {
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
