package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.BatchStream;
import io.lancegateway.client.Tables;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.flink.LanceSink;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.ScanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.transformations.SourceTransformation;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.Test;

/** A scan is planned once, and goes on where it was. */
class ScanITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    private static final int SPLITS = 6;

    @Test
    void aRestoredScanReadsTheRestOfItsVersion() throws Exception {
        String table = tableOf(1, 600);
        Coordinator<LanceSplit> before = new Coordinator<>(2);
        before.register(0);
        ScanSpec spec = spec(table, 100);
        byte[] checkpoint;
        ScanStateSerializer serializer = new ScanStateSerializer();
        try (LanceEnumerator enumerator =
                enumerator(before, gateway().uri(), spec, new ScanState(false, List.of()))) {
            enumerator.handleSplitRequest(0, null);
            before.runCalls();
            enumerator.handleSplitRequest(0, null);
            checkpoint = serializer.serialize(enumerator.snapshotState(1));
        }
        append(table, 601, 700);

        Coordinator<LanceSplit> after = new Coordinator<>(2);
        after.register(0);
        // Without a gateway nothing can be planned.
        try (LanceEnumerator enumerator =
                enumerator(
                        after, "grpc://localhost:1", spec, serializer.deserialize(1, checkpoint))) {
            while (after.finished.isEmpty()) {
                enumerator.handleSplitRequest(0, null);
            }
        }

        assertThat(before.assigned.get(0)).hasSize(2);
        assertThat(after.assigned.get(0)).hasSize(SPLITS - 2);
        List<LanceSplit> all = new ArrayList<>(before.assigned.get(0));
        all.addAll(after.assigned.get(0));
        assertThat(read(all)).containsExactlyInAnyOrderElementsOf(numbers(1, 600));
    }

    @Test
    void aJobThatFailsInMidReadWritesEachRowOnce() throws Exception {
        String from = tableOf(1, 600);
        String to = newTable();
        StreamExecutionEnvironment env = restarting();
        env.enableCheckpointing(50);
        env.fromSource(
                        new SlowSource<>(new ScanSource(address(), spec(from, 10)), 4),
                        WatermarkStrategy.noWatermarks(),
                        "lance",
                        InternalTypeInfo.of(ROW_TYPE))
                // Soon after its split was assigned, so that it goes back to the enumerator.
                .map(new FailOnce(305))
                .returns(InternalTypeInfo.of(ROW_TYPE))
                .sinkTo(
                        LanceSink.builder()
                                .path(to)
                                .gatewayUri(gateway().uri())
                                .rowType(ROW_TYPE)
                                .build());

        env.execute();

        assertThat(FailOnce.FAILED).isTrue();
        // What a checkpoint covers is not read again.
        assertThat(FailOnce.AGAIN.size()).isLessThan(FailOnce.BEFORE.size());
        StreamTableEnvironment sql = batch(1);
        declare(sql, to, "id BIGINT");
        assertThat(query(sql, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM " + to))
                .containsExactly("+I[600, 600, 180300]");
    }

    @Test
    void readBatchSizeBoundsTheRowsOfABatch() throws Exception {
        String table = tableOf(1, 20);
        StreamTableEnvironment env = batch(1);
        declareAs(env, "bounded", table, "id BIGINT", "'read.batch-size'='7'");
        declareAs(env, "unbounded", table, "id BIGINT");

        assertThat(batches(splits(env, "bounded"))).containsExactly(7, 7, 6);
        assertThat(batches(splits(env, "unbounded"))).containsExactly(20);
    }

    private static GatewayAddress address() {
        return new GatewayAddress(gateway().uri());
    }

    private static LanceEnumerator enumerator(
            Coordinator<LanceSplit> job, String uri, ScanSpec spec, ScanState state) {
        LanceEnumerator enumerator = new LanceEnumerator(job, new GatewayAddress(uri), spec, state);
        enumerator.start();
        return enumerator;
    }

    /** Small splits, and small batches. */
    private static ScanSpec spec(String table, int batchRows) {
        ScanRequest request =
                ScanRequest.newBuilder()
                        .setTable(Tables.named(table))
                        .setBatch(BatchSize.newBuilder().setRows(batchRows))
                        .setSplitBytes(1)
                        .setMaxSplits(SPLITS)
                        .build();
        return ScanSpec.rows(request, ROW_TYPE, List.of(List.of("id")));
    }

    /** Splits of a scan as the planner hands it out. */
    private static List<LanceSplit> splits(StreamTableEnvironment env, String table)
            throws Exception {
        ScanSource source =
                env
                        .toDataStream(env.from(table))
                        .getTransformation()
                        .getTransitivePredecessors()
                        .stream()
                        .filter(SourceTransformation.class::isInstance)
                        .map(
                                step ->
                                        (ScanSource)
                                                ((SourceTransformation<?, ?, ?>) step).getSource())
                        .collect(Collectors.toList())
                        .get(0);
        Coordinator<LanceSplit> job = new Coordinator<>(2);
        job.register(0);
        try (SplitEnumerator<LanceSplit, ScanState> enumerator = source.createEnumerator(job)) {
            enumerator.start();
            job.runCalls();
            enumerator.handleSplitRequest(0, null);
        }
        return job.assigned.get(0);
    }

    private static List<Integer> batches(List<LanceSplit> splits) throws Exception {
        List<Integer> rows = new ArrayList<>();
        for (LanceSplit split : splits) {
            try (BatchStream stream = client().read(split.ticket(), split.rowOffset())) {
                for (ArrowBatch batch = stream.next(); batch != null; batch = stream.next()) {
                    rows.add(batch.rows());
                }
            }
        }
        return rows;
    }

    private static List<Long> read(List<LanceSplit> splits) throws Exception {
        List<Long> ids = new ArrayList<>();
        for (LanceSplit split : splits) {
            try (BatchStream stream = client().read(split.ticket(), split.rowOffset())) {
                for (ArrowBatch batch = stream.next(); batch != null; batch = stream.next()) {
                    for (int i = 0; i < batch.rows(); i++) {
                        ids.add(((FixedWidthVector) batch.column(0)).getLong(i));
                    }
                }
            }
        }
        return ids;
    }

    private static List<Long> numbers(long from, long to) {
        return LongStream.rangeClosed(from, to).boxed().collect(Collectors.toList());
    }

    private static String tableOf(long from, long to) throws Exception {
        String table = newTable();
        append(table, from, to);
        return table;
    }

    private static void append(String table, long from, long to) throws Exception {
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT");
        numbers(env, "numbers", from, to);
        insert(env, "INSERT INTO " + table + " SELECT n FROM numbers");
    }

    /** Fails at a value, the first time that it comes; keeps what came before and what again. */
    private static final class FailOnce implements MapFunction<RowData, RowData> {

        private static final long serialVersionUID = 1L;
        private static final AtomicBoolean FAILED = new AtomicBoolean();
        private static final Set<Long> BEFORE = ConcurrentHashMap.newKeySet();
        private static final Set<Long> AGAIN = ConcurrentHashMap.newKeySet();

        private final long at;

        FailOnce(long at) {
            this.at = at;
        }

        @Override
        public RowData map(RowData row) {
            long id = row.getLong(0);
            if (id == at && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("failed on purpose");
            }
            if (!FAILED.get()) {
                BEFORE.add(id);
            } else if (BEFORE.contains(id)) {
                AGAIN.add(id);
            }
            return row;
        }
    }
}
