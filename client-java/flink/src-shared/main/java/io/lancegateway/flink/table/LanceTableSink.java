package io.lancegateway.flink.table;

import io.lancegateway.flink.sink.SinkSpec;
import io.lancegateway.flink.sink.TableSink;
import java.util.function.Function;
import javax.annotation.Nullable;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsOverwrite;

/** A Lance table as the target of INSERT. */
final class LanceTableSink implements DynamicTableSink, SupportsOverwrite {

    /** From whether the table is overwritten to what is written. */
    private final Function<Boolean, SinkSpec> spec;

    private boolean overwrite;
    @Nullable private final Integer parallelism;

    LanceTableSink(
            Function<Boolean, SinkSpec> spec, boolean overwrite, @Nullable Integer parallelism) {
        this.spec = spec;
        this.overwrite = overwrite;
        this.parallelism = parallelism;
    }

    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
        return ChangelogMode.insertOnly();
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        return SinkV2Provider.of(new TableSink(spec.apply(overwrite)), parallelism);
    }

    /** INSERT OVERWRITE; INSERT INTO leaves it to {@code write.mode}. */
    @Override
    public void applyOverwrite(boolean overwritten) {
        overwrite |= overwritten;
    }

    @Override
    public DynamicTableSink copy() {
        return new LanceTableSink(spec, overwrite, parallelism);
    }

    @Override
    public String asSummaryString() {
        return "Lance";
    }
}
