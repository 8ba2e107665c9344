package io.lancegateway.flink.index;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.TablePath;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DropIndexRequest;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.IndexOptimization;
import io.lancegateway.proto.v1.IndexStatistics;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.OptimizeIndexRequest;
import io.lancegateway.proto.v1.Table;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.List;
import java.util.Map;

/** The indexes of one table. Jobs are waited for to their end. */
public final class Indexes implements AutoCloseable {

    private final GatewayClient client;
    private final Table table;

    public Indexes(GatewayAddress address, String path) {
        this.table = TablePath.parse(path);
        this.client = address.connect();
    }

    /**
     * Builds an index.
     *
     * @param requestId the same in each repeat of the same build
     * @param column as people write it: a column of this name, else the way down into structs, with
     *     dots
     * @return what was built
     * @throws IOException if the build failed; says why
     */
    public Job create(String requestId, String column, String type, Map<String, String> options)
            throws IOException {
        IndexBuild build = IndexOptions.build(path(column), type, options);
        return done(
                client.createIndex(
                        CreateIndexRequest.newBuilder()
                                .setRequestId(requestId)
                                .setTable(table)
                                .setBuild(build)
                                .build()));
    }

    /** Brings later rows into indexes. */
    public Job optimize(String requestId, IndexOptimization what) throws IOException {
        return done(
                client.optimizeIndex(
                        OptimizeIndexRequest.newBuilder()
                                .setRequestId(requestId)
                                .setTable(table)
                                .setOptimization(what)
                                .build()));
    }

    /** Removes an index, and gives the version that has it no longer. */
    public long drop(String requestId, String name) {
        return client.dropIndex(
                        DropIndexRequest.newBuilder()
                                .setRequestId(requestId)
                                .setTable(table)
                                .setName(name)
                                .build())
                .getVersion();
    }

    public List<IndexStatistics> list() {
        return client.listIndexes(table);
    }

    private List<String> path(String column) {
        DescribeTableRequest request = DescribeTableRequest.newBuilder().setTable(table).build();
        ArrowSchema schema =
                ArrowSchema.fromIpc(
                        client.describeTable(request).getSchema().asReadOnlyByteBuffer());
        return schema.indexOf(column) >= 0 ? List.of(column) : List.of(column.split("\\.", -1));
    }

    private Job done(Job started) throws IOException {
        Job job;
        try {
            job = client.awaitJob(started, step -> {});
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            client.cancelJob(started.getId());
            throw (IOException)
                    new InterruptedIOException("interrupted: the job is cancelled")
                            .initCause(interrupted);
        }
        if (job.getState() != JobState.JOB_STATE_SUCCEEDED) {
            String state = job.getState().name().substring("JOB_STATE_".length());
            String why =
                    job.getReason().isEmpty()
                            ? job.getMessage()
                            : job.getReason() + ": " + job.getMessage();
            throw new IOException(String.format("job %s is %s: %s", job.getId(), state, why));
        }
        return job;
    }

    @Override
    public void close() {
        client.close();
    }
}
