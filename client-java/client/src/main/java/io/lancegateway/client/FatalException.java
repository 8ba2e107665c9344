package io.lancegateway.client;

/** The same call will fail again. */
public final class FatalException extends LanceGatewayException {

    private static final long serialVersionUID = 1L;

    FatalException(Reason reason, String requestId, String message, Throwable cause) {
        super(reason, requestId, message, cause);
    }

    @Override
    public boolean isRetriable() {
        return false;
    }
}
