package io.lancegateway.client;

/** The same call may work later, and does no harm. */
public final class RetriableException extends LanceGatewayException {

    private static final long serialVersionUID = 1L;

    RetriableException(Reason reason, String requestId, String message, Throwable cause) {
        super(reason, requestId, message, cause);
    }

    @Override
    public boolean isRetriable() {
        return true;
    }
}
