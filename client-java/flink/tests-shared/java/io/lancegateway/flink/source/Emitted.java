package io.lancegateway.flink.source;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.table.data.RowData;

/** Collects what a reader emits. */
final class Emitted<T> implements ReaderOutput<RowData> {

    final List<T> rows = new ArrayList<>();

    private final Function<RowData, T> read;

    Emitted(Function<RowData, T> read) {
        this.read = read;
    }

    /** Has the reader emit once; if it has nothing, waits until it has. */
    InputStatus poll(SourceReader<RowData, ?> reader) throws Exception {
        InputStatus status = reader.pollNext(this);
        if (status == InputStatus.NOTHING_AVAILABLE) {
            reader.isAvailable().get(60, TimeUnit.SECONDS);
        }
        return status;
    }

    @Override
    public void collect(RowData row) {
        rows.add(read.apply(row));
    }

    @Override
    public void collect(RowData row, long timestamp) {
        collect(row);
    }

    @Override
    public void emitWatermark(Watermark watermark) {}

    @Override
    public void markIdle() {}

    @Override
    public void markActive() {}

    @Override
    public SourceOutput<RowData> createOutputForSplit(String splitId) {
        return this;
    }

    @Override
    public void releaseOutputForSplit(String splitId) {}
}
