package io.lancegateway.client;

import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.protobuf.ProtoUtils;
import io.lancegateway.proto.flight.FlightDescriptor;
import io.lancegateway.proto.flight.FlightInfo;
import io.lancegateway.proto.flight.PutResult;
import io.lancegateway.proto.flight.Ticket;
import io.lancegateway.proto.v1.AbortRequest;
import io.lancegateway.proto.v1.AbortResponse;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.BeginWriteResponse;
import io.lancegateway.proto.v1.CancelJobRequest;
import io.lancegateway.proto.v1.CancelJobResponse;
import io.lancegateway.proto.v1.CommitRequest;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CountRowsResponse;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.CreateIndexResponse;
import io.lancegateway.proto.v1.CreateNamespaceRequest;
import io.lancegateway.proto.v1.CreateNamespaceResponse;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.CreateTableResponse;
import io.lancegateway.proto.v1.DeleteRowsRequest;
import io.lancegateway.proto.v1.DeleteRowsResponse;
import io.lancegateway.proto.v1.DescribeIndexRequest;
import io.lancegateway.proto.v1.DescribeIndexResponse;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DescribeTableResponse;
import io.lancegateway.proto.v1.DropIndexRequest;
import io.lancegateway.proto.v1.DropIndexResponse;
import io.lancegateway.proto.v1.DropNamespaceRequest;
import io.lancegateway.proto.v1.DropNamespaceResponse;
import io.lancegateway.proto.v1.DropTableRequest;
import io.lancegateway.proto.v1.DropTableResponse;
import io.lancegateway.proto.v1.FullTextSearchRequest;
import io.lancegateway.proto.v1.FullTextSearchResponse;
import io.lancegateway.proto.v1.GetCommitRequest;
import io.lancegateway.proto.v1.GetCommitResponse;
import io.lancegateway.proto.v1.GetJobRequest;
import io.lancegateway.proto.v1.GetJobResponse;
import io.lancegateway.proto.v1.GetStatusRequest;
import io.lancegateway.proto.v1.GetStatusResponse;
import io.lancegateway.proto.v1.HoldVersionRequest;
import io.lancegateway.proto.v1.HoldVersionResponse;
import io.lancegateway.proto.v1.HybridSearchRequest;
import io.lancegateway.proto.v1.HybridSearchResponse;
import io.lancegateway.proto.v1.ListCommitsRequest;
import io.lancegateway.proto.v1.ListCommitsResponse;
import io.lancegateway.proto.v1.ListIndexesRequest;
import io.lancegateway.proto.v1.ListIndexesResponse;
import io.lancegateway.proto.v1.ListJobsRequest;
import io.lancegateway.proto.v1.ListJobsResponse;
import io.lancegateway.proto.v1.ListNamespacesRequest;
import io.lancegateway.proto.v1.ListNamespacesResponse;
import io.lancegateway.proto.v1.ListTablesRequest;
import io.lancegateway.proto.v1.ListTablesResponse;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.ListVersionsResponse;
import io.lancegateway.proto.v1.OptimizeIndexRequest;
import io.lancegateway.proto.v1.OptimizeIndexResponse;
import io.lancegateway.proto.v1.PrepareCommitRequest;
import io.lancegateway.proto.v1.PrepareCommitResponse;
import io.lancegateway.proto.v1.ReleaseVersionRequest;
import io.lancegateway.proto.v1.ReleaseVersionResponse;
import io.lancegateway.proto.v1.StartJobRequest;
import io.lancegateway.proto.v1.StartJobResponse;
import io.lancegateway.proto.v1.UpdateRowsRequest;
import io.lancegateway.proto.v1.UpdateRowsResponse;
import io.lancegateway.proto.v1.VectorSearchRequest;
import io.lancegateway.proto.v1.VectorSearchResponse;
import io.lancegateway.proto.v1.WatchJobRequest;
import io.lancegateway.proto.v1.WatchJobResponse;

/**
 * The calls that the client makes. Written here rather than generated: Flight's streams need their
 * own marshallers, and the others are a line each.
 */
final class Methods {

    private static final String FLIGHT = "arrow.flight.protocol.FlightService/";
    private static final String STATUS = "lancegateway.v1.StatusService/";
    private static final String TABLE = "lancegateway.v1.TableService/";
    private static final String WRITE = "lancegateway.v1.WriteService/";
    private static final String SEARCH = "lancegateway.v1.SearchService/";
    private static final String INDEX = "lancegateway.v1.IndexService/";
    private static final String JOB = "lancegateway.v1.JobService/";

