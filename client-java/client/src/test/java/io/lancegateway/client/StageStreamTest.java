package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.flight.FlightData;
import io.lancegateway.proto.flight.PutResult;
import io.lancegateway.proto.v1.PutCommand;
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

/** Staging, against a server that takes as told. */
@Timeout(60)
class StageStreamTest {

    private static final WriteHandle HANDLE =
            new WriteHandle(new byte[] {7, 8}, FakeGateway.SCHEMA);

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

    private static StageStream stage(GatewayClient client) throws InterruptedException {
        return client.stage(HANDLE, StageOptions.defaults().withMaxRowsPerFile(1000));
    }

    @Test
    void rowsArriveAndAreStaged() throws Exception {
        Taker taker = new Taker();
        gateway.onPut(taker);
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            for (int batch = 0; batch < 50; batch++) {
                FakeGateway.fill(builder, batch * 100L, 100);
                stream.write(builder);
                assertThat(builder.isEmpty()).isTrue();
            }
            stream.write(builder);
            assertThat(stream.rowsSent()).isEqualTo(5000);
            StagedWrite staged = stream.finish();
            assertThat(staged.rows()).isEqualTo(5000);
            assertThat(staged.sizeInBytes()).isEqualTo(40_000);
            assertThat(staged.bytes()).isEqualTo("staged 5000".getBytes());
            assertThat(stream.rowsDurable()).isEqualTo(5000);
        }
        assertThat(taker.ids())
                .isEqualTo(LongStream.range(0, 5000).boxed().collect(Collectors.toList()));
        PutCommand command =
                PutCommand.parseFrom(taker.messages.get(0).getFlightDescriptor().getCmd());
        assertThat(command.getStage().getWrite().toByteArray()).containsExactly(7, 8);
        assertThat(command.getStage().getMaxRowsPerFile()).isEqualTo(1000);
        assertThat(taker.messages).hasSize(51);
    }

    @Test
    void aStreamWithoutRowsStagesNothing() throws Exception {
        gateway.onPut(new Taker());
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            StagedWrite staged = stream.finish();
            assertThat(staged.rows()).isZero();
            assertThat(staged.bytes()).isEmpty();
        }
    }

    @Test
    void aGatewayThatDoesNotKeepUpHoldsTheWriterBack() throws Exception {
        int rowsPerBatch = 128 << 10;
        int batches = 64;
        Taker taker = new Taker();
        taker.isPaused = true;
        gateway.onPut(taker);
        GatewayOptions options = options(gateway.uri()).sendBufferBytes(1 << 20).build();
        try (GatewayClient client = GatewayClient.connect(options);
                StageStream stream = stage(client)) {
            AtomicInteger written = new AtomicInteger();
            Waiter writer =
                    new Waiter(
                            () -> {
                                ArrowBatchBuilder builder =
                                        new ArrowBatchBuilder(FakeGateway.SCHEMA);
                                for (int i = 0; i < batches; i++) {
                                    FakeGateway.fill(builder, 0, rowsPerBatch);
                                    stream.write(builder);
                                    written.incrementAndGet();
                                }
                                return stream.finish();
                            });
            Eventually.holds("some was written", () -> written.get() > 0);
            writer.awaitWaiting();
            // In the server's window, in sockets and in our buffer: not all of 64 MiB.
            assertThat(written.get()).isLessThan(16);
            assertThat(writer.isRunning()).isTrue();
            taker.resume();
            assertThat(((StagedWrite) writer.result()).rows())
                    .isEqualTo((long) batches * rowsPerBatch);
        }
    }

    @Test
    void aWriterThatIsHeldBackCanBeInterrupted() throws Exception {
        Taker taker = new Taker();
        taker.isPaused = true;
        gateway.onPut(taker);
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            Waiter writer = new Waiter(() -> writeForever(stream));
            Eventually.holds("some was written", () -> stream.rowsSent() > 1 << 18);
            writer.awaitWaiting();
            writer.interrupt();
            assertThat(writer.thrown()).isInstanceOf(InterruptedException.class);
        }
    }

    @Test
    void aWriterThatIsHeldBackForTooLongFails() throws Exception {
        Taker taker = new Taker();
        taker.isPaused = true;
        gateway.onPut(taker);
        GatewayOptions options =
                options(gateway.uri()).streamIdleTimeout(Duration.ofMillis(200)).build();
        try (GatewayClient client = GatewayClient.connect(options);
                StageStream stream = stage(client)) {
            RetriableException e =
                    catchThrowableOfType(RetriableException.class, () -> writeForever(stream));
            assertThat(e.reason()).isEqualTo(Reason.STREAM_IDLE);
        }
    }

    @Test
    void anErrorOfTheGatewayReachesTheWriterAndNothingIsSentAgain() throws Exception {
        AtomicInteger puts = new AtomicInteger();
        gateway.onPut(
                out -> {
                    puts.incrementAndGet();
                    return new Taker() {
                        private boolean refused;

                        @Override
                        public void onNext(FlightData message) {
                            if (messages.size() < 3) {
                                super.onNext(message);
                            } else if (!refused) {
                                refused = true;
                                out.onError(FakeGateway.error(Reason.SCHEMA_MISMATCH));
                            }
                        }
                    }.apply(out);
                });
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            FatalException e =
                    catchThrowableOfType(FatalException.class, () -> writeForever(stream));
            assertThat(e.reason()).isEqualTo(Reason.SCHEMA_MISMATCH);
            assertThatThrownBy(stream::finish).isInstanceOf(FatalException.class);
        }
        assertThat(puts).hasValue(1);
    }

    @Test
    void aConnectionThatBreaksFailsTheStreamAsRetriable() throws Exception {
        gateway.onPut(new Taker());
        try (Wire wire = new Wire(gateway.port());
                GatewayClient client = GatewayClient.connect(options(wire.uri()).build());
                StageStream stream = stage(client)) {
            wire.cut();
            assertThatThrownBy(() -> writeForever(stream)).isInstanceOf(RetriableException.class);
        }
    }

    @Test
    void aReplyThatIsLostFailsTheStream() throws Exception {
        try (Wire wire = new Wire(gateway.port());
                GatewayClient client = GatewayClient.connect(options(wire.uri()).build())) {
            gateway.onPut(
                    out ->
                            new Taker() {
                                @Override
                                public void onCompleted() {
                                    wire.cut();
                                }
                            }.apply(out));
            try (StageStream stream = stage(client)) {
                ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
                FakeGateway.fill(builder, 0, 10);
                stream.write(builder);
                assertThatThrownBy(stream::finish).isInstanceOf(RetriableException.class);
            }
        }
    }

    @Test
    void aGatewayThatRefusesAStreamForNowIsAskedAgain() throws Exception {
        AtomicInteger puts = new AtomicInteger();
        Taker taker = new Taker();
        gateway.onPut(
                out -> {
                    if (puts.incrementAndGet() < 3) {
                        out.onError(FakeGateway.error(Reason.OVERLOADED, Duration.ofMillis(2)));
                        return new Taker();
                    }
                    return taker.apply(out);
                });
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            FakeGateway.fill(builder, 0, 10);
            stream.write(builder);
            assertThat(stream.finish().rows()).isEqualTo(10);
        }
        assertThat(puts).hasValue(3);
    }

    @Test
    void aGatewayThatRefusesAStreamForGoodIsNot() throws Exception {
        AtomicInteger puts = new AtomicInteger();
        gateway.onPut(
                out -> {
                    puts.incrementAndGet();
                    out.onError(FakeGateway.error(Reason.CORRUPT_DATA));
                    return new Taker();
                });
        try (GatewayClient client = client()) {
            FatalException e = catchThrowableOfType(FatalException.class, () -> stage(client));
            assertThat(e.reason()).isEqualTo(Reason.CORRUPT_DATA);
        }
        assertThat(puts).hasValue(1);
    }

    @Test
    void closingCancelsTheStream() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        gateway.onPut(
                out -> {
                    out.setOnCancelHandler(cancelled::countDown);
                    return new Taker().apply(out);
                });
        try (GatewayClient client = client()) {
            StageStream stream = stage(client);
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            FakeGateway.fill(builder, 0, 10);
            stream.write(builder);
            stream.close();
            stream.close();
            cancelled.await();
            FakeGateway.fill(builder, 0, 10);
            assertThatThrownBy(() -> stream.write(builder))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("the stream is closed");
        }
    }

    @Test
    void rowsThatTheGatewayDoesNotCountAreMissed() throws Exception {
        gateway.onPut(
                out ->
                        new Taker() {
                            @Override
                            long count() {
                                return super.count() - 1;
                            }
                        }.apply(out));
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            FakeGateway.fill(builder, 0, 10);
            stream.write(builder);
            assertThatThrownBy(stream::finish)
                    .isInstanceOf(FatalException.class)
                    .hasMessageContaining("9 of 10 rows");
        }
    }

    @Test
    void aBatchAboveTheLimitIsRefusedWithItsSizeAndTheLimit() throws Exception {
        gateway.onPut(new Taker());
        try (GatewayClient client = client();
                StageStream stream = stage(client)) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            FakeGateway.fill(builder, 0, 8 << 20);
            FatalException e =
                    catchThrowableOfType(FatalException.class, () -> stream.write(builder));
            assertThat(e.reason()).isEqualTo(Reason.MESSAGE_TOO_LARGE);
            assertThat(e).hasMessageContaining("8388608 rows").hasMessageContaining("67108864");
            builder.reset();
            FakeGateway.fill(builder, 0, 7 << 20);
            stream.write(builder);
            assertThat(stream.finish().rows()).isEqualTo(7 << 20);
        }
    }

    @Test
    void manyStreamsRunAtOnceAndOneThatIsHeldBackHoldsUpNoOther() throws Exception {
        Taker paused = new Taker();
        paused.isPaused = true;
        AtomicInteger puts = new AtomicInteger();
        gateway.onPut(out -> (puts.incrementAndGet() == 1 ? paused : new Taker()).apply(out));
        try (GatewayClient client = client();
                StageStream held = stage(client)) {
            Waiter writer = new Waiter(() -> writeForever(held));
            Eventually.holds("some was written", () -> held.rowsSent() > 1 << 18);
            writer.awaitWaiting();
            List<StageStream> others = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                others.add(stage(client));
            }
            ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
            for (StageStream other : others) {
                FakeGateway.fill(builder, 0, 100_000);
                other.write(builder);
            }
            for (StageStream other : others) {
                assertThat(other.finish().rows()).isEqualTo(100_000);
            }
            held.close();
            assertThat(writer.thrown()).isInstanceOf(IllegalStateException.class);
        }
    }

    private static Object writeForever(StageStream stream) throws InterruptedException {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
        while (true) {
            FakeGateway.fill(builder, 0, 32 << 10);
            stream.write(builder);
        }
    }

    /** Takes rows as the gateway does: acknowledges each batch, and all at the end. */
    private static class Taker
            implements java.util.function.Function<
                            ServerCallStreamObserver<PutResult>, StreamObserver<FlightData>>,
                    StreamObserver<FlightData> {

        final List<FlightData> messages = new CopyOnWriteArrayList<>();
        volatile boolean isPaused;
        private volatile ServerCallStreamObserver<PutResult> out;
        private final List<Long> ids = new CopyOnWriteArrayList<>();
        private final BatchDecoder decoder = new BatchDecoder();
        private long rows;

        @Override
        public StreamObserver<FlightData> apply(ServerCallStreamObserver<PutResult> observer) {
            out = observer;
            out.disableAutoRequest();
            out.request(isPaused ? 1 : 2);
            return this;
        }

        void resume() {
            isPaused = false;
            out.request(1);
        }

        @Override
        public void onNext(FlightData message) {
            if (messages.isEmpty()) {
                out.onNext(FakeGateway.ack(0, false));
            }
            if (messages.size() < 100) {
                messages.add(message);
            }
            ArrowBatch batch =
                    decoder.decode(
                            message.getDataHeader().asReadOnlyByteBuffer(),
                            message.getDataBody().toByteArray());
            if (batch != null) {
                rows += batch.rows();
                if (batch.rows() <= 100) {
                    FixedWidthVector column = (FixedWidthVector) batch.column(0);
                    List<Long> values = new ArrayList<>();
                    for (int i = 0; i < batch.rows(); i++) {
                        values.add(column.getLong(i));
                    }
                    ids.addAll(values);
                }
                out.onNext(FakeGateway.ack(rows, false));
            }
            if (!isPaused) {
                out.request(1);
            }
        }

        long count() {
            return rows;
        }

        List<Long> ids() {
            return ids;
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onCompleted() {
            out.onNext(FakeGateway.ack(count(), true));
            out.onCompleted();
        }
    }
}
