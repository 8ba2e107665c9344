package io.lancegateway.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.Changelog;
import io.lancegateway.flink.util.GatewayAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Where changes go before they are written, and in which order. */
class KeyedRowsTest {

    private static final DataType ROW =
            DataTypes.ROW(
                    DataTypes.FIELD("id", DataTypes.BYTES().notNull()),
                    DataTypes.FIELD("n", DataTypes.INT()));

    @ParameterizedTest
    @EnumSource(
            value = RuntimeExecutionMode.class,
            names = {"STREAMING", "BATCH"})
    void changesOfOneKeyGoToOneWriterInTheirOrder(RuntimeExecutionMode mode) throws Exception {
        List<Row> changes = new ArrayList<>();
        for (int n = 0; n < 20_000; n++) {
            RowKind kind = n % 3 == 0 ? RowKind.DELETE : RowKind.UPDATE_AFTER;
            changes.add(Row.ofKind(kind, new byte[] {(byte) (n * 31 % 101), 1}, n));
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setRuntimeMode(mode);
        env.setParallelism(4);
        SinkSpec spec =
                new SinkSpec(
                        new GatewayAddress("grpc://127.0.0.1:1"),
                        Tables.named("t"),
                        (RowType) ROW.getLogicalType(),
                        false,
                        0,
                        0,
                        0,
                        new NewTable(Set.of(), Map.of(), "", Map.of(), List.of("id")),
                        null);

        Map<Byte, Set<Integer>> writers = new TreeMap<>();
        Map<Byte, List<Integer>> orders = new TreeMap<>();
        try (CloseableIterator<Tuple3<Integer, Byte, Integer>> written =
                new TableSink(spec)
                        .addPreWriteTopology(
                                Changelog.rowData(Changelog.rows(env, ROW, changes), ROW))
                        .map(new WhereItGoes())
                        .returns(Types.TUPLE(Types.INT, Types.BYTE, Types.INT))
                        .setParallelism(4)
                        .executeAndCollect()) {
            written.forEachRemaining(
                    row -> {
                        writers.computeIfAbsent(row.f1, key -> new TreeSet<>()).add(row.f0);
                        orders.computeIfAbsent(row.f1, key -> new ArrayList<>()).add(row.f2);
                    });
        }

        assertThat(orders.values()).hasSize(101).allSatisfy(order -> assertThat(order).isSorted());
        assertThat(orders.values().stream().mapToInt(List::size).sum()).isEqualTo(changes.size());
        assertThat(writers.values()).allSatisfy(of -> assertThat(of).hasSize(1));
        assertThat(writers.values()).contains(Set.of(0), Set.of(1), Set.of(2), Set.of(3));
    }

    private static final class WhereItGoes
            extends RichMapFunction<RowData, Tuple3<Integer, Byte, Integer>> {

        private static final long serialVersionUID = 1L;

        @Override
        public Tuple3<Integer, Byte, Integer> map(RowData row) {
            return Tuple3.of(
                    getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(),
                    row.getBinary(0)[0],
                    row.getInt(1));
        }
    }
}
