package io.lancegateway.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.lancegateway.client.Reason.Retry;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowFormatException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.BatchDecoder;
import io.lancegateway.proto.flight.Ticket;
import io.lancegateway.proto.v1.ScanTicket;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * The batches of one split, in their order. If the connection or the gateway fails in a way that
 * passes, the stream goes on behind the last row that it gave out.
 *
 * <p>Bounded: besides what the reader holds there are at most as many batches as {@link
 * GatewayOptions#readAheadBatches} says, and a window of the connection.
 *
 * <p>For one thread, except {@link #wakeUp} and {@link #close}.
 */
public final class BatchStream implements AutoCloseable {

    private static final String DOING = "DoGet";
    private static final long FOREVER = Long.MAX_VALUE;

    private final Connections connections;
    private final GatewayOptions options;
    private final Consumer<BatchStream> onEnd;
    private final ScanTicket ticket;

    // Of the reader.
    private BatchDecoder decoder = new BatchDecoder();
    private ArrowSchema schema;
    private ArrowBatch ahead;
    private long rowsGiven;
    private int failures;
    private Backoff backoff;
    private LanceGatewayException failed;
    private boolean finished;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    // Guarded by the lock.
    private Attempt attempt;
    private long reopenAt;
    private long idleSince;
    private boolean woken;
    private boolean closed;

    BatchStream(
            Connections connections, byte[] ticket, long rowOffset, Consumer<BatchStream> onEnd) {
        this.connections = connections;
        this.options = connections.options();
        this.onEnd = onEnd;
        this.backoff = new Backoff(options);
        this.reopenAt = System.nanoTime();
        ScanTicket parsed;
        try {
            parsed = ScanTicket.parseFrom(ticket);
        } catch (InvalidProtocolBufferException e) {
            throw Failure.local(Reason.INVALID_ARGUMENT, "the ticket is none of a gateway", e)
                    .toException(DOING);
        }
        this.ticket = parsed.toBuilder().setRowOffset(parsed.getRowOffset() + rowOffset).build();
    }

    /** Starts the scan. Not in the constructor, since its answers need the whole stream. */
    void start() {
        lock.lock();
        try {
            openAttempt();
        } finally {
            lock.unlock();
        }
    }

    /**
     * The columns of all batches. Waits for the gateway's first message.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowSchema schema() throws InterruptedException {
        if (schema == null) {
            ahead = advance(FOREVER, false, true);
        }
        return schema;
    }

    /**
     * The next batch, or null at the end. Waits for it. No batch is empty.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowBatch next() throws InterruptedException {
        return ahead != null ? takeAhead() : advance(FOREVER, false, false);
    }

    /**
     * The next batch, or null: at the end, which {@link #isFinished} tells, after the timeout, or
     * after {@link #wakeUp}.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowBatch poll(Duration timeout) throws InterruptedException {
        return ahead != null
                ? takeAhead()
                : advance(System.nanoTime() + timeout.toNanos(), true, false);
    }

    /** Whether the end was reached, after the last batch. */
    public boolean isFinished() {
        return finished && ahead == null;
    }

    /**
     * Makes a {@link #poll} that waits now, or else the next one that would wait, return at once.
     * From any thread.
     */
    public void wakeUp() {
        lock.lock();
        try {
            woken = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Cancels the scan if it runs. From any thread; a reader that waits, or comes later, gets an
     * {@link IllegalStateException}.
     */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            dropAttempt(true);
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        onEnd.accept(this);
        UnaryCalls.forgetThread();
    }

    private ArrowBatch takeAhead() {
        ArrowBatch batch = ahead;
        ahead = null;
        return batch;
    }

    /**
     * Goes on to the next batch, or only to the schema. Null: the end, the deadline or a wake-up.
     */
    private ArrowBatch advance(long deadline, boolean wakeable, boolean onlySchema)
            throws InterruptedException {
        while (!finished) {
            if (failed != null) {
                throw failed;
            }
            Event event = await(deadline, wakeable);
            if (event == null) {
                return null;
            }
            if (event.failure != null) {
                failOrReopen(event.failure);
            } else if (event.message == null) {
                finish();
            } else {
                ArrowBatch batch = decode(event.message);
                if (batch != null) {
                    rowsGiven += batch.rows();
                    failures = 0;
                    backoff = new Backoff(options);
                    return batch;
                }
                if (onlySchema && schema != null) {
                    return null;
                }
            }
        }
        return null;
    }

    /** What comes next, or null at the deadline or a wake-up. */
    private Event await(long deadline, boolean wakeable) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (true) {
                if (closed) {
                    throw new IllegalStateException("the stream is closed");
                }
                long now = System.nanoTime();
                if (attempt == null && now - reopenAt >= 0) {
                    openAttempt();
                }
                Event event = attempt == null ? null : attempt.next();
                if (event != null) {
                    return event;
                }
                if (wakeable && woken) {
                    woken = false;
                    return null;
                }
                long eventLeft =
                        attempt == null
                                ? reopenAt - now
                                : idleSince + options.streamIdleTimeout().toNanos() - now;
                if (attempt != null && eventLeft <= 0) {
                    return Event.failed(idle());
                }
                long left = deadline == FOREVER ? eventLeft : Math.min(deadline - now, eventLeft);
                if (left <= 0) {
                    return null;
                }
                changed.awaitNanos(left);
            }
        } finally {
            lock.unlock();
        }
    }

    private Failure idle() {
        return Failure.local(
                Reason.STREAM_IDLE,
                "the gateway sent nothing for " + options.streamIdleTimeout(),
                null);
    }

    private ArrowBatch decode(FlightMessage message) {
        if (!message.header.hasRemaining()) {
            return null;
        }
        try {
            ArrowBatch batch = decoder.decode(message.header, message.body);
            if (schema == null) {
                schema = decoder.schema();
            } else if (decoder.schema() != null && !schema.equals(decoder.schema())) {
                throw new ArrowFormatException("the columns changed within a scan");
            }
            return batch == null || batch.rows() == 0 ? null : batch;
        } catch (ArrowFormatException e) {
            failOrReopen(Failure.local(Reason.CORRUPT_DATA, e.getMessage(), e));
            return null;
        }
    }

    private void finish() {
        if (schema == null) {
            failOrReopen(Failure.local(Reason.CORRUPT_DATA, "the scan has no schema", null));
            return;
        }
        finished = true;
        lock.lock();
        try {
            dropAttempt(true);
        } finally {
            lock.unlock();
        }
        onEnd.accept(this);
        UnaryCalls.forgetThread();
    }

    /** Sets up another attempt if that may help, else fails for good. */
    private void failOrReopen(Failure failure) {
        failures++;
        lock.lock();
        try {
            dropAttempt(failure.fromGateway());
            if (failure.retry() == Retry.NEVER || failures >= options.maxAttempts()) {
                failed = failure.toException(DOING);
                throw failed;
            }
            reopenAt = System.nanoTime() + backoff.nextNanos(failure.retryDelay());
        } finally {
            lock.unlock();
        }
    }

    private void openAttempt() {
        decoder = new BatchDecoder();
        idleSince = System.nanoTime();
        attempt = new Attempt(connections.take());
        attempt.start(ticket.toBuilder().setRowOffset(ticket.getRowOffset() + rowsGiven).build());
    }

    private void dropAttempt(boolean healthy) {
        Attempt old = attempt;
        attempt = null;
        if (old != null) {
            old.call.cancel("no longer needed", null);
            connections.giveBack(old.channel, healthy);
        }
    }

    /** One DoGet. */
    private final class Attempt extends ClientCall.Listener<FlightMessage> {

        private final ManagedChannel channel;
        private final ClientCall<Ticket, FlightMessage> call;

        // Guarded by the lock.
        private final Deque<FlightMessage> messages = new ArrayDeque<>();
        private Event end;

        Attempt(ManagedChannel channel) {
            this.channel = channel;
            // Messages are copied off the network where they arrive, and only handed over.
            this.call =
                    channel.newCall(
                            Methods.DO_GET, CallOptions.DEFAULT.withExecutor(Runnable::run));
        }

        void start(ScanTicket ticket) {
            ByteString bytes = ticket.toByteString();
            call.start(this, new Metadata());
            call.request(options.readAheadBatches());
            call.sendMessage(Ticket.newBuilder().setTicket(bytes).build());
            call.halfClose();
        }

        Event next() {
            FlightMessage message = messages.pollFirst();
            if (message == null) {
                return end;
            }
            call.request(1);
            idleSince = System.nanoTime();
            return Event.message(message);
        }

        @Override
        public void onMessage(FlightMessage message) {
            lock.lock();
            try {
                if (attempt == this) {
                    messages.addLast(message);
                    changed.signalAll();
                }
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            lock.lock();
            try {
                end = status.isOk() ? Event.END : Event.failed(Failure.of(status, trailers));
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    /** A message, the good end (neither), or a failure. */
    private static final class Event {

        static final Event END = new Event(null, null);

        final FlightMessage message;
        final Failure failure;

        private Event(FlightMessage message, Failure failure) {
            this.message = message;
            this.failure = failure;
        }

        static Event message(FlightMessage message) {
            return new Event(message, null);
        }

        static Event failed(Failure failure) {
            return new Event(null, failure);
        }
    }
}
