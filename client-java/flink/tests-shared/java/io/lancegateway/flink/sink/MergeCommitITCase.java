package io.lancegateway.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.GatewayOptions;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.StageOptions;
import io.lancegateway.client.StageStream;
import io.lancegateway.client.StagedWrite;
import io.lancegateway.client.Tables;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.types.ChangeAppender;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.WriteMode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What becomes of staged changes when they are committed late, together, again or out of order. */
class MergeCommitITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType)
                    DataTypes.ROW(
                                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                                    DataTypes.FIELD("name", DataTypes.STRING()))
                            .getLogicalType();

    private String table;

    @BeforeEach
    void nameTable() {
        table = newTable();
    }

    @Test
    void twoCheckpointsThatAreCommittedTogetherApplyInTheirOrderAsOneVersionEach()
            throws Exception {
        try (Aggregator aggregator = aggregator(null, 0)) {
            Committable first = aggregator.checkpoint(1, stage(upsert(1, "a"))).get(0);
            Committable second = aggregator.checkpoint(2, stage(upsert(1, "b"))).get(0);
            int before = versions(table).size();

            commit(first, second);

            assertThat(rows()).containsExactly("+I[1, b]");
            assertThat(versions(table)).hasSize(before + 2);
        }
    }

    @Test
    void aCheckpointThatIsCommittedBeforeAnEarlierOneIsRefusedForNowAndWaits() throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        try (Aggregator aggregator = aggregator(null, 0)) {
            Committable first = aggregator.checkpoint(1, stage(upsert(1, "a"))).get(0);
            Committable second = aggregator.checkpoint(2, stage(upsert(1, "b"))).get(0);
            int before = versions(table).size();
            GatewayOptions hasty =
                    GatewayOptions.builder(gateway().uri())
                            .commitTimeout(Duration.ofMillis(500))
                            .build();
            try (GatewayClient client = GatewayClient.connect(hasty)) {
                assertThatThrownBy(() -> client.commit(second.sealed()))
                        .isInstanceOfSatisfying(
                                LanceGatewayException.class,
                                e -> assertThat(e.reason()).isEqualTo(Reason.COMMIT_OUT_OF_ORDER));
            }
            assertThat(versions(table)).hasSize(before);

            Future<?> late =
                    executor.submit(
                            () -> {
                                commit(second);
                                return null;
                            });
            commit(first);
            late.get();

            assertThat(rows()).containsExactly("+I[1, b]");
            assertThat(versions(table)).hasSize(before + 2);
        } finally {
            executor.shutdownNow();
        }
    }

    @Test
    void whatWasPendingAtARestoreComesBeforeWhatIsNew() throws Exception {
        Committable pending;
        OperatorSubtaskState state;
        try (Aggregator before = aggregator(null, 0)) {
            commit(before.checkpoint(1, stage(upsert(1, "a"), upsert(2, "a"))).get(0));
            pending = before.checkpoint(2, stage(upsert(1, "b"), delete(2))).get(0);
            state = before.harness.snapshot(2, 2);
        }
        try (Aggregator after = aggregator(state, 2)) {
            // The committer commits what it finds in its state, before anything new comes.
            commit(pending);
            commit(after.checkpoint(3, stage(upsert(1, "c"))).get(0));
            int history = versions(table).size();

            commit(pending);

            assertThat(rows()).containsExactly("+I[1, c]");
            assertThat(versions(table)).hasSize(history);
        }
    }

    @Test
    void streamsOfOneWriterApplyInTheirOrderAndThoseOfOthersBesideThem() throws Exception {
        try (Aggregator aggregator = aggregator(null, 0)) {
            StagedRows early = stage(upsert(1, "a"), upsert(2, "a"));
            StagedRows other = stage(upsert(3, "a"));
            StagedRows late = stage(upsert(1, "b"), delete(2));

            commit(aggregator.checkpoint(1, early, other, late).get(0));

            assertThat(rows()).containsExactly("+I[1, b]", "+I[3, a]");
        }
    }

    @Test
    void aCommitThatOnlyDeletesLeavesTheOthers() throws Exception {
        try (Aggregator aggregator = aggregator(null, 0)) {
            commit(aggregator.checkpoint(1, stage(upsert(1, "a"), upsert(2, "b"))).get(0));

            commit(aggregator.checkpoint(2, stage(delete(1), delete(7))).get(0));

            assertThat(rows()).containsExactly("+I[2, b]");
        }
    }

    private static GenericRowData upsert(long id, String name) {
        return GenericRowData.ofKind(RowKind.UPDATE_AFTER, id, StringData.fromString(name));
    }

    private static GenericRowData delete(long id) {
        return GenericRowData.ofKind(RowKind.DELETE, id, null);
    }

    private SinkSpec spec() {
        return new SinkSpec(
                new GatewayAddress(gateway().uri()),
                Tables.named(table),
                ROW_TYPE,
                false,
                0,
                -1,
                0,
                new NewTable(Set.of(), Map.of(), "", Map.of(), List.of("id")),
                null);
    }

    private Aggregator aggregator(OperatorSubtaskState state, long checkpoint) throws Exception {
        return new Aggregator(spec(), new JobID(), true, state, checkpoint);
    }

    private StagedRows stage(GenericRowData... changes) throws Exception {
        ArrowSchema schema =
                ArrowSchema.of(List.of(ArrowTypes.columns(ROW_TYPE, Set.of(), name -> 0)));
        WriteHandle write =
                client().beginWrite(
                                BeginWriteRequest.newBuilder()
                                        .setTable(Tables.named(table))
                                        .setSchema(ByteString.copyFrom(schema.toIpc()))
                                        .setCreate(spec().newTable().options())
                                        .setMode(WriteMode.WRITE_MODE_MERGE)
                                        .build());
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        ChangeAppender appender =
                new ChangeAppender(ROW_TYPE, column -> true, List.of("id"), batch);
        for (GenericRowData change : changes) {
            appender.append(change);
        }
        try (StageStream stream = client().stage(write, StageOptions.defaults())) {
            stream.write(batch);
            StagedWrite staged = stream.finish();
            return new StagedRows(
                    write.bytes(), write.schema().toIpc(), staged.bytes(), staged.rows());
        }
    }

    private void commit(Committable... committables) throws Exception {
        try (LanceCommitter committer =
                new LanceCommitter(spec(), new UnregisteredMetricsGroup())) {
            committer.commit(
                    Stream.of(committables).map(Request::new).collect(Collectors.toList()));
        }
    }

    private List<String> rows() throws Exception {
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT NOT NULL, name STRING");
        return query(env, "SELECT * FROM " + table);
    }
}
