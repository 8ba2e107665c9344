package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import com.google.protobuf.Timestamp;
import io.grpc.Status;
import io.lancegateway.proto.flight.FlightDescriptor;
import io.lancegateway.proto.flight.FlightEndpoint;
import io.lancegateway.proto.flight.FlightInfo;
import io.lancegateway.proto.flight.Ticket;
import io.lancegateway.proto.v1.AbortResponse;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.BeginWriteResponse;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CountRowsResponse;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.CreateTableResponse;
import io.lancegateway.proto.v1.HoldVersionRequest;
import io.lancegateway.proto.v1.HoldVersionResponse;
import io.lancegateway.proto.v1.IndexServiceOuterClass;
import io.lancegateway.proto.v1.JobServiceOuterClass;
import io.lancegateway.proto.v1.MergeCounts;
import io.lancegateway.proto.v1.PrepareCommitRequest;
import io.lancegateway.proto.v1.PrepareCommitResponse;
import io.lancegateway.proto.v1.ReleaseVersionRequest;
import io.lancegateway.proto.v1.ReleaseVersionResponse;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.SearchServiceOuterClass;
import io.lancegateway.proto.v1.StatusServiceOuterClass;
import io.lancegateway.proto.v1.TableServiceOuterClass;
import io.lancegateway.proto.v1.WriteServiceOuterClass;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.arrow.vector.types.UnionMode;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Calls without a stream, against a server that answers as told. */
@Timeout(60)
class GatewayClientTest {

    private static final byte[] COMMITTABLE = {1, 2, 3};

    private final FakeGateway gateway = FakeGateway.onTcp();

    @AfterEach
    void close() {
        gateway.close();
    }

    private static GatewayOptions.Builder options(String uri) {
        return GatewayOptions.builder(uri)
                .initialBackoff(Duration.ofMillis(1))
                .maxBackoff(Duration.ofMillis(5))
                .maxAttempts(3)
                .callTimeout(Duration.ofSeconds(20))
                .commitTimeout(Duration.ofSeconds(20));
    }

    private GatewayClient client() {
        return GatewayClient.connect(options(gateway.uri()).build());
    }

    @Test
    void aGatewayThatIsOverloadedIsAskedAgainAfterTheTimeThatItNamed() {
        AtomicInteger calls = new AtomicInteger();
        gateway.on(
                Methods.COUNT_ROWS,
                request -> {
                    if (calls.incrementAndGet() < 3) {
                        throw FakeGateway.error(Reason.OVERLOADED, Duration.ofMillis(150));
                    }
                    return CountRowsResponse.newBuilder().setNumRows(7).build();
                });
        long start = System.nanoTime();
        try (GatewayClient client = client()) {
            assertThat(client.countRows(count()).getNumRows()).isEqualTo(7);
        }
        assertThat(Duration.ofNanos(System.nanoTime() - start))
                .isGreaterThan(Duration.ofMillis(300));
        assertThat(calls).hasValue(3);
    }

    @Test
    void aGatewayThatStaysOverloadedIsGivenUpAndTheErrorIsRetriable() {
        gateway.on(
                Methods.COUNT_ROWS,
                request -> {
                    throw FakeGateway.error(Reason.OVERLOADED);
                });
        try (GatewayClient client = client()) {
            RetriableException e =
                    catchThrowableOfType(RetriableException.class, () -> client.countRows(count()));
            assertThat(e.reason()).isEqualTo(Reason.OVERLOADED);
            assertThat(e.isRetriable()).isTrue();
            assertThat(e.requestId()).isEqualTo("r-1");
            assertThat(e)
                    .hasMessage("CountRows failed: OVERLOADED: told by the test [request r-1]");
        }
        assertThat(gateway.requests()).hasSize(3);
    }

    @Test
    void anErrorThatWillNotPassIsNotTriedAgain() {
        gateway.on(
                Methods.COUNT_ROWS,
                request -> {
                    throw FakeGateway.error(Reason.TABLE_NOT_FOUND);
                });
        try (GatewayClient client = client()) {
            FatalException e =
                    catchThrowableOfType(FatalException.class, () -> client.countRows(count()));
            assertThat(e.reason()).isEqualTo(Reason.TABLE_NOT_FOUND);
            assertThat(e.isRetriable()).isFalse();
        }
        assertThat(gateway.requests()).hasSize(1);
    }

    @Test
    void theReasonDecidesAndNotTheCode() {
        gateway.on(
                Methods.COUNT_ROWS,
                request -> {
                    throw FakeGateway.error(Reason.QUOTA_EXCEEDED);
                });
        try (GatewayClient client = client()) {
            assertThatThrownBy(() -> client.countRows(count())).isInstanceOf(FatalException.class);
        }
        assertThat(gateway.requests()).hasSize(1);
    }

