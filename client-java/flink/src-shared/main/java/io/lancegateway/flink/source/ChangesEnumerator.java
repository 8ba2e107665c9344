package io.lancegateway.flink.source;

import io.lancegateway.client.FatalException;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.ScanSplit;
import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.Changes;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.annotation.Nullable;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.metrics.Counter;
import org.apache.flink.util.FlinkRuntimeException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Cuts the changes into parts once, gives each to one reader, and holds the versions that are still
 * to be read.
 */
final class ChangesEnumerator implements SplitEnumerator<ChangesPart, ChangesState> {

    private static final Logger LOG = LoggerFactory.getLogger(ChangesEnumerator.class);

    /** How often it looks whether a hold is to be renewed. */
    private static final long TICK_MS = 250;

    private final SplitEnumeratorContext<ChangesPart> context;
    private final GatewayAddress address;
    private final ChangesSpec spec;
    private final String consumer;
    private final HeldVersion held;
    private final Counter skippedVersions;

    /** Parts that are with no reader, by their numbers. */
    private final TreeMap<Integer, ChangesPart> pending = new TreeMap<>();

    /** For each part the version after which it may be read again. */
    private final Map<Integer, Long> positions = new HashMap<>();

    /** 0: not planned yet. */
    private int parts;

    ChangesEnumerator(
            SplitEnumeratorContext<ChangesPart> context,
            GatewayAddress address,
            ChangesSpec spec,
            ChangesState state) {
        this.context = context;
        this.address = address;
        this.spec = spec;
        String given = spec.feed().consumerId();
        this.consumer = given == null ? state.consumer() : given;
        this.held = new HeldVersion(address, spec.table(), consumer);
        this.skippedVersions = context.metricGroup().counter("skippedVersions");
        this.parts = state.parts();
        state.pending().forEach(this::keep);
    }

    private void keep(ChangesPart part) {
        pending.put(part.part(), part);
        positions.put(part.part(), part.after());
    }

    @Override
    public void start() {
        context.metricGroup().setUnassignedSplitsGauge(() -> (long) pending.size());
        if (parts == 0) {
            int readers = context.currentParallelism();
            context.callAsync(() -> plan(readers), this::planned);
        }
        context.callAsync(this::renewHold, this::holdRenewed, TICK_MS, TICK_MS);
    }

    private List<ChangesPart> plan(int readers) {
        try (GatewayClient client = address.connect()) {
            ScanPlan plan = plan(client, readers);
            // Refuses what cannot be read before anything is.
            spec.reader(plan.schema());
            long until = spec.feed().until();
            List<ChangesPart> planned = new ArrayList<>();
            for (ScanSplit split : plan.splits()) {
                planned.add(
                        ChangesPart.of(
                                split.ticket(),
                                until == ChangeFeed.LATEST ? plan.version() : until));
            }
            ChangesPart first = planned.get(0);
            if (first.initial() && until > 0 && first.after() > until) {
                throw NoRestart.because(
                        String.format(
                                "changes of table %s begin with the rows of version %d, which is"
                                        + " behind version %d, where they end: set"
                                        + " 'scan.startup.mode'",
                                spec.tableName(), first.after(), until),
                        null);
            }
            LOG.info(
                    "Reading changes of table {} in {} parts after version {}, as {}",
                    spec.tableName(),
                    planned.size(),
                    first.after(),
                    consumer);
            return planned;
        }
    }

    private ScanPlan plan(GatewayClient client, int readers) {
        try {
            return client.plan(spec.request(readers));
        } catch (FatalException refused) {
            if (refused.reason() == Reason.UNSUPPORTED && readers > 1) {
                // Rows that have no name at all are all in one part.
                return plan(client, 1);
            }
            if (refused.reason() == Reason.TABLE_VERSION_NOT_FOUND && spec.feed().skipsMissing()) {
                return planFromOldest(client, readers, refused);
            }
            throw refused;
        }
    }

    private ScanPlan planFromOldest(GatewayClient client, int readers, FatalException missing) {
        Changes oldest = Changes.newBuilder().setAfterOldest(true).setParts(readers).build();
        ScanPlan plan = client.plan(spec.request(oldest));
        long after = ChangesPart.of(plan.splits().get(0).ticket(), ChangesPart.NO_END).after();
        LOG.warn(
                "Changes of table {} begin after version {}, the oldest one there is",
                spec.tableName(),
                after,
                missing);
        spec.startVersion().ifPresent(start -> skippedVersions.inc(after - start));
        return plan;
    }

    private void planned(@Nullable List<ChangesPart> planned, @Nullable Throwable failure) {
        if (failure != null) {
            String what = "cannot plan to read the changes of table " + spec.tableName();
            boolean isMissing =
                    failure instanceof LanceGatewayException
                            && ((LanceGatewayException) failure).reason()
                                    == Reason.TABLE_VERSION_NOT_FOUND;
            throw isMissing
                    ? NoRestart.because(what, failure)
                    : new FlinkRuntimeException(what + ": " + failure.getMessage(), failure);
        }
        parts = planned.size();
        planned.forEach(this::keep);
        holdSmallest();
        assign();
        context.registeredReaders().keySet().forEach(this::tellTheEnd);
    }

    /** Gives each part to the reader whose it is, if that is there. */
    private void assign() {
        Iterator<ChangesPart> waiting = pending.values().iterator();
        while (waiting.hasNext()) {
            ChangesPart part = waiting.next();
            int subtask = part.part() % context.currentParallelism();
            if (context.registeredReaders().containsKey(subtask)) {
                context.assignSplit(part, subtask);
                waiting.remove();
            }
        }
    }

    private void tellTheEnd(int subtask) {
        if (spec.feed().until() != ChangeFeed.NEVER) {
            context.signalNoMoreSplits(subtask);
        }
    }

    @Override
    public void addReader(int subtask) {
        if (parts > 0) {
            assign();
            tellTheEnd(subtask);
        }
    }

    @Override
    public void addSplitsBack(List<ChangesPart> returned, int subtask) {
        returned.forEach(this::keep);
        assign();
    }

    @Override
    public void handleSplitRequest(int subtask, @Nullable String hostname) {
        // Readers get their parts unasked.
    }

    @Override
    public void handleSourceEvent(int subtask, SourceEvent event) {
        if (!(event instanceof ReadPositions)) {
            throw new IllegalArgumentException("unknown event of a reader: " + event);
        }
        positions.putAll(((ReadPositions) event).afterOfPart());
        // After a restore readers tell one by one. Of a part that had ended none tells.
        if (positions.size() == parts || spec.feed().until() != ChangeFeed.NEVER) {
            holdSmallest();
        }
    }

    private void holdSmallest() {
        positions.values().stream()
                .filter(after -> after != ReadPositions.DONE)
                .min(Long::compare)
                .ifPresent(held::want);
        context.callAsync(this::renewHold, this::holdRenewed);
    }

    private Void renewHold() {
        held.renew();
        return null;
    }

    private void holdRenewed(@Nullable Void nothing, @Nullable Throwable failure) {
        if (failure != null) {
            LOG.warn(
                    "Versions of table {} are not held for now; a cleanup may remove them",
                    spec.tableName(),
                    failure);
        }
    }

    @Override
    public ChangesState snapshotState(long checkpointId) {
        return new ChangesState(consumer, parts, List.copyOf(pending.values()));
    }

    @Override
    public void close() {
        boolean isDone =
                parts > 0
                        && positions.size() == parts
                        && positions.values().stream().allMatch(v -> v == ReadPositions.DONE);
        if (isDone) {
            held.release();
        }
        held.close();
    }
}
