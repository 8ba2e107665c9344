package io.lancegateway.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.lancegateway.client.Reason.Retry;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.proto.flight.FlightDescriptor;
import io.lancegateway.proto.flight.FlightDescriptor.DescriptorType;
import io.lancegateway.proto.flight.PutResult;
import io.lancegateway.proto.v1.PutCommand;
import io.lancegateway.proto.v1.StageAck;
import io.lancegateway.proto.v1.StageRequest;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Sends rows to be staged. Nothing that it sent is seen by anybody before a commit; nothing is sent
 * twice: if it fails, the rows of this stream must be staged again by another.
 *
 * <p>Bounded: at most {@link GatewayOptions#sendBufferBytes} and one message wait to be sent.
 *
 * <p>For one thread, except {@link #close}.
 */
public final class StageStream implements AutoCloseable {

    private static final String DOING = "DoPut";

    /** How long to wait for the word that a stream is taken on. Not every server gives it early. */
    private static final Duration TAKE_ON_WAIT = Duration.ofSeconds(1);

    private final Connections connections;
    private final GatewayOptions options;
    private final Consumer<StageStream> onEnd;
    private final ManagedChannel channel;
    private final ClientCall<PutMessage, PutResult> call;
    private volatile long rowsSent;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    // Guarded by the lock.
    private boolean takenOn;
    private boolean ended;
    private Failure failure;
    private StageAck lastAck = StageAck.getDefaultInstance();
    private long lastHeard = System.nanoTime();
    private boolean closed;
    private boolean givenBack;

    private StageStream(Connections connections, Consumer<StageStream> onEnd) {
        this.connections = connections;
        this.options = connections.options();
        this.onEnd = onEnd;
        this.channel = connections.take();
        CallOptions callOptions =
                CallOptions.DEFAULT
                        .withExecutor(Runnable::run)
                        .withOnReadyThreshold(options.sendBufferBytes());
        this.call = channel.newCall(Methods.DO_PUT, callOptions);
    }

    /** Opens a stream. Tried again while the gateway refuses it for now: no row was sent yet. */
    static StageStream open(
            Connections connections,
            WriteHandle write,
            StageOptions stage,
            Consumer<StageStream> onStart,
            Consumer<StageStream> onEnd)
            throws InterruptedException {
        PutCommand command =
                PutCommand.newBuilder()
                        .setStage(
                                StageRequest.newBuilder()
                                        .setWrite(ByteString.copyFrom(write.bytes()))
                                        .setMaxRowsPerFile(stage.maxRowsPerFile()))
                        .build();
        FlightDescriptor descriptor =
                FlightDescriptor.newBuilder()
                        .setType(DescriptorType.CMD)
                        .setCmd(command.toByteString())
                        .build();
        PutMessage first = PutMessage.schema(descriptor, write.schema());
        Backoff backoff = new Backoff(connections.options());
        for (int attempt = 1; ; attempt++) {
            StageStream stream = new StageStream(connections, onEnd);
            onStart.accept(stream);
            Failure refused;
            try {
                refused = stream.start(first);
            } catch (InterruptedException e) {
                stream.close();
                throw e;
            }
            if (refused == null) {
                return stream;
            }
            stream.close();
            if (refused.retry() == Retry.NEVER || attempt >= connections.options().maxAttempts()) {
                throw refused.toException(DOING);
            }
            TimeUnit.NANOSECONDS.sleep(backoff.nextNanos(refused.retryDelay()));
        }
    }

    /** Null if the gateway takes the stream on, or takes its time to say so. */
    private Failure start(PutMessage first) throws InterruptedException {
        call.start(new Listener(), new Metadata());
        call.request(1);
        call.sendMessage(first);
        lock.lockInterruptibly();
        try {
            await(() -> takenOn, TAKE_ON_WAIT);
            return failure;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Sends the rows and leaves the builder empty. Waits while the gateway does not keep up.
     *
     * @throws LanceGatewayException if staging failed, now or with earlier rows
     */
    public void write(ArrowBatchBuilder builder) throws InterruptedException {
        if (!builder.isEmpty()) {
            write(builder.encode());
            builder.reset();
        }
    }

    /**
     * Sends the rows. Waits while the gateway does not keep up. When it returns, the arrays of the
     * batch may be used again.
     *
     * @throws LanceGatewayException if staging failed, now or with earlier rows
     */
    public void write(EncodedBatch batch) throws InterruptedException {
        PutMessage message = PutMessage.batch(batch);
        if (message.size() > options.maxMessageBytes()) {
            throw Failure.local(
                            Reason.MESSAGE_TOO_LARGE,
                            String.format(
                                    "a batch of %d rows makes a message of %d bytes, the limit is"
                                            + " %d: send fewer rows at once",
                                    batch.rows(), message.size(), options.maxMessageBytes()),
                            null)
                    .toException(DOING);
        }
        lock.lockInterruptibly();
        try {
            boolean ready = await(call::isReady, options.streamIdleTimeout());
            throwIfEnded();
            if (!ready) {
                throw idle("took nothing");
            }
        } finally {
            lock.unlock();
        }
        call.sendMessage(message);
        rowsSent += batch.rows();
    }

    /** Rows that were sent. */
    public long rowsSent() {
        return rowsSent;
    }

    /** Of the rows that were sent, those that are in closed data files. */
    public long rowsDurable() {
        lock.lock();
        try {
            return lastAck.getNumDurableRows();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Ends the stream and waits until all rows are durable.
     *
     * @throws LanceGatewayException if staging failed
     */
    public StagedWrite finish() throws InterruptedException {
        StageAck ack;
        lock.lockInterruptibly();
        try {
            throwIfEnded();
            call.halfClose();
            lastHeard = System.nanoTime();
            Duration timeout = options.streamIdleTimeout();
            while (!ended) {
                long left = lastHeard + timeout.toNanos() - System.nanoTime();
                if (left <= 0) {
                    throw idle("said nothing");
                }
                changed.awaitNanos(left);
            }
            throwIfFailed();
            ack = lastAck;
        } finally {
            lock.unlock();
        }
        end(true);
        if (!ack.getDone() || ack.getNumRows() != rowsSent) {
            throw Failure.local(
                            Reason.INTERNAL,
                            String.format(
                                    "the gateway has staged %d of %d rows",
                                    ack.getDone() ? ack.getNumRows() : 0, rowsSent),
                            null)
                    .toException(DOING);
        }
        return new StagedWrite(ack.getStaged().toByteArray(), ack.getNumRows(), ack.getNumBytes());
    }

    /**
     * Cancels the stream if it is not finished; what it staged is swept by the gateway. From any
     * thread; a writer that waits, or comes later, gets an {@link IllegalStateException}.
     */
    @Override
    public void close() {
        boolean healthy;
        lock.lock();
        try {
            closed = true;
            healthy = failure == null || failure.fromGateway();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        call.cancel("no longer needed", null);
        end(healthy);
    }

    private void end(boolean healthy) {
        lock.lock();
        try {
            if (givenBack) {
                return;
            }
            givenBack = true;
        } finally {
            lock.unlock();
        }
        connections.giveBack(channel, healthy);
        onEnd.accept(this);
        UnaryCalls.forgetThread();
    }

    /** Waits for the condition, the end of the call or a close. False if none came in time. */
    private boolean await(BooleanSupplier condition, Duration timeout) throws InterruptedException {
        long left = timeout.toNanos();
        while (!condition.getAsBoolean() && !ended && !closed) {
            if (left <= 0) {
                return false;
            }
            left = changed.awaitNanos(left);
        }
        return true;
    }

    private void throwIfFailed() {
        if (closed) {
            throw new IllegalStateException("the stream is closed");
        }
        if (failure != null) {
            throw failure.toException(DOING);
        }
    }

    private void throwIfEnded() {
        throwIfFailed();
        if (ended) {
            throw Failure.local(Reason.INTERNAL, "the gateway ended the stream early", null)
                    .toException(DOING);
        }
    }

    private LanceGatewayException idle(String what) {
        return Failure.local(
                        Reason.STREAM_IDLE,
                        "the gateway " + what + " for " + options.streamIdleTimeout(),
                        null)
                .toException(DOING);
    }

    private final class Listener extends ClientCall.Listener<PutResult> {

        @Override
        public void onHeaders(Metadata headers) {
            change(() -> takenOn = true);
        }

        @Override
        public void onReady() {
            change(() -> {});
        }

        @Override
        public void onMessage(PutResult result) {
            StageAck ack;
            try {
                ack = StageAck.parseFrom(result.getAppMetadata());
            } catch (InvalidProtocolBufferException e) {
                call.cancel("an acknowledgement cannot be read", e);
                return;
            }
            change(
                    () -> {
                        lastAck = ack;
                        lastHeard = System.nanoTime();
                    });
            call.request(1);
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            change(
                    () -> {
                        ended = true;
                        failure = status.isOk() ? null : Failure.of(status, trailers);
                    });
        }

        private void change(Runnable change) {
            lock.lock();
            try {
                change.run();
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }
}
