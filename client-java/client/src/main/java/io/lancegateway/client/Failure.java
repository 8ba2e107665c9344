package io.lancegateway.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import io.lancegateway.client.Reason.Retry;
import io.lancegateway.client.arrow.ArrowFormatException;
import java.time.Duration;

/** How a call ended that did not succeed, as the gateway or the network tells it. */
final class Failure {

    private static final String DOMAIN = "lance-gateway";
    private static final String REQUEST_ID = "request_id";

    private final Reason reason;
    private final Retry retry;
    private final String requestId;
    private final String message;
    private final Duration retryDelay;
    private final boolean fromGateway;
    private final Throwable cause;

    private Failure(
            Reason reason,
            Retry retry,
            String requestId,
            String message,
            Duration retryDelay,
            boolean fromGateway,
            Throwable cause) {
        this.reason = reason;
        this.retry = retry;
        this.requestId = requestId;
        this.message = message;
        this.retryDelay = retryDelay;
        this.fromGateway = fromGateway;
        this.cause = cause;
    }

    /** A failure that the client finds by itself. */
    static Failure local(Reason reason, String message, Throwable cause) {
        return new Failure(reason, reason.retry(), "", message, Duration.ZERO, false, cause);
    }

    static Failure of(Status status, Metadata trailers) {
        ErrorInfo info = null;
        Duration delay = Duration.ZERO;
        com.google.rpc.Status details =
                trailers == null ? null : StatusProto.fromStatusAndTrailers(status, trailers);
        if (details != null) {
            try {
                for (Any detail : details.getDetailsList()) {
                    if (detail.is(ErrorInfo.class)) {
                        info = detail.unpack(ErrorInfo.class);
                    } else if (detail.is(RetryInfo.class)) {
                        delay = duration(detail.unpack(RetryInfo.class).getRetryDelay());
                    }
                }
            } catch (InvalidProtocolBufferException e) {
                return local(Reason.UNKNOWN, "the details of an error cannot be read", e);
            }
        }
        if (info == null || !info.getDomain().equals(DOMAIN)) {
            return ofTransport(status, delay);
        }
        Reason reason = Reason.of(info.getReason());
        Retry retry = reason == Reason.UNKNOWN ? retryOf(status.getCode()) : reason.retry();
        String description = status.getDescription() == null ? "" : status.getDescription();
        return new Failure(
                reason,
                retry,
                info.getMetadataOrDefault(REQUEST_ID, ""),
                info.getReason() + ": " + description,
                delay,
                true,
                null);
    }

    /** What the network or a proxy says: nothing is known but the code. */
    private static Failure ofTransport(Status status, Duration delay) {
        Throwable cause = status.getCause();
        if (cause instanceof ArrowFormatException) {
            return local(Reason.CORRUPT_DATA, cause.getMessage(), cause);
        }
        Reason reason;
        switch (status.getCode()) {
            case DEADLINE_EXCEEDED:
                reason = Reason.DEADLINE_EXCEEDED;
                break;
            case CANCELLED:
                reason = Reason.CANCELLED;
                break;
            default:
                reason = Reason.UNKNOWN;
        }
        String message = status.getCode() + ": " + status.getDescription();
        return new Failure(
                reason, retryOf(status.getCode()), "", message, delay, false, status.getCause());
    }

    private static Retry retryOf(Status.Code code) {
        switch (code) {
            case UNAVAILABLE:
            case UNKNOWN:
            case INTERNAL:
            case ABORTED:
            case CANCELLED:
            case DEADLINE_EXCEEDED:
                return Retry.RESOLVE;
            default:
                return Retry.NEVER;
        }
    }

    private static Duration duration(com.google.protobuf.Duration duration) {
        return Duration.ofSeconds(duration.getSeconds(), duration.getNanos());
    }

    Reason reason() {
        return reason;
    }

    Retry retry() {
        return retry;
    }

    /** How long the gateway asks to wait. */
    Duration retryDelay() {
        return retryDelay;
    }

    /** Whether the gateway answered, so that what it says of the outcome holds. */
    boolean fromGateway() {
        return fromGateway;
    }

    /** What to throw, when what the call did can be done again. */
    LanceGatewayException toException(String doing) {
        String text = text(doing);
        if (reason == Reason.COMMIT_STATE_UNKNOWN) {
            return new CommitStateUnknownException(reason, requestId, text, cause);
        }
        return retry == Retry.NEVER
                ? new FatalException(reason, requestId, text, cause)
                : new RetriableException(reason, requestId, text, cause);
    }

    /** What to throw, when a commit may have happened, whatever failed last. */
    CommitStateUnknownException toUnknownCommit(String doing) {
        return new CommitStateUnknownException(
                Reason.COMMIT_STATE_UNKNOWN, requestId, text(doing), cause);
    }

    private String text(String doing) {
        String suffix = requestId.isEmpty() ? "" : " [request " + requestId + "]";
        return doing + " failed: " + message + suffix;
    }
}
