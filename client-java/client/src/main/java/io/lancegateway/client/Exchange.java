package io.lancegateway.client;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.lancegateway.client.Reason.Retry;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowFormatException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.proto.flight.FlightDescriptor;
import io.lancegateway.proto.flight.FlightDescriptor.DescriptorType;
import io.lancegateway.proto.v1.ExchangeCommand;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * Many queries, searches or lookups, over one stream, each with an answer of its own. A query that
 * comes while nothing is under way goes at once; those that come while {@link #MAX_ROUNDS} messages
 * wait for answers go together in the next one. So a slow gateway is asked less often, not later.
 *
 * <p>If the stream breaks in a way that passes, what was not answered is asked again.
 *
 * <p>Bounded: at most {@link GatewayOptions#maxQueries} queries are open; a further one waits.
 *
 * <p>For any number of threads. Futures end in the thread of the connection, which must not be held
 * up.
 */
public final class Exchange implements AutoCloseable {

    private static final String DOING = "DoExchange";

    /** Messages whose answers are due: while one is answered the next is there already. */
    private static final int MAX_ROUNDS = 2;

    private final Connections connections;
    private final GatewayOptions options;
    private final ExchangeCommand command;
    private final Consumer<Exchange> onClose;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition room = lock.newCondition();

    // Guarded by the lock.
    private final ArrowBatchBuilder batch;
    private final Deque<Open> waiting = new ArrayDeque<>();
    private final List<Runnable> endings = new ArrayList<>();
    private Attempt attempt;
    private Backoff backoff;
    private boolean resting;
    private int numOpen;
    private boolean closed;

    Exchange(
            Connections connections,
            ExchangeCommand command,
            ArrowSchema queries,
            Consumer<Exchange> onClose) {
        this.connections = connections;
        this.options = connections.options();
        this.command = command;
        this.onClose = onClose;
        this.batch = new ArrowBatchBuilder(queries);
        this.backoff = new Backoff(options);
    }

    /** What is asked. */
    public interface Query {

        /**
         * Appends one row. Called again when the query is asked again; never for two queries of an
         * exchange at once.
         */
        void append(ArrowBatchBuilder batch);
    }

    /**
     * Asks. The future fails with a {@link LanceGatewayException}, or with what {@link
     * Query#append} throws. Waits while too many queries are open.
     */
    public CompletableFuture<FoundRows> ask(Query query) throws InterruptedException {
        Open open = new Open(query);
        lock.lockInterruptibly();
        try {
            while (numOpen >= options.maxQueries() && !closed) {
                room.await();
            }
            if (closed) {
                throw new IllegalStateException("the exchange is closed");
            }
            numOpen++;
            waiting.addLast(open);
            sendWaiting();
        } finally {
            unlock();
        }
        return open.future;
    }

    /**
     * Asks, and waits for the answer.
     *
     * @throws LanceGatewayException if there is none
     */
    public FoundRows find(Query query) throws InterruptedException {
        try {
            return ask(query).get(options.callTimeout().toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException) {
                throw (RuntimeException) e.getCause();
            }
            throw new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            String message = "no answer within " + options.callTimeout();
            throw Failure.local(Reason.DEADLINE_EXCEEDED, message, e).toException(DOING);
        }
    }

    /** Ends the stream. What is not answered yet fails. */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            Failure failure = Failure.local(Reason.CANCELLED, "the exchange is closed", null);
            if (attempt != null) {
                Attempt last = attempt;
                attempt = null;
                last.call.cancel("no longer needed", null);
                connections.giveBack(last.channel, true);
                last.rounds.forEach(round -> round.forEachOpen(open -> fail(open, failure)));
            }
            failWaiting(failure);
        } finally {
            unlock();
        }
        onClose.accept(this);
        UnaryCalls.forgetThread();
    }

    /** Ends futures after the lock: whoever waits for them may ask again. */
    private void unlock() {
        List<Runnable> due = List.copyOf(endings);
        endings.clear();
        room.signalAll();
        lock.unlock();
        due.forEach(Runnable::run);
    }

    private void end(Runnable ending) {
        numOpen--;
        endings.add(ending);
    }

    private void fail(Open open, Failure failure) {
        end(() -> open.future.completeExceptionally(failure.toException(DOING)));
    }

    private void failWaiting(Failure failure) {
        waiting.forEach(open -> fail(open, failure));
        waiting.clear();
    }

    /** Sends what waits, as far as it may go now. */
    private void sendWaiting() {
        while (!closed && !resting && !waiting.isEmpty()) {
            if (attempt == null) {
                attempt = new Attempt();
                attempt.start();
            }
            // A call that is not ready may keep the message, whose arrays are used again.
            if (attempt.rounds.size() >= MAX_ROUNDS || !attempt.call.isReady()) {
                return;
            }
            List<Open> round = fill();
            if (round.isEmpty()) {
                return;
            }
            EncodedBatch rows = batch.encode();
            PutMessage message = PutMessage.batch(rows);
            if (message.size() > options.maxMessageBytes()) {
                String why =
                        String.format(
                                "a query makes a message of %d bytes, the limit is %d",
                                message.size(), options.maxMessageBytes());
                round.forEach(
                        open -> fail(open, Failure.local(Reason.MESSAGE_TOO_LARGE, why, null)));
            } else {
                attempt.send(round, message);
            }
            batch.reset();
        }
    }

    /** Appends what waits to the batch, up to the bytes that a connection buffers. */
    private List<Open> fill() {
        List<Open> round = new ArrayList<>();
        while (!waiting.isEmpty() && batch.sizeInBytes() < options.sendBufferBytes()) {
            Open open = waiting.pollFirst();
            try {
                open.query.append(batch);
                round.add(open);
            } catch (RuntimeException e) {
                end(() -> open.future.completeExceptionally(e));
                // Half of it may be in the batch: begin again without it.
                batch.reset();
                for (int i = round.size() - 1; i >= 0; i--) {
                    waiting.addFirst(round.get(i));
                }
                round.clear();
            }
        }
        return round;
    }

    /** Asks again what may be answered then, after a while. */
    private void again(Open open, Failure failure) {
        open.failures++;
        if (failure.retry() == Retry.NEVER || open.failures >= options.maxAttempts()) {
            fail(open, failure);
        } else {
            waiting.addLast(open);
            rest(failure.retryDelay());
        }
    }

    private void rest(Duration asked) {
        if (!resting) {
            resting = true;
            connections.later(backoff.nextNanos(asked), this::goOn);
        }
    }

    private void goOn() {
        lock.lock();
        try {
            resting = false;
            sendWaiting();
        } finally {
            unlock();
        }
    }

    /** A query without an answer. */
    private static final class Open {

        final Query query;
        final CompletableFuture<FoundRows> future = new CompletableFuture<>();
        int failures;

        Open(Query query) {
            this.query = query;
        }
    }

    /** Queries that went together. */
    private static final class Round {

        /** Which query of the stream the first one is. */
        final long first;

        /** Null where the answer was had. */
        final Open[] queries;

        int numOpen;

        Round(long first, List<Open> queries) {
            this.first = first;
            this.queries = queries.toArray(new Open[0]);
            this.numOpen = this.queries.length;
        }

        boolean has(long query) {
            return query >= first && query - first < queries.length;
        }

        Open take(long query) {
            int index = (int) (query - first);
            Open open = queries[index];
            if (open == null) {
                throw new ArrowFormatException("query " + query + " is answered twice");
            }
            queries[index] = null;
            numOpen--;
            return open;
        }

        void forEachOpen(Consumer<Open> consumer) {
            for (Open open : queries) {
                if (open != null) {
                    consumer.accept(open);
                }
            }
        }
    }

    /** One DoExchange. */
    private final class Attempt extends ClientCall.Listener<FlightMessage>
            implements Answers.Receiver {

        private final ManagedChannel channel = connections.take();
        // Answers are taken where they arrive: they are small, and only put together.
        private final ClientCall<PutMessage, FlightMessage> call =
                channel.newCall(
                        Methods.DO_EXCHANGE, CallOptions.DEFAULT.withExecutor(Runnable::run));
        private final Answers answers =
                command.hasLookup()
                        ? Answers.ofLookups(this, first -> round(first).queries.length)
                        : Answers.ofSearches(this);
        private final List<Round> rounds = new ArrayList<>();
        private long numSent;

        void start() {
            FlightDescriptor descriptor =
                    FlightDescriptor.newBuilder()
                            .setType(DescriptorType.CMD)
                            .setCmd(command.toByteString())
                            .build();
            call.start(this, new Metadata());
            call.request(1);
            call.sendMessage(PutMessage.schema(descriptor, batch.schema()));
        }

        void send(List<Open> queries, PutMessage message) {
            rounds.add(new Round(numSent, queries));
            numSent += queries.size();
            call.sendMessage(message);
        }

        private Round round(long query) {
            for (Round round : rounds) {
                if (round.has(query)) {
                    return round;
                }
            }
            throw new ArrowFormatException("an answer to query " + query + ", which is not asked");
        }

        @Override
        public void onReady() {
            lock.lock();
            try {
                sendWaiting();
            } finally {
                unlock();
            }
        }

        @Override
        public void onMessage(FlightMessage message) {
            lock.lock();
            try {
                if (attempt == this) {
                    answers.take(message);
                    sendWaiting();
                }
            } catch (ArrowFormatException e) {
                call.cancel(e.getMessage(), e);
                broke(Failure.local(Reason.CORRUPT_DATA, e.getMessage(), e), false);
            } finally {
                unlock();
            }
            call.request(1);
        }

        @Override
        public void found(long first, List<FoundRows> rows) {
            Round round = round(first);
            for (int i = 0; i < rows.size(); i++) {
                Open open = round.take(first + i);
                FoundRows found = rows.get(i);
                end(() -> open.future.complete(found));
            }
            backoff = new Backoff(options);
            endIfAnswered(round);
        }

        @Override
        public void failed(long query, Failure failure) {
            Round round = round(query);
            if (command.hasLookup()) {
                for (int i = 0; i < round.queries.length; i++) {
                    again(round.take(query + i), failure);
                }
            } else {
                again(round.take(query), failure);
            }
            endIfAnswered(round);
        }

        private void endIfAnswered(Round round) {
            if (round.numOpen == 0) {
                rounds.remove(round);
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            Failure failure =
                    status.isOk()
                            ? Failure.local(Reason.DRAINING, "the gateway ended the stream", null)
                            : Failure.of(status, trailers);
            lock.lock();
            try {
                broke(failure, failure.fromGateway() || status.isOk());
            } finally {
                unlock();
            }
        }

        /** A stream that nobody uses may end; the next query opens another. */
        private void broke(Failure failure, boolean healthy) {
            if (attempt != this) {
                return;
            }
            attempt = null;
            connections.giveBack(channel, healthy);
            rounds.forEach(round -> round.forEachOpen(open -> again(open, failure)));
            if (failure.retry() == Retry.NEVER) {
                failWaiting(failure);
            }
        }
    }
}
