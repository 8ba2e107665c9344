package io.lancegateway.client;

import com.google.protobuf.ByteString;
import io.grpc.MethodDescriptor;
import io.lancegateway.client.arrow.ArrowFormatException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.proto.flight.FlightDescriptor;
import io.lancegateway.proto.v1.AbortRequest;
import io.lancegateway.proto.v1.AbortResponse;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.BeginWriteResponse;
import io.lancegateway.proto.v1.CancelJobRequest;
import io.lancegateway.proto.v1.CommitEpoch;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CommitRequest;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CountRowsResponse;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.CreateNamespaceRequest;
import io.lancegateway.proto.v1.CreateNamespaceResponse;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.CreateTableResponse;
import io.lancegateway.proto.v1.DeleteRowsRequest;
import io.lancegateway.proto.v1.DeleteRowsResponse;
import io.lancegateway.proto.v1.DescribeIndexRequest;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DescribeTableResponse;
import io.lancegateway.proto.v1.DropIndexRequest;
import io.lancegateway.proto.v1.DropIndexResponse;
import io.lancegateway.proto.v1.DropNamespaceRequest;
import io.lancegateway.proto.v1.DropNamespaceResponse;
import io.lancegateway.proto.v1.DropTableRequest;
import io.lancegateway.proto.v1.DropTableResponse;
import io.lancegateway.proto.v1.ExchangeCommand;
import io.lancegateway.proto.v1.FullTextSearchRequest;
import io.lancegateway.proto.v1.FullTextSearchResponse;
import io.lancegateway.proto.v1.GetCommitRequest;
import io.lancegateway.proto.v1.GetCommitResponse;
import io.lancegateway.proto.v1.GetJobRequest;
import io.lancegateway.proto.v1.GetStatusRequest;
import io.lancegateway.proto.v1.GetStatusResponse;
import io.lancegateway.proto.v1.HoldVersionRequest;
import io.lancegateway.proto.v1.HoldVersionResponse;
import io.lancegateway.proto.v1.HybridSearchRequest;
import io.lancegateway.proto.v1.HybridSearchResponse;
import io.lancegateway.proto.v1.IndexStatistics;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.ListCommitsRequest;
import io.lancegateway.proto.v1.ListIndexesRequest;
import io.lancegateway.proto.v1.ListJobsRequest;
import io.lancegateway.proto.v1.ListNamespacesRequest;
import io.lancegateway.proto.v1.ListNamespacesResponse;
import io.lancegateway.proto.v1.ListTablesRequest;
import io.lancegateway.proto.v1.ListTablesResponse;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.ListVersionsResponse;
import io.lancegateway.proto.v1.OptimizeIndexRequest;
import io.lancegateway.proto.v1.PrepareCommitRequest;
import io.lancegateway.proto.v1.PrepareCommitResponse;
import io.lancegateway.proto.v1.ReleaseVersionRequest;
import io.lancegateway.proto.v1.ReleaseVersionResponse;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.StartJobRequest;
import io.lancegateway.proto.v1.Table;
import io.lancegateway.proto.v1.TableCommit;
import io.lancegateway.proto.v1.UpdateRowsRequest;
import io.lancegateway.proto.v1.UpdateRowsResponse;
import io.lancegateway.proto.v1.VectorSearchRequest;
import io.lancegateway.proto.v1.VectorSearchResponse;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * A connection to a gateway. For any number of threads.
 *
 * <p>Clients of one class loader with the same options share their connections; the last one that
 * is closed ends them. Each stream has a connection for itself while it runs, so that one that
 * nobody reads holds up no other.
 *
 * <p>Calls without a stream are repeated, with growing waits, when an error says that this may
 * help: every call carries what the gateway needs to take a repeat for what it is. A call that
 * still fails throws a {@link LanceGatewayException}. A thread that is interrupted in such a call
 * gets one as well, of reason {@link Reason#CANCELLED}, and stays interrupted.
 */
public final class GatewayClient implements AutoCloseable {

    private final Connections connections;
    private final UnaryCalls calls;
    private final Set<BatchStream> scans = ConcurrentHashMap.newKeySet();
    private final Set<StageStream> puts = ConcurrentHashMap.newKeySet();
    private final Set<Exchange> exchanges = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean closed = new AtomicBoolean();

    private GatewayClient(Connections connections) {
        this.connections = connections;
        this.calls = new UnaryCalls(connections);
    }

    /** A client. Connects when first used: a gateway that is not there fails the first call. */
    public static GatewayClient connect(GatewayOptions options) {
        return new GatewayClient(Connections.acquire(options));
    }

    /** State, version and limits of the gateway. */
    public GetStatusResponse status() {
        return call(Methods.GET_STATUS, GetStatusRequest.getDefaultInstance());
    }

    /** Creates an empty table. A request without an id gets one. */
    public CreateTableResponse createTable(CreateTableRequest request) {
        CreateTableRequest.Builder builder = request.toBuilder();
        return call(
                Methods.CREATE_TABLE, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    public DescribeTableResponse describeTable(DescribeTableRequest request) {
        return call(Methods.DESCRIBE_TABLE, request);
    }

    /** Deletes a table with all its versions. A request without an id gets one. */
    public DropTableResponse dropTable(DropTableRequest request) {
        DropTableRequest.Builder builder = request.toBuilder();
        return call(Methods.DROP_TABLE, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    /** One page of the tables of a namespace. */
    public ListTablesResponse listTables(ListTablesRequest request) {
        return call(Methods.LIST_TABLES, request);
    }

    public CountRowsResponse countRows(CountRowsRequest request) {
        return call(Methods.COUNT_ROWS, request);
    }

    public ListVersionsResponse listVersions(ListVersionsRequest request) {
        return call(Methods.LIST_VERSIONS, request);
    }

    /**
     * Keeps a version and all newer ones from cleanups, until the time that it answers. A repeat
     * prolongs it, and may name another version.
     */
    public HoldVersionResponse holdVersion(HoldVersionRequest request) {
        return call(Methods.HOLD_VERSION, request);
    }

    /** Lets go of what a holder holds. */
    public ReleaseVersionResponse releaseVersion(ReleaseVersionRequest request) {
        return call(Methods.RELEASE_VERSION, request);
    }

    /** A request without an id gets one. */
    public CreateNamespaceResponse createNamespace(CreateNamespaceRequest request) {
        CreateNamespaceRequest.Builder builder = request.toBuilder();
        return call(
                Methods.CREATE_NAMESPACE,
                builder.setRequestId(idOr(request.getRequestId())).build());
    }

    public ListNamespacesResponse listNamespaces(ListNamespacesRequest request) {
        return call(Methods.LIST_NAMESPACES, request);
    }

    /** A request without an id gets one. */
    public DropNamespaceResponse dropNamespace(DropNamespaceRequest request) {
        DropNamespaceRequest.Builder builder = request.toBuilder();
        return call(
                Methods.DROP_NAMESPACE, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    /** Pins a version and cuts a scan, or the changes up to it, into splits. */
    public ScanPlan plan(ScanRequest request) {
        FlightDescriptor descriptor =
                FlightDescriptor.newBuilder()
                        .setType(FlightDescriptor.DescriptorType.CMD)
                        .setCmd(request.toByteString())
                        .build();
        return ScanPlan.of(call(Methods.GET_FLIGHT_INFO, descriptor));
    }

    /**
     * Reads a split. Errors of the scan come out of the stream.
     *
     * @param rowOffset rows of the split's result that the caller has already
     */
    public BatchStream read(byte[] ticket, long rowOffset) {
        checkOpen();
        BatchStream stream = new BatchStream(connections, ticket, rowOffset, scans::remove);
        scans.add(stream);
        stream.start();
        return stream;
    }

    /** Opens a table for writing, and creates it when asked. A request without an id gets one. */
    public WriteHandle beginWrite(BeginWriteRequest request) {
        BeginWriteRequest.Builder builder = request.toBuilder();
        BeginWriteResponse response =
                call(
                        Methods.BEGIN_WRITE,
                        builder.setRequestId(idOr(request.getRequestId())).build());
        return new WriteHandle(
                response.getWrite().toByteArray(), schema(response.getSchema(), "BeginWrite"));
    }

    /** Opens a stream that stages rows. Waits until the gateway has taken it on. */
    public StageStream stage(WriteHandle write, StageOptions options) throws InterruptedException {
        checkOpen();
        return StageStream.open(connections, write, options, puts::add, puts::remove);
    }

    /**
     * Seals staged rows for one commit. The same id gives the same committable.
     *
     * @param id drawn by the caller: a random epoch at each start, and a number that counts up
     * @param write of {@link WriteHandle#bytes}
     * @param staged of {@link StagedWrite#bytes}
     * @param properties are written on the version
     */
    public PreparedCommit prepareCommit(
            CommitId id, byte[] write, List<byte[]> staged, Map<String, String> properties) {
        PrepareCommitRequest.Builder request =
                PrepareCommitRequest.newBuilder()
                        .setId(id)
                        .setWrite(ByteString.copyFrom(write))
                        .putAllProperties(properties);
        staged.forEach(bytes -> request.addStaged(ByteString.copyFrom(bytes)));
        PrepareCommitResponse response = call(Methods.PREPARE_COMMIT, request.build());
        return new PreparedCommit(
                response.getCommittable().toByteArray(),
                response.getNumRows(),
                response.getNumBytes());
    }

    /**
     * Makes a committable visible, once, however often this is called. One of mode MERGE waits for
     * the earlier ones of its epoch, and its answer counts what became of the keys.
     *
     * @throws CommitStateUnknownException if no answer could be had in the commit timeout: call
     *     again
     */
    public CommitResponse commit(byte[] committable) {
        checkOpen();
        ByteString bytes = ByteString.copyFrom(committable);
        return calls.commit(
                Methods.COMMIT, CommitRequest.newBuilder().setCommittable(bytes).build());
    }

    /**
     * Deletes the rows of a filter as one version, once for a request id. A request without an id
     * gets one.
     *
     * @throws CommitStateUnknownException if no answer could be had in the commit timeout: call
     *     again with the same id
     */
    public DeleteRowsResponse deleteRows(DeleteRowsRequest request) {
        DeleteRowsRequest.Builder builder = request.toBuilder();
        checkOpen();
        return calls.commit(
                Methods.DELETE_ROWS, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    /** Sets columns in the rows of a filter, as {@link #deleteRows} deletes them. */
    public UpdateRowsResponse updateRows(UpdateRowsRequest request) {
        UpdateRowsRequest.Builder builder = request.toBuilder();
        checkOpen();
        return calls.commit(
                Methods.UPDATE_ROWS, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    /** Fences a committable, so that a late commit of it is refused, and deletes its files. */
    public AbortResponse abort(byte[] committable) {
        ByteString bytes = ByteString.copyFrom(committable);
        return call(Methods.ABORT, AbortRequest.newBuilder().setCommittable(bytes).build());
    }

    /** Fences a commit id. Its files stay until they are swept. */
    public AbortResponse abort(Table table, CommitId id) {
        TableCommit commit = TableCommit.newBuilder().setTable(table).setId(id).build();
        return call(Methods.ABORT, AbortRequest.newBuilder().setCommit(commit).build());
    }

    /** What the table knows of a commit id. */
    public GetCommitResponse getCommit(Table table, CommitId id) {
        return call(
                Methods.GET_COMMIT,
                GetCommitRequest.newBuilder().setTable(table).setId(id).build());
    }

    /** All commit ids that the table knows, newest epoch first. */
    public List<CommitEpoch> listCommits(Table table) {
        return call(Methods.LIST_COMMITS, ListCommitsRequest.newBuilder().setTable(table).build())
                .getEpochsList();
    }

    /** The nearest rows to a vector. */
    public SearchResult search(VectorSearchRequest request) {
        VectorSearchResponse found = call(Methods.VECTOR_SEARCH, request);
        return SearchResult.of(found.getInfo(), found.getRows(), "VectorSearch");
    }

    /** The rows whose texts match best. */
    public SearchResult search(FullTextSearchRequest request) {
        FullTextSearchResponse found = call(Methods.FULL_TEXT_SEARCH, request);
        return SearchResult.of(found.getInfo(), found.getRows(), "FullTextSearch");
    }

    /** Nearest vectors and best texts as one ranking. */
    public SearchResult search(HybridSearchRequest request) {
        HybridSearchResponse found = call(Methods.HYBRID_SEARCH, request);
        return SearchResult.of(found.getInfo(), found.getRows(), "HybridSearch");
    }

    /**
     * Searches or looks up over one stream, which opens with the first query.
     *
     * @param queries the columns of the queries, as {@code ExchangeCommand} of the protocol tells
     */
    public Exchange exchange(ExchangeCommand command, ArrowSchema queries) {
        checkOpen();
        Exchange exchange = new Exchange(connections, command, queries, exchanges::remove);
        exchanges.add(exchange);
        return exchange;
    }

    /** Starts the build of an index. A request without an id gets one. */
    public Job createIndex(CreateIndexRequest request) {
        CreateIndexRequest.Builder builder = request.toBuilder();
        return call(
                        Methods.CREATE_INDEX,
                        builder.setRequestId(idOr(request.getRequestId())).build())
                .getJob();
    }

    /** Starts to bring later rows into indexes. A request without an id gets one. */
    public Job optimizeIndex(OptimizeIndexRequest request) {
        OptimizeIndexRequest.Builder builder = request.toBuilder();
        return call(
                        Methods.OPTIMIZE_INDEX,
                        builder.setRequestId(idOr(request.getRequestId())).build())
                .getJob();
    }

    /** Removes an index. A request without an id gets one. */
    public DropIndexResponse dropIndex(DropIndexRequest request) {
        DropIndexRequest.Builder builder = request.toBuilder();
        return call(Methods.DROP_INDEX, builder.setRequestId(idOr(request.getRequestId())).build());
    }

    /** The indexes of a table, by name. */
    public List<IndexStatistics> listIndexes(Table table) {
        return call(Methods.LIST_INDEXES, ListIndexesRequest.newBuilder().setTable(table).build())
                .getIndexesList();
    }

    /** How far an index reaches. */
    public IndexStatistics describeIndex(Table table, String name) {
        return call(
                        Methods.DESCRIBE_INDEX,
                        DescribeIndexRequest.newBuilder().setTable(table).setName(name).build())
                .getIndex();
    }

    /** Starts a compaction, a cleanup or a sweep. A request without an id gets one. */
    public Job startJob(StartJobRequest request) {
        StartJobRequest.Builder builder = request.toBuilder();
        return call(Methods.START_JOB, builder.setRequestId(idOr(request.getRequestId())).build())
                .getJob();
    }

    public Job getJob(String id) {
        return call(Methods.GET_JOB, GetJobRequest.newBuilder().setId(id).build()).getJob();
    }

    /** All jobs that the gateway remembers, the newest first. */
    public List<Job> listJobs() {
        return call(Methods.LIST_JOBS, ListJobsRequest.getDefaultInstance()).getJobsList();
    }

    /** Stops a job. One that has ended stays as it is. */
    public Job cancelJob(String id) {
        return call(Methods.CANCEL_JOB, CancelJobRequest.newBuilder().setId(id).build()).getJob();
    }

    /**
     * Waits until a job has ended, well or not: its state tells. If the gateway was restarted
     * meanwhile, the job is {@code JOB_STATE_INTERRUPTED}. The job goes on if the wait ends early.
     *
     * @param progress is told each step
     */
    public Job awaitJob(Job job, Consumer<Job> progress) throws InterruptedException {
        checkOpen();
        return new JobWatch(connections, job, progress).await();
    }

    /** Gives the connections back. Streams of this client end as if cancelled. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            scans.forEach(BatchStream::close);
            puts.forEach(StageStream::close);
            exchanges.forEach(Exchange::close);
            connections.release();
        }
    }

    private <Q, R> R call(MethodDescriptor<Q, R> method, Q request) {
        checkOpen();
        return calls.call(method, request);
    }

    private void checkOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the client is closed");
        }
    }

    static ArrowSchema schema(ByteString ipc, String doing) {
        try {
            return ArrowSchema.fromIpc(ipc.asReadOnlyByteBuffer());
        } catch (ArrowFormatException e) {
            throw Failure.local(Reason.UNSUPPORTED, e.getMessage(), e).toException(doing);
        }
    }

    private static String idOr(String given) {
        return given.isEmpty() ? UUID.randomUUID().toString() : given;
    }
}
