package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import io.grpc.stub.StreamObserver;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.flight.FlightData;
import io.lancegateway.proto.v1.ExchangeCommand;
import io.lancegateway.proto.v1.LookupAnswer;
import io.lancegateway.proto.v1.LookupRequest;
import io.lancegateway.proto.v1.QueryAnswer;
import io.lancegateway.proto.v1.QueryError;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.SearchInfo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Queries on one stream, against a server that answers as told. */
@Timeout(60)
class ExchangeTest {

    private static final ExchangeCommand LOOKUP =
            ExchangeCommand.newBuilder()
                    .setLookup(LookupRequest.newBuilder().setTable(Tables.named("t")))
                    .build();
    private static final ExchangeCommand SEARCH =
            ExchangeCommand.newBuilder()
                    .setSearch(ScanRequest.newBuilder().setTable(Tables.named("t")))
                    .build();

    private static final ArrowSchema ROWS =
            ArrowSchema.of(
                    ArrowField.required("_query", ArrowType.UINT64),
                    ArrowField.required("id", ArrowType.INT64));

    private final FakeGateway gateway = FakeGateway.onTcp();

    /** Each stream that was opened. */
    private final LinkedBlockingQueue<Stream> streams = new LinkedBlockingQueue<>();

    ExchangeTest() {
        gateway.onExchange(
                observer -> {
                    Stream stream = new Stream(observer);
                    streams.add(stream);
                    return stream;
                });
    }

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

    private static Exchange open(GatewayClient client, ExchangeCommand command) {
        return client.exchange(command, FakeGateway.SCHEMA);
    }

    private static Exchange.Query key(long id) {
        return batch -> FakeGateway.fill(batch, id, 1);
    }

    /** The stream, after a first query that found nothing: the next one is query 1, batch 1. */
    private Stream warmUp(Exchange exchange, ExchangeCommand command) throws Exception {
        CompletableFuture<FoundRows> found = exchange.ask(key(-1));
        Stream stream = streams.take();
        stream.take();
        if (command.hasLookup()) {
            stream.rows(0, 0, List.of());
        } else {
            stream.found(0, 0);
        }
        assertThat(found.get().size()).isZero();
        return stream;
    }

    @Test
    void keysThatComeWhileOthersAreUnderWayGoTogetherAndEachGetsItsRows() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            Stream stream = warmUp(exchange, LOOKUP);
            assertThat(stream.command()).isEqualTo(LOOKUP);
            List<CompletableFuture<FoundRows>> found = new ArrayList<>();
            for (long id = 0; id < 10; id++) {
                found.add(exchange.ask(key(id)));
            }
            assertThat(stream.take()).containsExactly(0L);
            assertThat(stream.take()).containsExactly(1L);
            // Out of order, and the second key has no row.
            stream.rows(2, 2, List.of());
            assertThat(stream.take()).containsExactly(2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L);
            stream.rows(3, 3, List.of(10L, 3L, 10L));
            stream.rows(1, 1, List.of(1L));

