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
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
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
        Emitted<Long> before = new Emitted<>(row -> row.getLong(0));
        List<LanceSplit> state;
        try (SourceReader<RowData, LanceSplit> reader = source.createReader(new ReaderContext())) {
            reader.start();
            reader.addSplits(splits);
            while (before.rows.size() < ROWS / 2) {
                before.poll(reader);
            }
            state = reader.snapshotState(1);
        }
        assertThat(before.rows.size()).isLessThan(ROWS);
        LanceSplitSerializer serializer = new LanceSplitSerializer();
        Emitted<Long> after = new Emitted<>(row -> row.getLong(0));
        try (SourceReader<RowData, LanceSplit> reader = source.createReader(new ReaderContext())) {
            reader.start();
            List<LanceSplit> restored = new ArrayList<>();
            for (LanceSplit split : state) {
                restored.add(serializer.deserialize(1, serializer.serialize(split)));
            }
            reader.addSplits(restored);
            reader.notifyNoMoreSplits();
            while (after.poll(reader) != InputStatus.END_OF_INPUT) {
                // Until all is read.
            }
        }

        List<Long> all = new ArrayList<>(before.rows);
        all.addAll(after.rows);
        assertThat(all).hasSize(ROWS).doesNotHaveDuplicates();
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
}
