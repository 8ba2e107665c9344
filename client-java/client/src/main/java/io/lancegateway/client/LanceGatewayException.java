package io.lancegateway.client;

import java.util.Objects;

/** A call to the gateway failed. Its class and {@link #reason()} say what to do. */
public abstract class LanceGatewayException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    private final Reason reason;
    private final String requestId;

    LanceGatewayException(Reason reason, String requestId, String message, Throwable cause) {
        super(message, cause);
        this.reason = Objects.requireNonNull(reason, "reason");
        this.requestId = Objects.requireNonNull(requestId, "requestId");
    }

    /** Decide by this, never by the message. */
    public final Reason reason() {
        return reason;
    }

    /** Whether nothing was done, or nothing that a repeat would do twice: try again later. */
    public abstract boolean isRetriable();

    /** Names the call in the gateway's log. Empty if the gateway did not answer. */
    public final String requestId() {
        return requestId;
    }
}