    @Test
    void aRepeatCarriesTheRequestIdOfTheFirst() {
        AtomicInteger calls = new AtomicInteger();
        gateway.on(
                Methods.CREATE_TABLE,
                request -> {
                    if (calls.incrementAndGet() == 1) {
                        throw Status.UNAVAILABLE.asRuntimeException();
                    }
                    return CreateTableResponse.newBuilder().setCreated(true).build();
                });
        try (GatewayClient client = client()) {
            client.createTable(CreateTableRequest.getDefaultInstance());
        }
        assertThat(gateway.requests()).hasSize(2);
        String id = ((CreateTableRequest) gateway.requests().get(0)).getRequestId();
        assertThat(id).hasSize(36);
        assertThat(((CreateTableRequest) gateway.requests().get(1)).getRequestId()).isEqualTo(id);
    }

    @Test
    void aVersionIsHeldAndLetGoOfThoughTheGatewayIsAwayAtFirst() {
        AtomicInteger calls = new AtomicInteger();
        gateway.on(
                Methods.HOLD_VERSION,
                request -> {
                    if (calls.incrementAndGet() == 1) {
                        throw Status.UNAVAILABLE.asRuntimeException();
                    }
                    return HoldVersionResponse.newBuilder()
                            .setExpiresAt(Timestamp.newBuilder().setSeconds(7))
                            .build();
                });
        gateway.on(
                Methods.RELEASE_VERSION,
                request -> {
                    if (calls.incrementAndGet() == 3) {
                        throw FakeGateway.error(Reason.STORE_UNAVAILABLE);
                    }
                    return ReleaseVersionResponse.newBuilder().setReleased(true).build();
                });
        HoldVersionRequest hold =
                HoldVersionRequest.newBuilder()
                        .setTable(Tables.named("t"))
                        .setHolder("me")
                        .setVersion(5)
                        .build();
        ReleaseVersionRequest release =
                ReleaseVersionRequest.newBuilder()
                        .setTable(Tables.named("t"))
                        .setHolder("me")
                        .build();
        try (GatewayClient client = client()) {
            assertThat(client.holdVersion(hold).getExpiresAt().getSeconds()).isEqualTo(7);
            assertThat(client.releaseVersion(release).getReleased()).isTrue();
        }
        assertThat(gateway.requests()).containsExactly(hold, hold, release, release);
    }

    @Test
    void aCommitWhoseReplyIsLostIsRepeatedAndAnsweredAsBefore() {
        AtomicInteger commits = new AtomicInteger();
        try (Wire wire = new Wire(gateway.port());
                GatewayClient client = GatewayClient.connect(options(wire.uri()).build())) {
            gateway.on(
                    Methods.COMMIT,
                    request -> {
                        if (commits.incrementAndGet() == 1) {
                            wire.cut();
                        }
                        return committed(commits.get() > 1);
                    });
            CommitResponse response = client.commit(COMMITTABLE);
            assertThat(response.getVersion()).isEqualTo(5);
            assertThat(response.getAlreadyCommitted()).isTrue();
        }
        assertThat(gateway.requests()).hasSize(2);
    }

    @Test
    void aMergeThatComesBeforeAnEarlierOneWaitsForItAndTellsWhatBecameOfItsKeys() {
        AtomicInteger commits = new AtomicInteger();
        MergeCounts counts = MergeCounts.newBuilder().setNumInserted(3).setNumDeleted(1).build();
        gateway.on(
                Methods.COMMIT,
                request -> {
                    if (commits.incrementAndGet() < 10) {
                        throw FakeGateway.error(Reason.COMMIT_OUT_OF_ORDER);
                    }
                    return committed(false).toBuilder().setMerged(counts).build();
                });
        try (GatewayClient client = client()) {
            assertThat(client.commit(COMMITTABLE).getMerged()).isEqualTo(counts);
        }
        assertThat(commits).hasValue(10);
    }

    @Test
    void aCommitOfUnknownStateIsRepeatedUntilItIsKnown() {
        AtomicInteger commits = new AtomicInteger();
        gateway.on(
                Methods.COMMIT,
                request -> {
                    if (commits.incrementAndGet() < 10) {
                        throw FakeGateway.error(Reason.COMMIT_STATE_UNKNOWN);
                    }
                    return committed(true);
                });
        try (GatewayClient client = client()) {
            assertThat(client.commit(COMMITTABLE).getVersion()).isEqualTo(5);
        }
        assertThat(commits).hasValue(10);
    }

