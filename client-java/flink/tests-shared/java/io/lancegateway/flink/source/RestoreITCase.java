package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.ScanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.metrics.groups.SourceReaderMetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.SimpleUserCodeClassLoader;
import org.apache.flink.util.UserCodeClassLoader;
import org.junit.jupiter.api.Test;

/** A reader that is restored goes on behind the last row that it emitted. */
class RestoreITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    private static final int ROWS = 5000;

    @Test
    void rowsBeforeAndAfterARestoreAreAllRowsOnce() throws Exception {
        ScanSpec spec = spec();
        ScanPlan plan = client().plan(spec.request());
        List<LanceSplit> splits = new ArrayList<>();
        plan.splits()
                .forEach(
                        s ->
                                splits.add(
                                        new LanceSplit(
                                                "" + splits.size(), s.ticket(), s.rows(), 0)));
        ScanSource source = new ScanSource(new GatewayAddress(gateway().uri()), spec);
        Rows before = new Rows();
        List<LanceSplit> state;
        try (SourceReader<RowData, LanceSplit> reader = source.createReader(new Context())) {
            reader.start();
            reader.addSplits(splits);
            while (before.ids.size() < ROWS / 2) {
                poll(reader, before);
            }
            state = reader.snapshotState(1);
        }
        assertThat(before.ids.size()).isLessThan(ROWS);
        LanceSplitSerializer serializer = new LanceSplitSerializer();
        Rows after = new Rows();
        try (SourceReader<RowData, LanceSplit> reader = source.createReader(new Context())) {
            reader.start();
            List<LanceSplit> restored = new ArrayList<>();
            for (LanceSplit split : state) {
                restored.add(serializer.deserialize(1, serializer.serialize(split)));
            }
            reader.addSplits(restored);
            reader.notifyNoMoreSplits();
            while (poll(reader, after) != InputStatus.END_OF_INPUT) {
                // Until all is read.
            }
        }

        List<Long> all = new ArrayList<>(before.ids);
        all.addAll(after.ids);
        assertThat(all).hasSize(ROWS).doesNotHaveDuplicates();
    }

    private static InputStatus poll(SourceReader<RowData, LanceSplit> reader, Rows rows)
            throws Exception {
        InputStatus status = reader.pollNext(rows);
        if (status == InputStatus.NOTHING_AVAILABLE) {
            reader.isAvailable().get(60, TimeUnit.SECONDS);
        }
        return status;
    }

    private static ScanSpec spec() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT");
        numbers(env, "numbers", 1, ROWS);
        insert(env, "INSERT INTO " + table + " SELECT n FROM numbers");
        ScanRequest request =
                ScanRequest.newBuilder()
                        .setTable(Tables.named(table))
                        .setBatch(BatchSize.newBuilder().setRows(77))
                        .build();
        return ScanSpec.rows(request, ROW_TYPE, List.of(List.of("id")));
    }

    /** Collects what a reader emits. */
    private static final class Rows implements ReaderOutput<RowData> {

        final List<Long> ids = new ArrayList<>();

        @Override
        public void collect(RowData row) {
            ids.add(row.getLong(0));
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

    private static final class Context implements SourceReaderContext {

        private final SourceReaderMetricGroup metrics =
                UnregisteredMetricsGroup.createSourceReaderMetricGroup();

        @Override
        public SourceReaderMetricGroup metricGroup() {
            return metrics;
        }

        @Override
        public Configuration getConfiguration() {
            return new Configuration();
        }

        @Override
        public String getLocalHostName() {
            return "localhost";
        }

        @Override
        public int getIndexOfSubtask() {
            return 0;
        }

        @Override
        public void sendSplitRequest() {}

        @Override
        public void sendSourceEventToCoordinator(SourceEvent event) {}

        @Override
        public UserCodeClassLoader getUserCodeClassLoader() {
            return SimpleUserCodeClassLoader.create(getClass().getClassLoader());
        }
    }
}
