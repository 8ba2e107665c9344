package io.lancegateway.flink.sink;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.MergeCounts;
import java.io.IOException;
import java.util.Collection;
import javax.annotation.Nullable;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.metrics.MetricGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes committables visible. The gateway knows each by its name and commits it once, so this may
 * repeat any of them at any time. What fails for good fails the job: rows are never dropped.
 */
final class LanceCommitter implements Committer<Committable> {

    private static final Logger LOG = LoggerFactory.getLogger(LanceCommitter.class);

    private final GatewayAddress address;
    @Nullable private final DeclaredIndex index;
    @Nullable private GatewayClient client;
    private volatile long lastVersion;
    private volatile long lastRows;
    private volatile long lastBytes;
    private volatile long lastMillis;
    private volatile MergeCounts lastMerged = MergeCounts.getDefaultInstance();
    private volatile long lastNanos = System.nanoTime();

    LanceCommitter(SinkSpec spec, MetricGroup metrics) {
        this.address = spec.address();
        this.index = spec.index().map(build -> new DeclaredIndex(spec.table(), build)).orElse(null);
        metrics.gauge("lastCommitVersion", () -> lastVersion);
        metrics.gauge("lastCommitRecords", () -> lastRows);
        metrics.gauge("lastCommitBytes", () -> lastBytes);
        metrics.gauge("lastCommitDurationMs", () -> lastMillis);
        if (spec.merges()) {
            metrics.gauge("lastCommitInserted", () -> lastMerged.getNumInserted());
            metrics.gauge("lastCommitUpdated", () -> lastMerged.getNumUpdated());
            metrics.gauge("lastCommitDeleted", () -> lastMerged.getNumDeleted());
        }
        // Since the start, if there was none.
        metrics.gauge(
                "secondsSinceLastCommit", () -> (System.nanoTime() - lastNanos) / 1_000_000_000);
    }

    @Override
    public void commit(Collection<CommitRequest<Committable>> requests) throws IOException {
        for (CommitRequest<Committable> request : requests) {
            commit(request);
        }
    }

    private void commit(CommitRequest<Committable> request) throws IOException {
        Committable committable = request.getCommittable();
        long start = System.nanoTime();
        CommitResponse response;
        try {
            // Waits and repeats, also while the outcome is unknown, up to the client's time limit.
            response = client().commit(committable.sealed());
        } catch (LanceGatewayException failed) {
            throw new IOException(
                    String.format("cannot commit a %s: %s", committable, failed.getMessage()),
                    failed);
        }
        lastNanos = System.nanoTime();
        lastMillis = (lastNanos - start) / 1_000_000;
        lastVersion = response.getVersion();
        lastRows = committable.rows();
        lastBytes = committable.sizeInBytes();
        lastMerged = response.getMerged();
        if (response.getAlreadyCommitted()) {
            LOG.info("Version {} had committed a {} already", response.getVersion(), committable);
            request.signalAlreadyCommitted();
        } else {
            LOG.info("Version {} committed a {}", response.getVersion(), committable);
        }
        if (index != null) {
            index.afterCommit(client());
        }
    }

    private GatewayClient client() {
        if (client == null) {
            client = address.connect();
        }
        return client;
    }

    @Override
    public void close() {
        if (client != null) {
            client.close();
        }
    }
}