    @Test
    void aCommitThatStaysUnknownIsNeitherRetriableNorFatal() {
        gateway.on(
                Methods.COMMIT,
                request -> {
                    throw FakeGateway.error(Reason.COMMIT_STATE_UNKNOWN);
                });
        GatewayOptions options =
                options(gateway.uri()).commitTimeout(Duration.ofMillis(300)).build();
        try (GatewayClient client = GatewayClient.connect(options)) {
            CommitStateUnknownException e =
                    catchThrowableOfType(
                            CommitStateUnknownException.class, () -> client.commit(COMMITTABLE));
            assertThat(e.reason()).isEqualTo(Reason.COMMIT_STATE_UNKNOWN);
            assertThat(e.isRetriable()).isFalse();
        }
    }

    @Test
    void aCommitThatIsNeverAnsweredIsUnknown() {
        gateway.on(Methods.COMMIT, request -> null);
        GatewayOptions options =
                options(gateway.uri()).commitTimeout(Duration.ofMillis(300)).build();
        try (GatewayClient client = GatewayClient.connect(options)) {
            assertThatThrownBy(() -> client.commit(COMMITTABLE))
                    .isInstanceOf(CommitStateUnknownException.class);
        }
    }

    @Test
    void onceACommitMayHaveHappenedOnlyAnAbortSaysThatItHasNot() {
        for (Reason last : List.of(Reason.TABLE_REPLACED, Reason.COMMIT_ABORTED)) {
            AtomicInteger commits = new AtomicInteger();
            gateway.on(
                    Methods.COMMIT,
                    request -> {
                        boolean first = commits.incrementAndGet() == 1;
                        throw FakeGateway.error(first ? Reason.COMMIT_STATE_UNKNOWN : last);
                    });
            Class<? extends LanceGatewayException> expected =
                    last == Reason.COMMIT_ABORTED
                            ? FatalException.class
                            : CommitStateUnknownException.class;
            try (GatewayClient client = client()) {
                assertThatThrownBy(() -> client.commit(COMMITTABLE)).isInstanceOf(expected);
            }
            assertThat(commits).hasValue(2);
        }
    }

    @Test
    void aCommitThatNeverLeftIsRetriable() throws Exception {
        int port;
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        GatewayOptions options =
                options("grpc://127.0.0.1:" + port).commitTimeout(Duration.ofMillis(500)).build();
        try (GatewayClient client = GatewayClient.connect(options)) {
            assertThatThrownBy(() -> client.commit(COMMITTABLE))
                    .isInstanceOf(RetriableException.class);
        }
    }

    @Test
    void aCommitGoesThroughOnceTheGatewayIsBack() throws Exception {
        int port = gateway.port();
        gateway.close();
        ExecutorService executor = Executors.newSingleThreadExecutor();
        try (GatewayClient client = client()) {
            Future<CommitResponse> commit = executor.submit(() -> client.commit(COMMITTABLE));
            try (FakeGateway restarted = FakeGateway.onTcp(port)) {
                restarted.on(Methods.COMMIT, request -> committed(false));
                assertThat(commit.get().getVersion()).isEqualTo(5);
            }
        } finally {
            executor.shutdownNow();
        }
    }