            assertThat(ids(found.get(0))).containsExactly(0L);
            assertThat(ids(found.get(1))).isEmpty();
            assertThat(ids(found.get(2))).containsExactly(2L);
            assertThat(ids(found.get(3))).isEmpty();
            assertThat(ids(found.get(9))).containsExactly(9L, 9L);
            assertThat(found.get(9).get().version()).isEqualTo(7);
        }
    }

    @Test
    void whatIsNotAnsweredWhenTheStreamBreaksIsAskedAgain() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            Stream stream = warmUp(exchange, LOOKUP);
            CompletableFuture<FoundRows> first = exchange.ask(key(1));
            CompletableFuture<FoundRows> second = exchange.ask(key(2));
            stream.take();
            stream.take();
            stream.rows(1, 1, List.of(1L));
            assertThat(ids(first)).containsExactly(1L);
            stream.breakWith(Reason.DRAINING);

            Stream next = streams.take();
            assertThat(next.take()).containsExactly(2L);
            next.rows(0, 0, List.of(0L));
            assertThat(ids(second)).containsExactly(2L);
        }
    }

    @Test
    void aStreamThatBreaksTooOftenFailsItsQueries() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            CompletableFuture<FoundRows> found = exchange.ask(key(1));
            for (int attempt = 0; attempt < 3; attempt++) {
                streams.take().breakWith(Reason.STARTING);
            }
            assertThat(failure(found).reason()).isEqualTo(Reason.STARTING);
            assertThat(failure(found)).isInstanceOf(RetriableException.class);
        }
    }

    @Test
    void aStreamThatIsRefusedFailsAllThatWait() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            List<CompletableFuture<FoundRows>> found = new ArrayList<>();
            for (long id = 0; id < 5; id++) {
                found.add(exchange.ask(key(id)));
            }
            streams.take().breakWith(Reason.TABLE_NOT_FOUND);
            for (CompletableFuture<FoundRows> each : found) {
                assertThat(failure(each).reason()).isEqualTo(Reason.TABLE_NOT_FOUND);
            }
        }
    }

    @Test
    void aStreamThatEndsWhileNobodyAsksIsReplaced() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            CompletableFuture<FoundRows> first = exchange.ask(key(1));
            Stream stream = streams.take();
            stream.take();
            stream.rows(0, 0, List.of());
            first.get();
            stream.breakWith(Reason.STREAM_IDLE);

            // Until the end has arrived the next one still goes to the old stream.
            CompletableFuture<FoundRows> second = exchange.ask(key(2));
            Stream next = streams.take();
            next.take();
            next.rows(0, 0, List.of(0L));
            assertThat(ids(second)).containsExactly(2L);
        }
    }

    @Test
    void aSearchThatFailsDisturbsNoOtherAndOneThatMayWorkLaterIsRepeated() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, SEARCH)) {
            Stream stream = warmUp(exchange, SEARCH);
            CompletableFuture<FoundRows> bad = exchange.ask(key(1));
            CompletableFuture<FoundRows> later = exchange.ask(key(2));
            stream.take();
            stream.take();
            stream.failed(2, Reason.STORE_UNAVAILABLE);
            stream.failed(1, Reason.INVALID_ARGUMENT);
            assertThat(failure(bad))
                    .isInstanceOf(FatalException.class)
                    .hasMessageContaining("INVALID_ARGUMENT: told by the test");
            assertThat(stream.take()).containsExactly(2L);
            // An answer in two messages.
            stream.found(3, 2, 5L);
            stream.more(6L);
            assertThat(ids(later)).containsExactly(5L, 6L);
        }
    }

    @Test
    void aBatchOfKeysThatFailsForNowIsRepeated() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            CompletableFuture<FoundRows> found = exchange.ask(key(1));
            Stream stream = streams.take();
            stream.take();
            stream.batchFailed(0, 0, Reason.OVERLOADED);
            assertThat(stream.take()).containsExactly(1L);
            stream.rows(1, 1, List.of(1L));
            assertThat(ids(found)).containsExactly(1L);
        }
    }

    @Test
    void aQueryThatCannotBeWrittenFailsAlone() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, LOOKUP)) {
            Stream stream = warmUp(exchange, LOOKUP);
            CompletableFuture<FoundRows> first = exchange.ask(key(1));
            exchange.ask(key(2));
            stream.take();
            stream.take();
            CompletableFuture<FoundRows> good = exchange.ask(key(3));
            CompletableFuture<FoundRows> bad =
                    exchange.ask(
                            batch -> {
                                ((FixedWidthBuilder) batch.column(0)).appendLong(4);
                                throw new IllegalArgumentException("no key");
                            });
            stream.rows(1, 1, List.of());
            assertThat(first.get().size()).isZero();
            assertThat(stream.take()).containsExactly(3L);
            stream.rows(3, 3, List.of(3L));
            assertThat(ids(good)).containsExactly(3L);
            assertThatThrownBy(bad::get)
                    .hasCauseInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("no key");
        }
    }

    @Test
    void atMostSoManyQueriesAreOpen() throws Exception {
        GatewayOptions two = options(gateway.uri()).maxQueries(2).build();
        try (GatewayClient client = GatewayClient.connect(two);
                Exchange exchange = open(client, LOOKUP)) {
            Stream stream = warmUp(exchange, LOOKUP);
            exchange.ask(key(1));
            exchange.ask(key(2));
            Waiter third = new Waiter(() -> exchange.ask(key(3)));
            third.awaitWaiting();
            stream.take();
            stream.take();
            stream.rows(1, 1, List.of());
            third.result();
            assertThat(stream.take()).containsExactly(3L);
        }
    }

    @Test
    void aCloseFailsWhatIsOpen() throws Exception {
        try (GatewayClient client = client()) {
            Exchange exchange = open(client, LOOKUP);
            CompletableFuture<FoundRows> found = exchange.ask(key(1));
            streams.take();
            exchange.close();
            assertThat(failure(found).reason()).isEqualTo(Reason.CANCELLED);
            assertThatThrownBy(() -> exchange.ask(key(2)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("closed");
        }
    }

    @Test
    void anAnswerNobodyAskedForIsAnError() throws Exception {
        try (GatewayClient client = client();
                Exchange exchange = open(client, SEARCH)) {
            CompletableFuture<FoundRows> found = exchange.ask(key(1));
            Stream stream = streams.take();
            stream.take();
            stream.found(5, 0);
            assertThat(failure(found).reason()).isEqualTo(Reason.CORRUPT_DATA);
        }
    }

    private static List<Long> ids(CompletableFuture<FoundRows> found) throws Exception {
        FoundRows rows = found.get(30, TimeUnit.SECONDS);
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            ids.add(((FixedWidthVector) rows.batch(i).column(1)).getLong(rows.row(i)));
        }
        return ids;
    }

    private static LanceGatewayException failure(CompletableFuture<FoundRows> found) {
        ExecutionException e =
                catchThrowableOfType(
                        ExecutionException.class, () -> found.get(30, TimeUnit.SECONDS));
        return (LanceGatewayException) e.getCause();
    }

    /** A stream as the gateway sees it. */
    private static final class Stream implements StreamObserver<FlightData> {

        private final StreamObserver<FlightData> answers;
        private final LinkedBlockingQueue<FlightData> messages = new LinkedBlockingQueue<>();
        private final BatchDecoder decoder = new BatchDecoder();
        private final List<Long> keys = new ArrayList<>();
        private ExchangeCommand command;

        Stream(StreamObserver<FlightData> answers) {
            this.answers = answers;
            answers.onNext(
                    FlightData.newBuilder()
                            .setDataHeader(ByteString.copyFrom(ROWS.toMessage()))
                            .build());
        }

        /** What was asked for, once queries were taken. */
        ExchangeCommand command() {
            return command;
        }

        /** The queries of the next message. */
        List<Long> take() throws Exception {
            ArrowBatch batch;
            do {
                FlightData message = messages.take();
                if (message.hasFlightDescriptor()) {
                    command = ExchangeCommand.parseFrom(message.getFlightDescriptor().getCmd());
                }
                batch =
                        decoder.decode(
                                message.getDataHeader().asReadOnlyByteBuffer(),
                                message.getDataBody().toByteArray());
            } while (batch == null);
            FixedWidthVector column = (FixedWidthVector) batch.column(0);
            List<Long> ids =
                    LongStream.range(0, batch.rows())
                            .mapToObj(row -> column.getLong((int) row))
                            .collect(Collectors.toList());
            keys.addAll(ids);
            return ids;
        }

        /** Answers a batch of keys: each query that is named finds a row with its key. */
        void rows(long batch, long first, List<Long> queries) {
            LookupAnswer answer =
                    LookupAnswer.newBuilder()
                            .setBatch(batch)
                            .setFirstQuery(first)
                            .setVersion(7)
                            .setNumRows(queries.size())
                            .build();
            ArrowBatchBuilder rows = new ArrowBatchBuilder(ROWS);
            for (long query : queries) {
                append(rows, query, keys.get((int) query));
            }
            FlightData.Builder message =
                    queries.isEmpty()
                            ? FlightData.newBuilder()
                            : FakeGateway.message(rows.encode()).toBuilder();
            answers.onNext(message.setAppMetadata(answer.toByteString()).build());
        }

        void batchFailed(long batch, long first, Reason reason) {
            LookupAnswer answer =
                    LookupAnswer.newBuilder()
                            .setBatch(batch)
                            .setFirstQuery(first)
                            .setError(error(reason))
                            .build();
            answers.onNext(FlightData.newBuilder().setAppMetadata(answer.toByteString()).build());
        }

        /** Answers a search of so many rows with the first of them. */
        void found(long query, long numRows, long... ids) {
            SearchInfo info = SearchInfo.newBuilder().setNumRows(numRows).setVersion(7).build();
            answer(QueryAnswer.newBuilder().setQuery(query).setInfo(info).build(), ids);
        }

        void more(long... ids) {
            answer(QueryAnswer.getDefaultInstance(), ids);
        }

        void failed(long query, Reason reason) {
            answer(QueryAnswer.newBuilder().setQuery(query).setError(error(reason)).build());
        }

        private void answer(QueryAnswer answer, long... ids) {
            ArrowBatchBuilder rows = new ArrowBatchBuilder(ROWS);
            for (long id : ids) {
                append(rows, answer.getQuery(), id);
            }
            answers.onNext(
                    FakeGateway.message(rows.encode()).toBuilder()
                            .setAppMetadata(answer.toByteString())
                            .build());
        }

        private static QueryError error(Reason reason) {
            return QueryError.newBuilder()
                    .setReason(reason.name())
                    .setMessage("told by the test")
                    .build();
        }

        private static void append(ArrowBatchBuilder rows, long query, long id) {
            ((FixedWidthBuilder) rows.column(0)).appendLong(query);
            ((FixedWidthBuilder) rows.column(1)).appendLong(id);
            rows.endRow();
        }

        void breakWith(Reason reason) {
            answers.onError(FakeGateway.error(reason));
        }

        @Override
        public void onNext(FlightData message) {
            messages.add(message);
        }

        @Override
        public void onError(Throwable e) {
            // The client went away.
        }

        @Override
        public void onCompleted() {
            answers.onCompleted();
        }
    }
}
