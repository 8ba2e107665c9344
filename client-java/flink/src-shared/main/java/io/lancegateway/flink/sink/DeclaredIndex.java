package io.lancegateway.flink.sink;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.IndexOptimization;
import io.lancegateway.proto.v1.IndexStatistics;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.OptimizeIndexRequest;
import io.lancegateway.proto.v1.Table;
import java.util.Optional;
import javax.annotation.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sees to it that a table has the index that its options declare: looks after each commit until it
 * is there, and has the gateway build it in the background. Rows are committed without it: what
 * fails here is told in the log, and fails no job.
 */
final class DeclaredIndex {

    private static final Logger LOG = LoggerFactory.getLogger(DeclaredIndex.class);

    private final Table table;
    private final IndexBuild build;
    private boolean settled;
    @Nullable private String jobId;

    /** Rows that were too few to train the index when it was tried last. */
    private long tooFew;

    DeclaredIndex(Table table, IndexBuild build) {
        this.table = table;
        this.build = build;
    }

    void afterCommit(GatewayClient client) {
        if (settled) {
            return;
        }
        try {
            look(client);
        } catch (LanceGatewayException failed) {
            LOG.warn("Cannot see to the index of {}: {}", table, failed.getMessage());
        }
    }

    private void look(GatewayClient client) {
        if (jobId != null && (isRunning(client) || settled)) {
            return;
        }
        Optional<IndexStatistics> found =
                client.listIndexes(table).stream()
                        .filter(index -> index.getName().equals(build.getName()))
                        .findFirst();
        if (found.isEmpty()) {
            CreateIndexRequest request =
                    CreateIndexRequest.newBuilder().setTable(table).setBuild(build).build();
            started(client.createIndex(request));
        } else if (!found.get().getDeferred()) {
            settled = true;
        } else if (found.get().getNumUnindexedRows() >= 2 * tooFew) {
            tooFew = found.get().getNumUnindexedRows();
            IndexOptimization what =
                    IndexOptimization.newBuilder().addNames(build.getName()).build();
            started(
                    client.optimizeIndex(
                            OptimizeIndexRequest.newBuilder()
                                    .setTable(table)
                                    .setOptimization(what)
                                    .build()));
        }
    }

    private void started(Job job) {
        jobId = job.getId();
        LOG.info("Job {} of the gateway builds the index {}", jobId, build.getName());
    }

    /** Whether the last job goes on. One that failed is not started again. */
    private boolean isRunning(GatewayClient client) {
        Job job;
        try {
            job = client.getJob(jobId);
        } catch (LanceGatewayException failed) {
            if (failed.reason() == Reason.JOB_NOT_FOUND) {
                return false;
            }
            throw failed;
        }
        if (job.getState() == JobState.JOB_STATE_FAILED) {
            LOG.warn(
                    "The index {} was not built: {}: {}",
                    build.getName(),
                    job.getReason(),
                    job.getMessage());
            settled = true;
        }
        return job.getState() == JobState.JOB_STATE_RUNNING;
    }
}