    @Test
    void anInterruptedCommitIsUnknownAndTheThreadStaysInterrupted() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        gateway.on(
                Methods.COMMIT,
                request -> {
                    asked.countDown();
                    return null;
                });
        Throwable[] thrown = new Throwable[1];
        boolean[] interrupted = new boolean[1];
        try (GatewayClient client = client()) {
            Thread thread =
                    new Thread(
                            () -> {
                                try {
                                    client.commit(COMMITTABLE);
                                } catch (LanceGatewayException e) {
                                    thrown[0] = e;
                                }
                                interrupted[0] = Thread.currentThread().isInterrupted();
                            });
            thread.start();
            asked.await();
            thread.interrupt();
            thread.join();
        }
        assertThat(thrown[0]).isInstanceOf(CommitStateUnknownException.class);
        assertThat(interrupted[0]).isTrue();
    }

    @Test
    void aGatewayThatDoesNotAnswerIsNotWaitedForLongerThanTheTimeout() {
        gateway.on(Methods.COUNT_ROWS, request -> null);
        GatewayOptions options = options(gateway.uri()).callTimeout(Duration.ofMillis(200)).build();
        try (GatewayClient client = GatewayClient.connect(options)) {
            RetriableException e =
                    catchThrowableOfType(RetriableException.class, () -> client.countRows(count()));
            assertThat(e.reason()).isEqualTo(Reason.DEADLINE_EXCEEDED);
            assertThat(e.requestId()).isEmpty();
        }
    }

    @Test
    void errorsThatDoNotComeFromAGatewayHaveNoReason() {
        gateway.on(
                Methods.COUNT_ROWS,
                request -> {
                    throw Status.PERMISSION_DENIED.withDescription("proxy").asRuntimeException();
                });
        try (GatewayClient client = client()) {
            FatalException e =
                    catchThrowableOfType(FatalException.class, () -> client.countRows(count()));
            assertThat(e.reason()).isEqualTo(Reason.UNKNOWN);
            assertThat(e).hasMessage("CountRows failed: PERMISSION_DENIED: proxy");
        }
    }

    @Test
    void aPlanHasItsVersionItsSchemaAndASplitForEachEndpoint() {
        ScanRequest request =
                ScanRequest.newBuilder().setTable(Tables.named("ns", "t")).setLimit(0).build();
        FlightDescriptor[] asked = new FlightDescriptor[1];
        gateway.on(
                Methods.GET_FLIGHT_INFO,
                descriptor -> {
                    asked[0] = descriptor;
                    return FlightInfo.newBuilder()
                            .setSchema(ByteString.copyFrom(FakeGateway.SCHEMA.toIpc()))
                            .setAppMetadata(
                                    io.lancegateway.proto.v1.ScanPlan.newBuilder()
                                            .setVersion(9)
                                            .setNumRows(30)
                                            .setNumBytes(300)
                                            .build()
                                            .toByteString())
                            .addEndpoint(endpoint("one", 10))
                            .addEndpoint(endpoint("two", 20))
                            .build();
                });
        try (GatewayClient client = client()) {
            ScanPlan plan = client.plan(request);
            assertThat(plan.version()).isEqualTo(9);
            assertThat(plan.rows()).isEqualTo(30);
            assertThat(plan.bytes()).isEqualTo(300);
            assertThat(plan.schema()).isEqualTo(FakeGateway.SCHEMA);
            assertThat(plan.splits()).extracting(ScanSplit::rows).containsExactly(10L, 20L);
            assertThat(plan.splits().get(1).ticket()).isEqualTo("two".getBytes());
        }
        assertThat(asked[0].getCmd()).isEqualTo(request.toByteString());
    }

    @Test
    void aCommitIsPreparedFromStagedWrites() {
        gateway.on(
                Methods.BEGIN_WRITE,
                request ->
                        BeginWriteResponse.newBuilder()
                                .setWrite(ByteString.copyFromUtf8("handle"))
                                .setSchema(ByteString.copyFrom(FakeGateway.SCHEMA.toIpc()))
                                .build());
        gateway.on(
                Methods.PREPARE_COMMIT,
                request ->
                        PrepareCommitResponse.newBuilder()
                                .setCommittable(ByteString.copyFromUtf8("committable"))
                                .setNumRows(3)
                                .build());
        gateway.on(Methods.ABORT, request -> AbortResponse.newBuilder().setNumFiles(2).build());
        CommitId id = CommitId.newBuilder().setEpoch("e").setSeq(4).build();
        try (GatewayClient client = client()) {
            WriteHandle write = client.beginWrite(BeginWriteRequest.getDefaultInstance());
            assertThat(write.schema()).isEqualTo(FakeGateway.SCHEMA);
            PreparedCommit prepared =
                    client.prepareCommit(
                            id,
                            write.bytes(),
                            List.of(new byte[] {1}, new byte[] {2}),
                            Map.of("k", "v"));
            assertThat(prepared.committable()).isEqualTo("committable".getBytes());
            assertThat(prepared.rows()).isEqualTo(3);
            assertThat(client.abort(prepared.committable()).getNumFiles()).isEqualTo(2);
        }
        PrepareCommitRequest asked = (PrepareCommitRequest) gateway.requests().get(1);
        assertThat(asked.getId()).isEqualTo(id);
        assertThat(asked.getWrite().toStringUtf8()).isEqualTo("handle");
        assertThat(asked.getStagedCount()).isEqualTo(2);
        assertThat(asked.getPropertiesMap()).containsEntry("k", "v");
    }

    @Test
    void aTableWithATypeThatCannotBeHeldIsUnsupported() {
        Field either =
                new Field(
                        "either",
                        FieldType.nullable(new ArrowType.Union(UnionMode.Sparse, null)),
                        List.of(Field.nullable("a", new ArrowType.Bool())));
        byte[] schema = new Schema(List.of(either)).serializeAsMessage();
        gateway.on(
                Methods.BEGIN_WRITE,
                request ->
                        BeginWriteResponse.newBuilder()
                                .setSchema(ByteString.copyFrom(schema))
                                .build());
        try (GatewayClient client = client()) {
            FatalException e =
                    catchThrowableOfType(
                            FatalException.class,
                            () -> client.beginWrite(BeginWriteRequest.getDefaultInstance()));
            assertThat(e.reason()).isEqualTo(Reason.UNSUPPORTED);
            assertThat(e).hasMessageContaining("'either'");
        }
    }

    @Test
    void aUnixSocketWorksAsTcpDoes(@TempDir Path dir) {
        Path socket = dir.resolve("gateway.sock");
        try (FakeGateway unix = FakeGateway.onUnix(socket)) {
            unix.on(
                    Methods.COUNT_ROWS,
                    request -> CountRowsResponse.newBuilder().setNumRows(3).build());
            GatewayOptions options = options("grpc+unix://" + socket).build();
            try (GatewayClient client = GatewayClient.connect(options)) {
                assertThat(client.countRows(count()).getNumRows()).isEqualTo(3);
            }
        }
    }

    @Test
    void anAddressOfAnotherFormIsRefused() {
        for (String uri :
                List.of(
                        "localhost:8815",
                        "http://localhost",
                        "grpc://",
                        "grpc://h/path",
                        "grpc://user@h",
                        "grpc+unix://relative",
                        "grpc+tls://h",
                        "")) {
            assertThatThrownBy(() -> GatewayClient.connect(options(uri).build()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("'" + uri + "'");
        }
    }

    @Test
    void clientsWithTheSameOptionsShareConnectionsUntilTheLastIsClosed() {
        gateway.on(Methods.COUNT_ROWS, request -> CountRowsResponse.getDefaultInstance());
        GatewayClient first = client();
        GatewayClient second = client();
        first.close();
        first.close();
        assertThat(second.countRows(count()).getNumRows()).isZero();
        second.close();
        assertThatThrownBy(() -> second.countRows(count()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("the client is closed");
    }

    @Test
    void everyMethodOfTheGatewayIsCalledByItsName() {
        TreeSet<String> declared = new TreeSet<>();
        for (ServiceDescriptor service :
                List.of(
                        StatusServiceOuterClass.getDescriptor().getServices().get(0),
                        TableServiceOuterClass.getDescriptor().getServices().get(0),
                        WriteServiceOuterClass.getDescriptor().getServices().get(0),
                        SearchServiceOuterClass.getDescriptor().getServices().get(0),
                        IndexServiceOuterClass.getDescriptor().getServices().get(0),
                        JobServiceOuterClass.getDescriptor().getServices().get(0))) {
            for (MethodDescriptor method : service.getMethods()) {
                declared.add(
                        service.getFullName()
                                + "/"
                                + method.getName()
                                + " "
                                + method.getInputType().getName()
                                + " "
                                + method.getOutputType().getName());
            }
        }
        TreeSet<String> called = new TreeSet<>();
        for (java.lang.reflect.Field field : Methods.class.getDeclaredFields()) {
            if (field.getType() == io.grpc.MethodDescriptor.class) {
                io.grpc.MethodDescriptor<?, ?> method;
                try {
                    method = (io.grpc.MethodDescriptor<?, ?>) field.get(null);
                } catch (IllegalAccessException e) {
                    throw new AssertionError(e);
                }
                if (method.getServiceName().startsWith("lancegateway.")) {
                    called.add(
                            method.getFullMethodName()
                                    + " "
                                    + prototype(method.getRequestMarshaller())
                                    + " "
                                    + prototype(method.getResponseMarshaller()));
                }
            }
        }
        assertThat(called).isEqualTo(declared);
    }

    private static String prototype(io.grpc.MethodDescriptor.Marshaller<?> marshaller) {
        return ((io.grpc.MethodDescriptor.PrototypeMarshaller<?>) marshaller)
                .getMessageClass()
                .getSimpleName();
    }

    private static CountRowsRequest count() {
        return CountRowsRequest.newBuilder().setTable(Tables.named("t")).build();
    }

    private static CommitResponse committed(boolean already) {
        return CommitResponse.newBuilder().setVersion(5).setAlreadyCommitted(already).build();
    }

    private static FlightEndpoint endpoint(String ticket, long rows) {
        return FlightEndpoint.newBuilder()
                .setTicket(Ticket.newBuilder().setTicket(ByteString.copyFromUtf8(ticket)))
                .setAppMetadata(
                        io.lancegateway.proto.v1.ScanSplit.newBuilder()
                                .setNumRows(rows)
                                .build()
                                .toByteString())
                .build();
    }
}
