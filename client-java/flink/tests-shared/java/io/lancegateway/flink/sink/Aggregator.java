package io.lancegateway.flink.sink;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.operators.testutils.MockEnvironmentBuilder;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.CommittableSummary;
import org.apache.flink.streaming.api.connector.sink2.CommittableWithLineage;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;

/** The aggregator of a job, fed by hand. What Flink 1.20 and 2.x share is deprecated there. */
@SuppressWarnings({"deprecation", "removal"})
final class Aggregator implements AutoCloseable {

    final OneInputStreamOperatorTestHarness<
                    CommittableMessage<StagedRows>, CommittableMessage<Committable>>
            harness;

    final List<Long> ids = new ArrayList<>();

    Aggregator(
            SinkSpec spec,
            JobID job,
            boolean checkpoints,
            OperatorSubtaskState state,
            long restored)
            throws Exception {
        harness =
                new OneInputStreamOperatorTestHarness<>(
                        new CommittableAggregator(spec, "sink"),
                        new MockEnvironmentBuilder().setJobID(job).build());
        CheckpointsOfHarness.set(harness, checkpoints);
        if (state != null) {
            harness.setRestoredCheckpointId(restored);
            harness.initializeState(state);
        }
        harness.open();
    }

    void receive(long checkpoint, StagedRows... staged) throws Exception {
        harness.processElement(
                new StreamRecord<>(
                        new CommittableSummary<>(
                                0, 2, checkpoint, staged.length, staged.length, 0)));
        for (StagedRows rows : staged) {
            harness.processElement(
                    new StreamRecord<>(new CommittableWithLineage<>(rows, checkpoint, 0)));
        }
    }

    List<Committable> checkpoint(long checkpoint, StagedRows... staged) throws Exception {
        receive(checkpoint, staged);
        harness.prepareSnapshotPreBarrier(checkpoint);
        return emitted();
    }

    List<Committable> finish(long checkpoint, StagedRows... staged) throws Exception {
        receive(checkpoint, staged);
        harness.getOperator().finish();
        return emitted();
    }

    private List<Committable> emitted() {
        List<Committable> committables = new ArrayList<>();
        for (CommittableMessage<Committable> message : harness.extractOutputValues()) {
            if (message instanceof CommittableWithLineage) {
                CommittableWithLineage<Committable> one =
                        (CommittableWithLineage<Committable>) message;
                committables.add(one.getCommittable());
                ids.add(one.getCheckpointIdOrEOI());
            }
        }
        harness.getOutput().clear();
        return committables;
    }

    @Override
    public void close() throws Exception {
        harness.close();
    }
}
