package io.lancegateway.client;

import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.netty.util.concurrent.FastThreadLocal;
import io.grpc.stub.ClientCalls;
import io.lancegateway.client.Reason.Retry;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Calls without a stream: made again while that may help and time is left. */
final class UnaryCalls {

    private final Connections connections;
    private final GatewayOptions options;

    UnaryCalls(Connections connections) {
        this.connections = connections;
        this.options = connections.options();
    }

    /** A call that does nothing twice when it is repeated. */
    <Q, R> R call(MethodDescriptor<Q, R> method, Q request) {
        return call(method, request, options.callTimeout(), options.maxAttempts(), false);
    }

    /**
     * A commit. It is repeated for as long as the time allows, since an unknown outcome is resolved
     * by asking again; once it may have happened, no other error makes that undone.
     */
    <Q, R> R commit(MethodDescriptor<Q, R> method, Q request) {
        return call(method, request, options.commitTimeout(), Integer.MAX_VALUE, true);
    }

    private <Q, R> R call(
            MethodDescriptor<Q, R> method,
            Q request,
            Duration timeout,
            int maxAttempts,
            boolean isCommit) {
        long end = System.nanoTime() + timeout.toNanos();
        Backoff backoff = new Backoff(options);
        boolean mayBeCommitted = false;
        for (int attempt = 1; ; attempt++) {
            SentTracer sent = new SentTracer();
            Failure failure;
            try {
                return once(method, request, end - System.nanoTime(), sent);
            } catch (StatusRuntimeException e) {
                failure = Failure.of(e.getStatus(), e.getTrailers());
            }
            mayBeCommitted |= isCommit && leavesOpen(failure, sent);
            boolean again =
                    failure.retry() != Retry.NEVER
                            && attempt < maxAttempts
                            && !connections.isClosed();
            if (!again || !waitUntil(backoff.nextNanos(failure.retryDelay()), end)) {
                String doing = method.getBareMethodName();
                throw mayBeCommitted && failure.reason() != Reason.COMMIT_ABORTED
                        ? failure.toUnknownCommit(doing)
                        : failure.toException(doing);
            }
            // A gateway that was away may be back before the channel would look again.
            connections.calls().resetConnectBackoff();
        }
    }

    private static boolean leavesOpen(Failure failure, SentTracer sent) {
        return failure.fromGateway() ? failure.retry() == Retry.RESOLVE : sent.sent;
    }

    private <Q, R> R once(MethodDescriptor<Q, R> method, Q request, long nanos, SentTracer sent) {
        CallOptions callOptions =
                CallOptions.DEFAULT
                        .withDeadlineAfter(nanos, TimeUnit.NANOSECONDS)
                        .withMaxOutboundMessageSize(options.maxMessageBytes())
                        .withStreamTracerFactory(sent);
        try {
            return ClientCalls.blockingUnaryCall(connections.calls(), method, callOptions, request);
        } finally {
            forgetThread();
        }
    }

    /** Waits, if there is time for it and for one more attempt. */
    private static boolean waitUntil(long nanos, long end) {
        if (Thread.currentThread().isInterrupted() || end - System.nanoTime() <= nanos) {
            return false;
        }
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Leaves nothing in the caller's thread, which may outlive our class loader. */
    static void forgetThread() {
        FastThreadLocal.removeAll();
    }

    /** Whether anything of a call went out. */
    private static final class SentTracer extends ClientStreamTracer.Factory {

        private volatile boolean sent;

        @Override
        public ClientStreamTracer newClientStreamTracer(
                ClientStreamTracer.StreamInfo info, Metadata headers) {
            return new ClientStreamTracer() {
                @Override
                public void outboundHeaders() {
                    sent = true;
                }
            };
        }
    }
}
