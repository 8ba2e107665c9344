package io.lancegateway.flink.sink;

import java.util.UUID;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessageTypeInfo;
import org.apache.flink.streaming.api.connector.sink2.SupportsPreCommitTopology;
import org.apache.flink.streaming.api.connector.sink2.SupportsPreWriteTopology;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.operators.InputFormatOperatorFactory;
import org.apache.flink.streaming.api.transformations.LegacySourceTransformation;
import org.apache.flink.streaming.api.transformations.WithBoundedness;
import org.apache.flink.table.data.RowData;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writers in any number stage rows, those of one key always the same writer; one aggregator makes a
 * committable of each checkpoint, one committer commits it.
 */
public final class TableSink
        implements PortableSink<RowData>,
                SupportsPreWriteTopology<RowData>,
                SupportsCommitter<Committable>,
                SupportsPreCommitTopology<StagedRows, Committable> {

    private static final long serialVersionUID = 1L;

    private static final Logger LOG = LoggerFactory.getLogger(TableSink.class);

    private static final String AGGREGATOR = "Lance Committable Aggregator";

    private final SinkSpec spec;
    private final boolean needsCheckpoints;
    private final String sinkId = UUID.randomUUID().toString();

    /** A sink that may also wait for the savepoint that its job is stopped with. */
    public TableSink(SinkSpec spec) {
        this(spec, false);
    }

    /**
     * @param needsCheckpoints whether an endless job without checkpoints is refused
     */
    public TableSink(SinkSpec spec, boolean needsCheckpoints) {
        this.spec = spec;
        this.needsCheckpoints = needsCheckpoints;
    }

    @Override
    public DataStream<RowData> addPreWriteTopology(DataStream<RowData> rows) {
        if (!spec.merges() || spec.key().isEmpty()) {
            return rows;
        }
        // Distributed as a keyed stream is, but none: of one, batch mode sorts the rows by their
        // keys, and does not keep the order of those of one key.
        return new DataStream<>(
                rows.getExecutionEnvironment(),
                rows.keyBy(new KeyHash(spec.rowType(), spec.key()), Types.INT).getTransformation());
    }

    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
        return new LanceSinkWriter(spec, context);
    }

    @Override
    public Committer<Committable> createCommitter(CommitterInitContext context) {
        // All committables come to the first subtask: the gauges of others would mislead.
        boolean commits = context.getTaskInfo().getIndexOfThisSubtask() == 0;
        return new LanceCommitter(
                spec, commits ? context.metricGroup() : new UnregisteredMetricsGroup());
    }

    @Override
    public SimpleVersionedSerializer<Committable> getCommittableSerializer() {
        return new CommittableSerializer();
    }

    @Override
    public SimpleVersionedSerializer<StagedRows> getWriteResultSerializer() {
        return new StagedRowsSerializer();
    }

    @Override
    public DataStream<CommittableMessage<Committable>> addPreCommitTopology(
            DataStream<CommittableMessage<StagedRows>> writes) {
        checkCommits(writes);
        SingleOutputStreamOperator<CommittableMessage<Committable>> committables =
                writes.global()
                        .transform(
                                AGGREGATOR,
                                CommittableMessageTypeInfo.of(CommittableSerializer::new),
                                new CommittableAggregator(spec, sinkId));
        return committables.setParallelism(1).setMaxParallelism(1).global();
    }

    /** An endless job commits at checkpoints, or when it is stopped with a savepoint. */
    private void checkCommits(DataStream<?> writes) {
        if (writes.getExecutionEnvironment().getCheckpointConfig().isCheckpointingEnabled()) {
            return;
        }
        for (Transformation<?> step : writes.getTransformation().getTransitivePredecessors()) {
            if (isEndless(step)) {
                String problem =
                        "a streaming INSERT into a Lance table commits at checkpoints, but"
                                + " checkpointing is off and source '"
                                + step.getName()
                                + "' never ends: set 'execution.checkpointing.interval'";
                if (needsCheckpoints) {
                    throw new IllegalStateException(problem);
                }
                LOG.warn(problem);
                return;
            }
        }
    }

    private static boolean isEndless(Transformation<?> step) {
        if (step instanceof LegacySourceTransformation
                && ((LegacySourceTransformation<?>) step).getOperatorFactory()
                        instanceof InputFormatOperatorFactory) {
            // VALUES, for one. It ends, but Flink calls it unbounded.
            return false;
        }
        return step instanceof WithBoundedness
                && ((WithBoundedness) step).getBoundedness() == Boundedness.CONTINUOUS_UNBOUNDED;
    }
}
