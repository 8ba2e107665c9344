package io.lancegateway.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.lancegateway.client.StageOptions;
import io.lancegateway.client.StageStream;
import io.lancegateway.client.StagedWrite;
import io.lancegateway.client.Tables;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.WriteMode;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.common.JobID;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What becomes of staged rows when tasks die and come back. */
class CommitITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    private static final ArrowSchema SCHEMA =
            ArrowSchema.of(ArrowField.nullable("id", ArrowType.INT64));

    private String table;
    private long nextId;

    @BeforeEach
    void nameTable() {
        table = newTable();
        nextId = 0;
    }

    @Test
    void twoCommittablesOfOneCheckpointLandOnceEach() throws Exception {
        Committable first;
        Committable second;
        try (Aggregator one = aggregator(false)) {
            first = one.checkpoint(1, stage(10, false)).get(0);
        }
        try (Aggregator other = aggregator(false)) {
            second = other.checkpoint(1, stage(10, false)).get(0);
        }

        commit(first);
        commit(second);
        assertThat(count(table)).isEqualTo(20);
        int history = versions(table).size();

        commit(first);
        commit(second);
        assertThat(count(table)).isEqualTo(20);
        assertThat(versions(table)).hasSize(history);
    }

    @Test
    void aCheckpointWithoutRowsBeforeACrashLosesNothingAndMakesNoVersion() throws Exception {
        Committable first;
        OperatorSubtaskState second;
        try (Aggregator before = aggregator(false)) {
            first = before.checkpoint(1, stage(5, false)).get(0);
            before.harness.snapshot(1, 1);
            commit(first);
            assertThat(before.checkpoint(2)).isEmpty();
            second = before.harness.snapshot(2, 2);
        }
        try (Aggregator after = aggregator(false, second, 2)) {
            // The committer commits what it finds in its state, whether or not it was committed.
            commit(first);
            commit(after.checkpoint(3, stage(5, false)).get(0));
        }

        assertThat(count(table)).isEqualTo(10);
        assertThat(versions(table)).hasSize(3);
    }

    @Test
    void aRewindToAnOldSavepointCommitsAgainWithoutLoss() throws Exception {
        OperatorSubtaskState first;
        try (Aggregator before = aggregator(false)) {
            commit(before.checkpoint(1, stage(5, false)).get(0));
            first = before.harness.snapshot(1, 1);
            commit(before.checkpoint(2, stage(5, false)).get(0));
        }
        try (Aggregator rewound = aggregator(false, first, 1)) {
            commit(rewound.checkpoint(2, stage(5, false)).get(0));
        }

        assertThat(count(table)).isEqualTo(15);
    }

    @Test
    void aJobWithoutCheckpointsThatRunsAgainDoesNotCommitTwice() throws Exception {
        JobID job = new JobID();
        try (Aggregator attempt = new Aggregator(spec(false), job, false, null, 0)) {
            commit(attempt.finish(1, stage(5, false)).get(0));
        }
        try (Aggregator again = new Aggregator(spec(false), job, false, null, 0)) {
            commit(again.finish(1, stage(5, false)).get(0));
        }
        assertThat(count(table)).isEqualTo(5);

        try (Aggregator otherJob = new Aggregator(spec(false), new JobID(), false, null, 0)) {
            commit(otherJob.finish(1, stage(5, false)).get(0));
        }
        assertThat(count(table)).isEqualTo(10);
    }

    @Test
    void aJobWithoutCheckpointsThatGoesOnFromASavepointLosesNothing() throws Exception {
        JobID job = new JobID();
        OperatorSubtaskState savepoint;
        try (Aggregator before = new Aggregator(spec(false), job, false, null, 0)) {
            Committable first = before.checkpoint(1, stage(5, false)).get(0);
            savepoint = before.harness.snapshot(1, 1);
            commit(first);
        }
        try (Aggregator after = new Aggregator(spec(false), job, false, savepoint, 1)) {
            commit(after.finish(2, stage(5, false)).get(0));
        }

        assertThat(count(table)).isEqualTo(10);
    }

    @Test
    void rowsOfEndedAndOfRunningWritersMakeOneCommittable() throws Exception {
        try (Aggregator aggregator = aggregator(false)) {
            aggregator.receive(7, stage(3, false));

            List<Committable> committables = aggregator.checkpoint(7, stage(4, false));

            assertThat(committables).hasSize(1);
            commit(committables.get(0));
        }
        assertThat(count(table)).isEqualTo(7);
    }

    @Test
    void theEndOfInputCarriesTheIdOfTheWriters() throws Exception {
        try (Aggregator aggregator = aggregator(false)) {
            aggregator.checkpoint(4, stage(1, false));
            aggregator.finish(5, stage(1, false));

            assertThat(aggregator.ids).containsExactly(4L, 5L);
        }
    }

    @Test
    void aRunThatIsRestoredOverwritesOnce() throws Exception {
        try (Aggregator old = aggregator(false)) {
            commit(old.checkpoint(1, stage(9, false)).get(0));
        }
        OperatorSubtaskState first;
        Committable replaced;
        try (Aggregator before = aggregator(true)) {
            replaced = before.checkpoint(1, stage(5, true)).get(0);
            first = before.harness.snapshot(1, 1);
            commit(replaced);
        }
        try (Aggregator after = aggregator(true, first, 1)) {
            commit(replaced);
            commit(after.checkpoint(2, stage(5, true)).get(0));
        }

        assertThat(count(table)).isEqualTo(10);
    }

    @Test
    void anOverwritingRunWithoutRowsEmptiesTheTableOnlyAtItsEnd() throws Exception {
        try (Aggregator old = aggregator(false)) {
            commit(old.checkpoint(1, stage(9, false)).get(0));
        }
        try (Aggregator overwriting = aggregator(true)) {
            assertThat(overwriting.checkpoint(1)).isEmpty();
            commit(overwriting.finish(2).get(0));
        }

        assertThat(count(table)).isZero();
    }

    private SinkSpec spec(boolean overwrite) {
        return new SinkSpec(
                new GatewayAddress(gateway().uri()),
                Tables.named(table),
                ROW_TYPE,
                overwrite,
                0,
                -1,
                0,
                NewTable.byDefault(),
                null);
    }

    private Aggregator aggregator(boolean overwrite) throws Exception {
        return aggregator(overwrite, null, 0);
    }

    private Aggregator aggregator(boolean overwrite, OperatorSubtaskState state, long checkpoint)
            throws Exception {
        return new Aggregator(spec(overwrite), new JobID(), true, state, checkpoint);
    }

    private StagedRows stage(int rows, boolean overwrite) throws Exception {
        BeginWriteRequest.Builder begin =
                BeginWriteRequest.newBuilder()
                        .setTable(Tables.named(table))
                        .setSchema(ByteString.copyFrom(SCHEMA.toIpc()))
                        .setCreate(CreateOptions.getDefaultInstance())
                        .setMode(
                                overwrite
                                        ? WriteMode.WRITE_MODE_OVERWRITE
                                        : WriteMode.WRITE_MODE_APPEND);
        if (overwrite) {
            begin.setRunId(UUID.randomUUID().toString());
        }
        WriteHandle write = client().beginWrite(begin.build());
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        for (int i = 0; i < rows; i++) {
            ((FixedWidthBuilder) batch.column(0)).appendLong(nextId++);
            batch.endRow();
        }
        try (StageStream stream = client().stage(write, StageOptions.defaults())) {
            stream.write(batch);
            StagedWrite staged = stream.finish();
            return new StagedRows(
                    write.bytes(), write.schema().toIpc(), staged.bytes(), staged.rows());
        }
    }

    private void commit(Committable committable) throws Exception {
        try (LanceCommitter committer =
                new LanceCommitter(spec(false), new UnregisteredMetricsGroup())) {
            committer.commit(List.of(new Request(committable)));
        }
    }
}
