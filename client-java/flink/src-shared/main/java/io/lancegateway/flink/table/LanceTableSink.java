package io.lancegateway.flink.table;

import io.lancegateway.flink.sink.SinkSpec;
import io.lancegateway.flink.sink.TableSink;
import javax.annotation.Nullable;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsOverwrite;

/** A Lance table as the target of INSERT. */
final class LanceTableSink implements DynamicTableSink, SupportsOverwrite {

    private SinkSpec spec;
    @Nullable private final Integer parallelism;

    LanceTableSink(SinkSpec spec, @Nullable Integer parallelism) {
        this.spec = spec;
        this.parallelism = parallelism;
    }

    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
        return ChangelogMode.insertOnly();
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        return SinkV2Provider.of(new TableSink(spec, true), parallelism);
    }

    /** INSERT OVERWRITE; INSERT INTO leaves it to {@code write.mode}. */
    @Override
    public void applyOverwrite(boolean overwritten) {
        if (overwritten) {
            spec = spec.overwriting();
        }
    }

    @Override
    public DynamicTableSink copy() {
        return new LanceTableSink(spec, parallelism);
    }

    @Override
    public String asSummaryString() {
        return "Lance";
    }
}
