package io.lancegateway.flink.source;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.ScanSplit;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.VersionSelector;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import javax.annotation.Nullable;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.util.FlinkRuntimeException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Plans a bounded scan once, and hands its splits to readers that ask. */
final class LanceEnumerator implements SplitEnumerator<LanceSplit, ScanState> {

    private static final Logger LOG = LoggerFactory.getLogger(LanceEnumerator.class);

    /** Splits a reader should get, so that no reader waits long for the last one. */
    private static final int SPLITS_PER_READER = 4;

    /** No split is made smaller for the sake of more readers. */
    private static final long MIN_SPLIT_BYTES = 8L << 20;

    private final SplitEnumeratorContext<LanceSplit> context;
    private final GatewayAddress address;
    private final ScanSpec spec;
    private final Deque<LanceSplit> pending;
    private final Set<Integer> waiting = new LinkedHashSet<>();
    private boolean planned;

    LanceEnumerator(
            SplitEnumeratorContext<LanceSplit> context,
            GatewayAddress address,
            ScanSpec spec,
            ScanState state) {
        this.context = context;
        this.address = address;
        this.spec = spec;
        this.planned = state.planned();
        this.pending = new ArrayDeque<>(state.pending());
    }

    @Override
    public void start() {
        context.metricGroup().setUnassignedSplitsGauge(() -> (long) pending.size());
        if (!planned) {
            int readers = context.currentParallelism();
            context.callAsync(() -> plan(readers), this::planned);
        }
    }

    private List<LanceSplit> plan(int readers) {
        try (GatewayClient client = address.connect()) {
            return spec.counting() ? List.of(count(client)) : scan(client, readers);
        }
    }

    private List<LanceSplit> scan(GatewayClient client, int readers) {
        ScanPlan plan = client.plan(spec.request());
        // Refuses what cannot be read before anything is.
        spec.reader(plan.schema());
        long wished =
                Math.max(MIN_SPLIT_BYTES, plan.bytes() / ((long) readers * SPLITS_PER_READER));
        boolean coarse = plan.splits().size() < readers * SPLITS_PER_READER;
        if (readers > 1 && coarse && plan.bytes() > MIN_SPLIT_BYTES && !spec.request().hasLimit()) {
            plan = client.plan(finer(plan.version(), wished));
        }
        LOG.info("Reading version {} in {} splits", plan.version(), plan.splits().size());
        List<LanceSplit> splits = new ArrayList<>();
        for (ScanSplit split : plan.splits()) {
            splits.add(
                    new LanceSplit(
                            Integer.toString(splits.size()), split.ticket(), split.rows(), 0));
        }
        return splits;
    }

    private ScanRequest finer(long version, long splitBytes) {
        return spec.request().toBuilder()
                .setVersion(VersionSelector.newBuilder().setVersion(version))
                .setSplitBytes(splitBytes)
                .build();
    }

    private LanceSplit count(GatewayClient client) {
        ScanRequest request = spec.request();
        CountRowsRequest.Builder count = CountRowsRequest.newBuilder().setTable(request.getTable());
        if (request.hasVersion()) {
            count.setVersion(request.getVersion());
        }
        if (request.hasFilter()) {
            count.setFilter(request.getFilter());
        }
        long rows = client.countRows(count.build()).getNumRows();
        return new LanceSplit("count", new byte[0], rows, 0);
    }

    private void planned(@Nullable List<LanceSplit> splits, @Nullable Throwable failure) {
        if (failure != null) {
            throw new FlinkRuntimeException(
                    "cannot plan the scan: " + failure.getMessage(), failure);
        }
        pending.addAll(splits);
        planned = true;
        List<Integer> readers = new ArrayList<>(waiting);
        waiting.clear();
        readers.forEach(this::assign);
    }

    @Override
    public void handleSplitRequest(int subtask, @Nullable String hostname) {
        if (!planned) {
            waiting.add(subtask);
        } else if (context.registeredReaders().containsKey(subtask)) {
            assign(subtask);
        }
    }

    private void assign(int subtask) {
        if (!context.registeredReaders().containsKey(subtask)) {
            return;
        }
        LanceSplit split = pending.poll();
        if (split == null) {
            context.signalNoMoreSplits(subtask);
        } else {
            context.assignSplit(split, subtask);
        }
    }

    @Override
    public void addSplitsBack(List<LanceSplit> splits, int subtask) {
        splits.forEach(pending::addFirst);
    }

    @Override
    public void addReader(int subtask) {
        // Readers ask for splits themselves.
    }

    @Override
    public ScanState snapshotState(long checkpointId) {
        return new ScanState(planned, List.copyOf(pending));
    }

    @Override
    public void close() {
        // The connection lasts as long as the planning.
    }
}