    static final MethodDescriptor<FlightDescriptor, FlightInfo> GET_FLIGHT_INFO =
            unary(
                    FLIGHT + "GetFlightInfo",
                    FlightDescriptor.getDefaultInstance(),
                    FlightInfo.getDefaultInstance());
    static final MethodDescriptor<Ticket, FlightMessage> DO_GET =
            MethodDescriptor.newBuilder(
                            ProtoUtils.marshaller(Ticket.getDefaultInstance()),
                            FlightMessage.MARSHALLER)
                    .setType(MethodType.SERVER_STREAMING)
                    .setFullMethodName(FLIGHT + "DoGet")
                    .build();
    static final MethodDescriptor<PutMessage, PutResult> DO_PUT =
            MethodDescriptor.newBuilder(
                            PutMessage.MARSHALLER,
                            ProtoUtils.marshaller(PutResult.getDefaultInstance()))
                    .setType(MethodType.BIDI_STREAMING)
                    .setFullMethodName(FLIGHT + "DoPut")
                    .build();
    static final MethodDescriptor<PutMessage, FlightMessage> DO_EXCHANGE =
            MethodDescriptor.newBuilder(PutMessage.MARSHALLER, FlightMessage.MARSHALLER)
                    .setType(MethodType.BIDI_STREAMING)
                    .setFullMethodName(FLIGHT + "DoExchange")
                    .build();

    static final MethodDescriptor<GetStatusRequest, GetStatusResponse> GET_STATUS =
            unary(
                    STATUS + "GetStatus",
                    GetStatusRequest.getDefaultInstance(),
                    GetStatusResponse.getDefaultInstance());

    static final MethodDescriptor<CreateTableRequest, CreateTableResponse> CREATE_TABLE =
            unary(
                    TABLE + "CreateTable",
                    CreateTableRequest.getDefaultInstance(),
                    CreateTableResponse.getDefaultInstance());
    static final MethodDescriptor<DescribeTableRequest, DescribeTableResponse> DESCRIBE_TABLE =
            unary(
                    TABLE + "DescribeTable",
                    DescribeTableRequest.getDefaultInstance(),
                    DescribeTableResponse.getDefaultInstance());
    static final MethodDescriptor<ListTablesRequest, ListTablesResponse> LIST_TABLES =
            unary(
                    TABLE + "ListTables",
                    ListTablesRequest.getDefaultInstance(),
                    ListTablesResponse.getDefaultInstance());
    static final MethodDescriptor<DropTableRequest, DropTableResponse> DROP_TABLE =
            unary(
                    TABLE + "DropTable",
                    DropTableRequest.getDefaultInstance(),
                    DropTableResponse.getDefaultInstance());
    static final MethodDescriptor<CountRowsRequest, CountRowsResponse> COUNT_ROWS =
            unary(
                    TABLE + "CountRows",
                    CountRowsRequest.getDefaultInstance(),
                    CountRowsResponse.getDefaultInstance());
    static final MethodDescriptor<ListVersionsRequest, ListVersionsResponse> LIST_VERSIONS =
            unary(
                    TABLE + "ListVersions",
                    ListVersionsRequest.getDefaultInstance(),
                    ListVersionsResponse.getDefaultInstance());
    static final MethodDescriptor<HoldVersionRequest, HoldVersionResponse> HOLD_VERSION =
            unary(
                    TABLE + "HoldVersion",
                    HoldVersionRequest.getDefaultInstance(),
                    HoldVersionResponse.getDefaultInstance());
    static final MethodDescriptor<ReleaseVersionRequest, ReleaseVersionResponse> RELEASE_VERSION =
            unary(
                    TABLE + "ReleaseVersion",
                    ReleaseVersionRequest.getDefaultInstance(),
                    ReleaseVersionResponse.getDefaultInstance());
    static final MethodDescriptor<CreateNamespaceRequest, CreateNamespaceResponse>
            CREATE_NAMESPACE =
                    unary(
                            TABLE + "CreateNamespace",
                            CreateNamespaceRequest.getDefaultInstance(),
                            CreateNamespaceResponse.getDefaultInstance());
    static final MethodDescriptor<ListNamespacesRequest, ListNamespacesResponse> LIST_NAMESPACES =
            unary(
                    TABLE + "ListNamespaces",
                    ListNamespacesRequest.getDefaultInstance(),
                    ListNamespacesResponse.getDefaultInstance());
    static final MethodDescriptor<DropNamespaceRequest, DropNamespaceResponse> DROP_NAMESPACE =
            unary(
                    TABLE + "DropNamespace",
                    DropNamespaceRequest.getDefaultInstance(),
                    DropNamespaceResponse.getDefaultInstance());

    static final MethodDescriptor<DeleteRowsRequest, DeleteRowsResponse> DELETE_ROWS =
            unary(
                    WRITE + "DeleteRows",
                    DeleteRowsRequest.getDefaultInstance(),
                    DeleteRowsResponse.getDefaultInstance());
    static final MethodDescriptor<UpdateRowsRequest, UpdateRowsResponse> UPDATE_ROWS =
            unary(
                    WRITE + "UpdateRows",
                    UpdateRowsRequest.getDefaultInstance(),
                    UpdateRowsResponse.getDefaultInstance());
    static final MethodDescriptor<BeginWriteRequest, BeginWriteResponse> BEGIN_WRITE =
            unary(
                    WRITE + "BeginWrite",
                    BeginWriteRequest.getDefaultInstance(),
                    BeginWriteResponse.getDefaultInstance());
    static final MethodDescriptor<PrepareCommitRequest, PrepareCommitResponse> PREPARE_COMMIT =
            unary(
                    WRITE + "PrepareCommit",
                    PrepareCommitRequest.getDefaultInstance(),
                    PrepareCommitResponse.getDefaultInstance());
    static final MethodDescriptor<CommitRequest, CommitResponse> COMMIT =
            unary(
                    WRITE + "Commit",
                    CommitRequest.getDefaultInstance(),
                    CommitResponse.getDefaultInstance());
    static final MethodDescriptor<AbortRequest, AbortResponse> ABORT =
            unary(
                    WRITE + "Abort",
                    AbortRequest.getDefaultInstance(),
                    AbortResponse.getDefaultInstance());
    static final MethodDescriptor<GetCommitRequest, GetCommitResponse> GET_COMMIT =
            unary(
                    WRITE + "GetCommit",
                    GetCommitRequest.getDefaultInstance(),
                    GetCommitResponse.getDefaultInstance());
    static final MethodDescriptor<ListCommitsRequest, ListCommitsResponse> LIST_COMMITS =
            unary(
                    WRITE + "ListCommits",
                    ListCommitsRequest.getDefaultInstance(),
                    ListCommitsResponse.getDefaultInstance());

