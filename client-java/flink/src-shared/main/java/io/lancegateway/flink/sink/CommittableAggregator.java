package io.lancegateway.flink.sink;

import com.google.protobuf.ByteString;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.PreparedCommit;
import io.lancegateway.client.Reason;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.CommitId;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.annotation.Nullable;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.CommittableSummary;
import org.apache.flink.streaming.api.connector.sink2.CommittableWithLineage;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes one committable of what all writers staged for a checkpoint. Runs once, between the writers
 * and the committer. A checkpoint without rows makes none.
 *
 * <p>A committable is named by an epoch, which is drawn anew at each start and restore, and a
 * number that counts within it. A replayed committable keeps its name; one made after a rewind has
 * a new one. A job without checkpoints commits once, at its end, and starts from nothing if it
 * fails before: its epoch is the same in every attempt, so that an attempt whose commit was not
 * heard of is not repeated. One that goes on from a savepoint has committed before.
 */
final class CommittableAggregator extends AbstractStreamOperator<CommittableMessage<Committable>>
        implements OneInputStreamOperator<
                CommittableMessage<StagedRows>, CommittableMessage<Committable>> {

    private static final long serialVersionUID = 1L;

    private static final Logger LOG = LoggerFactory.getLogger(CommittableAggregator.class);

    private static final ListStateDescriptor<byte[]> RUN =
            new ListStateDescriptor<>("run", BytePrimitiveArraySerializer.INSTANCE);

    private static final String JOB_ID = "flink.job-id";

    private final SinkSpec spec;

    /** Drawn when the job was built: tells the sinks of a job apart. */
    private final String sinkId;

    private transient List<StagedRows> staged;
    private transient ListState<byte[]> state;
    private transient RunState run;
    private transient String epoch;
    private transient long seq;
    private transient long newestInputId;
    private transient long newestOutputId;
    @Nullable private transient GatewayClient client;
    @Nullable private transient byte[] overwrite;

    CommittableAggregator(SinkSpec spec, String sinkId) {
        this.spec = spec;
        this.sinkId = sinkId;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        staged = new ArrayList<>();
        String jobId = getRuntimeContext().getJobInfo().getJobId().toHexString();
        boolean startsOver = !context.isRestored() && !Checkpoints.enabled(getContainingTask());
        epoch =
                startsOver
                        ? UUID.nameUUIDFromBytes((sinkId + jobId).getBytes(StandardCharsets.UTF_8))
                                .toString()
                        : UUID.randomUUID().toString();
        state = context.getOperatorStateStore().getListState(RUN);
        run = new RunState(epoch, false);
        for (byte[] restored : state.get()) {
            run = RunState.deserialize(restored);
        }
        newestOutputId = context.getRestoredCheckpointId().orElse(0);
    }

    @Override
    public void processElement(StreamRecord<CommittableMessage<StagedRows>> element) {
        CommittableMessage<StagedRows> message = element.getValue();
        newestInputId = Math.max(newestInputId, checkpointId(message));
        if (message instanceof CommittableWithLineage) {
            staged.add(((CommittableWithLineage<StagedRows>) message).getCommittable());
        }
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpointId) throws Exception {
        super.prepareSnapshotPreBarrier(checkpointId);
        if (!staged.isEmpty()) {
            emit(checkpointId);
        }
    }

    @Override
    public void finish() throws Exception {
        if (!staged.isEmpty() || emptiesTable()) {
            // The committer waits for this id: the one that ended writers gave theirs.
            emit(Math.max(newestInputId, newestOutputId + 1));
        }
        super.finish();
    }

    /** Whether the run overwrites a table, and had no rows to do it with. */
    private boolean emptiesTable() {
        if (!spec.overwrite() || run.committed()) {
            return false;
        }
        try {
            handle();
            return true;
        } catch (LanceGatewayException failed) {
            if (failed.reason() == Reason.TABLE_NOT_FOUND) {
                return false;
            }
            throw failed;
        }
    }

    private void emit(long checkpointId) {
        long rows = 0;
        List<byte[]> parts = new ArrayList<>();
        for (StagedRows part : staged) {
            rows += part.rows();
            parts.add(part.staged());
        }
        CommitId id = CommitId.newBuilder().setEpoch(epoch).setSeq(++seq).build();
        Map<String, String> properties =
                Map.of(JOB_ID, getRuntimeContext().getJobInfo().getJobId().toHexString());
        PreparedCommit prepared = client().prepareCommit(id, handle(), parts, properties);
        LOG.info(
                "Prepared {} rows of {} writes for checkpoint {}",
                rows,
                parts.size(),
                checkpointId);
        staged.clear();
        run = run.withCommit();
        newestOutputId = checkpointId;
        output.collect(new StreamRecord<>(oneCommittable(checkpointId)));
        output.collect(
                new StreamRecord<>(
                        new CommittableWithLineage<>(
                                new Committable(
                                        prepared.committable(), rows, prepared.sizeInBytes()),
                                checkpointId,
                                0)));
    }

    // What Flink 1.20 and 2.x have in common is deprecated in the latter.

    @SuppressWarnings({"deprecation", "removal"})
    private static long checkpointId(CommittableMessage<?> message) {
        return message.getCheckpointIdOrEOI();
    }

    @SuppressWarnings("deprecation")
    private static CommittableSummary<Committable> oneCommittable(long checkpointId) {
        return new CommittableSummary<>(0, 1, checkpointId, 1, 1, 0);
    }

    /** What the rows are prepared with: the writers' handle, or one that names the run. */
    private byte[] handle() {
        if (!spec.overwrite()) {
            return staged.get(0).write();
        }
        if (overwrite == null) {
            BeginWriteRequest.Builder begin =
                    BeginWriteRequest.newBuilder()
                            .setTable(spec.table())
                            .setMode(TableOpener.mode(spec))
                            .setRunId(run.runId());
            if (!staged.isEmpty()) {
                begin.setSchema(ByteString.copyFrom(staged.get(0).schema()))
                        .setCreate(spec.createOptions());
            }
            overwrite = client().beginWrite(begin.build()).bytes();
        }
        return overwrite;
    }

    private GatewayClient client() {
        if (client == null) {
            client = spec.address().connect();
        }
        return client;
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        state.update(List.of(run.serialize()));
    }

    @Override
    public void close() throws Exception {
        if (client != null) {
            client.close();
            client = null;
        }
        super.close();
    }
}
