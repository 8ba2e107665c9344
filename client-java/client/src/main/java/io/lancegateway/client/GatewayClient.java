package io.lancegateway.client;

import io.lancegateway.proto.v1.AbortResponse;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.CommitEpoch;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CountRowsResponse;
import io.lancegateway.proto.v1.CreateNamespaceRequest;
import io.lancegateway.proto.v1.CreateNamespaceResponse;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.CreateTableResponse;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DescribeTableResponse;
import io.lancegateway.proto.v1.DropNamespaceRequest;
import io.lancegateway.proto.v1.DropNamespaceResponse;
import io.lancegateway.proto.v1.DropTableRequest;
import io.lancegateway.proto.v1.DropTableResponse;
import io.lancegateway.proto.v1.GetCommitResponse;
import io.lancegateway.proto.v1.GetStatusResponse;
import io.lancegateway.proto.v1.ListNamespacesRequest;
import io.lancegateway.proto.v1.ListNamespacesResponse;
import io.lancegateway.proto.v1.ListTablesRequest;
import io.lancegateway.proto.v1.ListTablesResponse;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.ListVersionsResponse;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Table;
import java.util.List;
import java.util.Map;

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

    private GatewayClient() {}

    /** A client. Connects when first used: a gateway that is not there fails the first call. */
    public static GatewayClient connect(GatewayOptions options) {
        throw new UnsupportedOperationException();
    }

    /** State, version and limits of the gateway. */
    public GetStatusResponse status() {
        throw new UnsupportedOperationException();
    }

    /** Creates an empty table. A request without an id gets one. */
    public CreateTableResponse createTable(CreateTableRequest request) {
        throw new UnsupportedOperationException();
    }

    public DescribeTableResponse describeTable(DescribeTableRequest request) {
        throw new UnsupportedOperationException();
    }

    /** Deletes a table with all its versions. A request without an id gets one. */
    public DropTableResponse dropTable(DropTableRequest request) {
        throw new UnsupportedOperationException();
    }

    /** One page of the tables of a namespace. */
    public ListTablesResponse listTables(ListTablesRequest request) {
        throw new UnsupportedOperationException();
    }

    public CountRowsResponse countRows(CountRowsRequest request) {
        throw new UnsupportedOperationException();
    }

    public ListVersionsResponse listVersions(ListVersionsRequest request) {
        throw new UnsupportedOperationException();
    }

    /** A request without an id gets one. */
    public CreateNamespaceResponse createNamespace(CreateNamespaceRequest request) {
        throw new UnsupportedOperationException();
    }

    public ListNamespacesResponse listNamespaces(ListNamespacesRequest request) {
        throw new UnsupportedOperationException();
    }

    /** A request without an id gets one. */
    public DropNamespaceResponse dropNamespace(DropNamespaceRequest request) {
        throw new UnsupportedOperationException();
    }

    /** Pins a version and cuts a scan into splits. */
    public ScanPlan plan(ScanRequest request) {
        throw new UnsupportedOperationException();
    }

    /**
     * Reads a split. Errors of the scan come out of the stream.
     *
     * @param rowOffset rows of the split's result that the caller has already
     */
    public BatchStream read(byte[] ticket, long rowOffset) {
        throw new UnsupportedOperationException();
    }

    /** Opens a table for writing, and creates it when asked. A request without an id gets one. */
    public WriteHandle beginWrite(BeginWriteRequest request) {
        throw new UnsupportedOperationException();
    }

    /** Opens a stream that stages rows. Waits until the gateway has taken it on. */
    public StageStream stage(WriteHandle write, StageOptions options) throws InterruptedException {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Makes a committable visible, once, however often this is called.
     *
     * @throws CommitStateUnknownException if no answer could be had in the commit timeout: call
     *     again
     */
    public CommitResponse commit(byte[] committable) {
        throw new UnsupportedOperationException();
    }

    /** Fences a committable, so that a late commit of it is refused, and deletes its files. */
    public AbortResponse abort(byte[] committable) {
        throw new UnsupportedOperationException();
    }

    /** Fences a commit id. Its files stay until they are swept. */
    public AbortResponse abort(Table table, CommitId id) {
        throw new UnsupportedOperationException();
    }

    /** What the table knows of a commit id. */
    public GetCommitResponse getCommit(Table table, CommitId id) {
        throw new UnsupportedOperationException();
    }

    /** All commit ids that the table knows, newest epoch first. */
    public List<CommitEpoch> listCommits(Table table) {
        throw new UnsupportedOperationException();
    }

    /** Gives the connections back. Streams of this client end as if cancelled. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