    static final MethodDescriptor<VectorSearchRequest, VectorSearchResponse> VECTOR_SEARCH =
            unary(
                    SEARCH + "VectorSearch",
                    VectorSearchRequest.getDefaultInstance(),
                    VectorSearchResponse.getDefaultInstance());
    static final MethodDescriptor<FullTextSearchRequest, FullTextSearchResponse> FULL_TEXT_SEARCH =
            unary(
                    SEARCH + "FullTextSearch",
                    FullTextSearchRequest.getDefaultInstance(),
                    FullTextSearchResponse.getDefaultInstance());
    static final MethodDescriptor<HybridSearchRequest, HybridSearchResponse> HYBRID_SEARCH =
            unary(
                    SEARCH + "HybridSearch",
                    HybridSearchRequest.getDefaultInstance(),
                    HybridSearchResponse.getDefaultInstance());
    static final MethodDescriptor<CreateIndexRequest, CreateIndexResponse> CREATE_INDEX =
            unary(
                    INDEX + "CreateIndex",
                    CreateIndexRequest.getDefaultInstance(),
                    CreateIndexResponse.getDefaultInstance());
    static final MethodDescriptor<OptimizeIndexRequest, OptimizeIndexResponse> OPTIMIZE_INDEX =
            unary(
                    INDEX + "OptimizeIndex",
                    OptimizeIndexRequest.getDefaultInstance(),
                    OptimizeIndexResponse.getDefaultInstance());
    static final MethodDescriptor<DropIndexRequest, DropIndexResponse> DROP_INDEX =
            unary(
                    INDEX + "DropIndex",
                    DropIndexRequest.getDefaultInstance(),
                    DropIndexResponse.getDefaultInstance());
    static final MethodDescriptor<ListIndexesRequest, ListIndexesResponse> LIST_INDEXES =
            unary(
                    INDEX + "ListIndexes",
                    ListIndexesRequest.getDefaultInstance(),
                    ListIndexesResponse.getDefaultInstance());
    static final MethodDescriptor<DescribeIndexRequest, DescribeIndexResponse> DESCRIBE_INDEX =
            unary(
                    INDEX + "DescribeIndex",
                    DescribeIndexRequest.getDefaultInstance(),
                    DescribeIndexResponse.getDefaultInstance());
    static final MethodDescriptor<StartJobRequest, StartJobResponse> START_JOB =
            unary(
                    JOB + "StartJob",
                    StartJobRequest.getDefaultInstance(),
                    StartJobResponse.getDefaultInstance());
    static final MethodDescriptor<GetJobRequest, GetJobResponse> GET_JOB =
            unary(
                    JOB + "GetJob",
                    GetJobRequest.getDefaultInstance(),
                    GetJobResponse.getDefaultInstance());
    static final MethodDescriptor<ListJobsRequest, ListJobsResponse> LIST_JOBS =
            unary(
                    JOB + "ListJobs",
                    ListJobsRequest.getDefaultInstance(),
                    ListJobsResponse.getDefaultInstance());
    static final MethodDescriptor<CancelJobRequest, CancelJobResponse> CANCEL_JOB =
            unary(
                    JOB + "CancelJob",
                    CancelJobRequest.getDefaultInstance(),
                    CancelJobResponse.getDefaultInstance());
    static final MethodDescriptor<WatchJobRequest, WatchJobResponse> WATCH_JOB =
            MethodDescriptor.newBuilder(
                            ProtoUtils.marshaller(WatchJobRequest.getDefaultInstance()),
                            ProtoUtils.marshaller(WatchJobResponse.getDefaultInstance()))
                    .setType(MethodType.SERVER_STREAMING)
                    .setFullMethodName(JOB + "WatchJob")
                    .build();

    private Methods() {}

    private static <Q extends Message, R extends Message> MethodDescriptor<Q, R> unary(
            String name, Q request, R response) {
        return MethodDescriptor.newBuilder(
                        ProtoUtils.marshaller(request), ProtoUtils.marshaller(response))
                .setType(MethodType.UNARY)
                .setFullMethodName(name)
                .build();
    }
}
