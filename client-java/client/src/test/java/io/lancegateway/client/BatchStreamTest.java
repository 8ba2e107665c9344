package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.flight.FlightData;
import io.lancegateway.proto.v1.ChangesSplit;
import io.lancegateway.proto.v1.ScanTicket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Scans, against a server that sends as told. */
@Timeout(60)
class BatchStreamTest {

    private static final byte[] TICKET =
            ScanTicket.newBuilder().setVersion(3).build().toByteArray();

    private final FakeGateway gateway = FakeGateway.onTcp();

    @AfterEach
    void close() {
        gateway.close();
    }

    private static GatewayOptions.Builder options(String uri) {
        return GatewayOptions.builder(uri)
                .initialBackoff(Duration.ofMillis(1))
                .maxBackoff(Duration.ofMillis(5))
                .maxAttempts(3);
    }

    private GatewayClient client() {
        return GatewayClient.connect(options(gateway.uri()).build());
    }

    @Test
    void batchesComeInTheirOrderAndEnd() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(FakeGateway.batchMessage(0, 10));
                    out.onNext(FakeGateway.batchMessage(0, 0));
                    out.onNext(
                            FlightData.newBuilder()
                                    .setAppMetadata(ByteString.copyFromUtf8("x"))
                                    .build());
                    out.onNext(FakeGateway.batchMessage(10, 5));
                    out.onCompleted();
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(stream.schema()).isEqualTo(FakeGateway.SCHEMA);
            assertThat(stream.isFinished()).isFalse();
            assertThat(ids(stream.next())).containsExactlyElementsOf(range(0, 10));
            assertThat(ids(stream.next())).containsExactlyElementsOf(range(10, 15));
            assertThat(stream.next()).isNull();
            assertThat(stream.isFinished()).isTrue();
            assertThat(stream.next()).isNull();
        }
        assertThat(((ScanTicket) gateway.requests().get(0)).toByteArray()).isEqualTo(TICKET);
    }

    @Test
    void aScanWithoutRowsHasItsSchema() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onCompleted();
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(stream.next()).isNull();
            assertThat(stream.schema()).isEqualTo(FakeGateway.SCHEMA);
        }
    }

    @Test
    void aReaderThatHasRowsAsksForTheOthers() throws Exception {
        gateway.onScan((ticket, out) -> sendRows(out, ticket.getRowOffset(), 100));
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 42)) {
            assertThat(readAll(stream)).isEqualTo(range(42, 100));
        }
    }

    @Test
    void aScanThatIsCutGoesOnBehindTheLastRowThatWasGivenOut() throws Exception {
        AtomicInteger scans = new AtomicInteger();
        try (Wire wire = new Wire(gateway.port());
                GatewayClient client = GatewayClient.connect(options(wire.uri()).build())) {
            gateway.onScan(
                    (ticket, out) -> {
                        long from = ticket.getRowOffset();
                        if (scans.incrementAndGet() > 5) {
                            sendRows(out, from, 100);
                            return;
                        }
                        out.onNext(FakeGateway.schemaMessage());
                        out.onNext(FakeGateway.batchMessage(from, 7));
                    });
            List<Long> ids = new ArrayList<>();
            try (BatchStream stream = client.read(TICKET, 3)) {
                ArrowBatch batch;
                while ((batch = stream.next()) != null) {
                    ids.addAll(ids(batch));
                    if (scans.get() <= 5) {
                        wire.cut();
                    }
                }
            }
            assertThat(ids).isEqualTo(range(3, 100));
            assertThat(scans).hasValue(6);
        }
    }

    @Test
    void changesThatAreCutGoOnFromTheSameVersionBehindTheRowsThatWereGivenOut() throws Exception {
        byte[] ticket =
                ScanTicket.newBuilder()
                        .setChanges(ChangesSplit.newBuilder().setAfter(5).setTo(9).setParts(1))
                        .build()
                        .toByteArray();
        List<ScanTicket> asked = new CopyOnWriteArrayList<>();
        gateway.onScan(
                (scan, out) -> {
                    asked.add(scan);
                    if (asked.size() > 1) {
                        sendRows(out, scan.getRowOffset(), 20);
                        return;
                    }
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(FakeGateway.batchMessage(scan.getRowOffset(), 7));
                    out.onError(FakeGateway.error(Reason.STREAM_IDLE));
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(ticket, 3)) {
            assertThat(readAll(stream)).isEqualTo(range(3, 20));
        }
        assertThat(asked).extracting(ScanTicket::getRowOffset).containsExactly(3L, 10L);
        assertThat(asked.get(1).getChanges()).isEqualTo(asked.get(0).getChanges());
    }

    @Test
    void aGatewayThatRefusesAScanForNowIsAskedAgain() throws Exception {
        AtomicInteger scans = new AtomicInteger();
        gateway.onScan(
                (ticket, out) -> {
                    if (scans.incrementAndGet() < 3) {
                        throw FakeGateway.error(Reason.OVERLOADED, Duration.ofMillis(2));
                    }
                    sendRows(out, 0, 20);
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(readAll(stream)).isEqualTo(range(0, 20));
        }
    }

    @Test
    void aScanThatFailsAgainAndAgainWithoutARowFails() throws Exception {
        AtomicInteger scans = new AtomicInteger();
        gateway.onScan(
                (ticket, out) -> {
                    scans.incrementAndGet();
                    out.onNext(FakeGateway.schemaMessage());
                    out.onError(FakeGateway.error(Reason.STORE_UNAVAILABLE));
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            RetriableException e = catchThrowableOfType(RetriableException.class, stream::next);
            assertThat(e.reason()).isEqualTo(Reason.STORE_UNAVAILABLE);
        }
        assertThat(scans).hasValue(3);
    }

    @Test
    void anErrorThatWillNotPassEndsTheScanForGood() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(FakeGateway.batchMessage(0, 3));
                    out.onError(FakeGateway.error(Reason.ROW_TOO_LARGE));
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(stream.next().rows()).isEqualTo(3);
            FatalException e = catchThrowableOfType(FatalException.class, stream::next);
            assertThat(e.reason()).isEqualTo(Reason.ROW_TOO_LARGE);
            assertThat(e.requestId()).isEqualTo("r-1");
            assertThatThrownBy(stream::next).isSameAs(e);
            assertThat(stream.isFinished()).isFalse();
        }
        assertThat(gateway.requests()).hasSize(1);
    }

    @Test
    void aReaderThatDoesNotReadHoldsTheGatewayBack() throws Exception {
        int rowsPerBatch = 128 << 10;
        int batches = 64;
        Flood flood = new Flood(batches, rowsPerBatch);
        gateway.onScan(flood::start);
        GatewayOptions options = options(gateway.uri()).flowControlWindowBytes(1 << 20).build();
        try (GatewayClient client = GatewayClient.connect(options);
                BatchStream stream = client.read(TICKET, 0)) {
            stream.schema();
            Eventually.holds("the server is held back", flood::isHeldBack);
            // Read ahead, in the window, and what the server itself buffers: not all of 64 MiB.
            assertThat(flood.sent()).isLessThan(8);
            assertThat(countAll(stream)).isEqualTo(batches * rowsPerBatch);
        }
    }

    @Test
    void aStreamThatIsNotReadDoesNotHoldUpAnother() throws Exception {
        List<Flood> floods = new ArrayList<>();
        gateway.onScan(
                (ticket, out) -> {
                    Flood flood = new Flood(16, 128 << 10);
                    floods.add(flood);
                    flood.start(ticket, out);
                });
        GatewayOptions options = options(gateway.uri()).flowControlWindowBytes(1 << 20).build();
        try (GatewayClient client = GatewayClient.connect(options);
                BatchStream unread = client.read(TICKET, 0)) {
            unread.schema();
            Eventually.holds("the first is held back", () -> floods.get(0).isHeldBack());
            for (int i = 0; i < 3; i++) {
                try (BatchStream stream = client.read(TICKET, 0)) {
                    assertThat(countAll(stream)).isEqualTo(16 * (128 << 10));
                }
            }
            assertThat(countAll(unread)).isEqualTo(16 * (128 << 10));
        }
    }

    @Test
    void streamsHaveConnectionsForThemselvesAndLeaveThemToTheNext() throws Exception {
        gateway.onScan((ticket, out) -> sendRows(out, 0, 10));
        try (GatewayClient client = client()) {
            for (int round = 0; round < 3; round++) {
                try (BatchStream a = client.read(TICKET, 0);
                        BatchStream b = client.read(TICKET, 0)) {
                    assertThat(readAll(a)).hasSize(10);
                    assertThat(readAll(b)).hasSize(10);
                }
            }
        }
        assertThat(gateway.connections()).isEqualTo(2);
    }

    @Test
    void closingCancelsTheScan() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        gateway.onScan(
                (ticket, out) -> {
                    out.setOnCancelHandler(cancelled::countDown);
                    out.onNext(FakeGateway.schemaMessage());
                });
        try (GatewayClient client = client()) {
            BatchStream stream = client.read(TICKET, 0);
            stream.schema();
            stream.close();
            stream.close();
            cancelled.await();
            assertThatThrownBy(stream::next)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("the stream is closed");
        }
    }

    @Test
    void closingTheClientEndsItsStreams() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        gateway.onScan((ticket, out) -> out.setOnCancelHandler(cancelled::countDown));
        GatewayClient client = client();
        BatchStream stream = client.read(TICKET, 0);
        Eventually.holds("the scan has begun", () -> !gateway.requests().isEmpty());
        client.close();
        cancelled.await();
        assertThatThrownBy(stream::next).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aReaderThatWaitsIsEndedByAClose() throws Exception {
        gateway.onScan((ticket, out) -> out.onNext(FakeGateway.schemaMessage()));
        try (GatewayClient client = client()) {
            BatchStream stream = client.read(TICKET, 0);
            stream.schema();
            Waiter waiter = new Waiter(stream::next);
            waiter.awaitWaiting();
            stream.close();
            assertThat(waiter.thrown()).isInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aReaderThatWaitsCanBeInterrupted() throws Exception {
        gateway.onScan((ticket, out) -> out.onNext(FakeGateway.schemaMessage()));
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            stream.schema();
            Waiter waiter = new Waiter(stream::next);
            waiter.awaitWaiting();
            waiter.interrupt();
            assertThat(waiter.thrown()).isInstanceOf(InterruptedException.class);
        }
    }

    @Test
    void aPollEndsAtItsTimeoutOrWhenWokenUp() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    start(
                            () -> {
                                go.await();
                                out.onNext(FakeGateway.batchMessage(0, 1));
                                out.onCompleted();
                                return null;
                            });
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(stream.poll(Duration.ofMillis(1))).isNull();
            assertThat(stream.isFinished()).isFalse();

            Waiter waiter = new Waiter(() -> stream.poll(Duration.ofMinutes(1)));
            waiter.awaitWaiting();
            stream.wakeUp();
            assertThat(waiter.result()).isNull();

            stream.wakeUp();
            assertThat(stream.poll(Duration.ofMinutes(1))).isNull();

            go.countDown();
            assertThat(stream.poll(Duration.ofMinutes(1)).rows()).isEqualTo(1);
            assertThat(stream.poll(Duration.ofMinutes(1))).isNull();
            assertThat(stream.isFinished()).isTrue();
        }
    }

    @Test
    void aGatewayThatSendsNothingIsGivenUp() throws Exception {
        gateway.onScan((ticket, out) -> {});
        GatewayOptions options =
                options(gateway.uri()).streamIdleTimeout(Duration.ofMillis(50)).build();
        try (GatewayClient client = GatewayClient.connect(options);
                BatchStream stream = client.read(TICKET, 0)) {
            RetriableException e =
                    catchThrowableOfType(
                            RetriableException.class,
                            () -> {
                                while (stream.poll(Duration.ofMillis(20)) == null) {
                                    // Polls shorter than the limit do not start it anew.
                                }
                            });
            assertThat(e.reason()).isEqualTo(Reason.STREAM_IDLE);
        }
        assertThat(gateway.requests().size()).isLessThanOrEqualTo(3);
    }

    @Test
    void aMessageAboveTheLimitFailsTheScanAndOneBelowItDoesNot() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(FakeGateway.batchMessage(0, 7 << 20));
                    out.onNext(FakeGateway.batchMessage(0, (8 << 20) + 1));
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(stream.next().rows()).isEqualTo(7 << 20);
            assertThatThrownBy(stream::next)
                    .isInstanceOf(FatalException.class)
                    .hasMessageContaining("67108864");
        }
    }

    @Test
    void bytesThatAreNoArrowFailTheScan() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(
                            FakeGateway.batchMessage(0, 9).toBuilder()
                                    .setDataBody(ByteString.copyFromUtf8("short"))
                                    .build());
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            FatalException e = catchThrowableOfType(FatalException.class, stream::next);
            assertThat(e.reason()).isEqualTo(Reason.CORRUPT_DATA);
        }
    }

    @Test
    void aRowOfEightMebibytesIsRead() throws Exception {
        ArrowSchema schema = ArrowSchema.of(ArrowField.nullable("s", ArrowType.UTF8));
        ArrowBatchBuilder builder = new ArrowBatchBuilder(schema);
        String text = "x".repeat(8 << 20);
        ((BinaryBuilder) builder.column(0)).append(text);
        builder.endRow();
        FlightData message = FakeGateway.message(builder.encode());
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(
                            FlightData.newBuilder()
                                    .setDataHeader(ByteString.copyFrom(schema.toMessage()))
                                    .build());
                    out.onNext(message);
                    out.onCompleted();
                });
        try (GatewayClient client = client();
                BatchStream stream = client.read(TICKET, 0)) {
            assertThat(((BinaryVector) stream.next().column(0)).getString(0)).isEqualTo(text);
        }
    }

    @Test
    void aTicketThatIsNoneIsRefused() {
        try (GatewayClient client = client()) {
            FatalException e =
                    catchThrowableOfType(
                            FatalException.class, () -> client.read(new byte[] {-1, -1}, 0));
            assertThat(e.reason()).isEqualTo(Reason.INVALID_ARGUMENT);
        }
    }

    @Test
    void aScanRunsOverAUnixSocket(@TempDir Path dir) throws Exception {
        Path socket = dir.resolve("gateway.sock");
        try (FakeGateway unix = FakeGateway.onUnix(socket)) {
            unix.onScan((ticket, out) -> sendRows(out, 0, 50));
            GatewayOptions options = options("grpc+unix://" + socket).build();
            try (GatewayClient client = GatewayClient.connect(options);
                    BatchStream stream = client.read(TICKET, 0)) {
                assertThat(readAll(stream)).isEqualTo(range(0, 50));
            }
        }
    }

    @Test
    void aBrokenConnectionIsNotUsedForTheNextScan() throws Exception {
        gateway.onScan(
                (ticket, out) -> {
                    if (ticket.getRowOffset() == 0) {
                        out.onError(Status.UNAVAILABLE.asRuntimeException());
                    } else {
                        sendRows(out, ticket.getRowOffset(), 10);
                    }
                });
        try (GatewayClient client = client()) {
            try (BatchStream stream = client.read(TICKET, 0)) {
                assertThatThrownBy(stream::next).isInstanceOf(RetriableException.class);
            }
            try (BatchStream stream = client.read(TICKET, 1)) {
                assertThat(readAll(stream)).isEqualTo(range(1, 10));
            }
        }
    }

    private static void sendRows(ServerCallStreamObserver<FlightData> out, long from, long to) {
        out.onNext(FakeGateway.schemaMessage());
        for (long first = from; first < to; first += 8) {
            out.onNext(FakeGateway.batchMessage(first, (int) Math.min(8, to - first)));
        }
        out.onCompleted();
    }

    private static List<Long> readAll(BatchStream stream) throws InterruptedException {
        List<Long> ids = new ArrayList<>();
        ArrowBatch batch;
        while ((batch = stream.next()) != null) {
            ids.addAll(ids(batch));
        }
        return ids;
    }

    private static int countAll(BatchStream stream) throws InterruptedException {
        int rows = 0;
        ArrowBatch batch;
        while ((batch = stream.next()) != null) {
            rows += batch.rows();
        }
        return rows;
    }

    private static List<Long> ids(ArrowBatch batch) {
        FixedWidthVector ids = (FixedWidthVector) batch.column(0);
        List<Long> values = new ArrayList<>(batch.rows());
        for (int i = 0; i < batch.rows(); i++) {
            values.add(ids.getLong(i));
        }
        return values;
    }

    private static List<Long> range(long from, long to) {
        return LongStream.range(from, to).boxed().collect(Collectors.toList());
    }

    private static void start(Waiter.Work work) {
        new Waiter(work);
    }

    /** Sends batches as fast as the transport takes them, and no faster. */
    private static final class Flood {

        private final int batches;
        private final int rows;
        private volatile int sent;
        private volatile ServerCallStreamObserver<FlightData> out;

        Flood(int batches, int rows) {
            this.batches = batches;
            this.rows = rows;
        }

        void start(ScanTicket ticket, ServerCallStreamObserver<FlightData> observer) {
            out = observer;
            out.setOnReadyHandler(this::send);
            out.onNext(FakeGateway.schemaMessage());
        }

        private void send() {
            while (out.isReady() && sent < batches) {
                out.onNext(FakeGateway.batchMessage(0, rows));
                if (++sent == batches) {
                    out.onCompleted();
                }
            }
        }

        int sent() {
            return sent;
        }

        boolean isHeldBack() {
            return sent > 0 && sent < batches && !out.isReady();
        }
    }
}
