package io.lancegateway.client;

/**
 * A commit may or may not have happened. Repeat {@link GatewayClient#commit}, which answers the
 * same as the first time, until it says; never stage the rows again, and never drop them.
 */
public final class CommitStateUnknownException extends LanceGatewayException {

    private static final long serialVersionUID = 1L;

    CommitStateUnknownException(Reason reason, String requestId, String message, Throwable cause) {
        super(reason, requestId, message, cause);
    }

    @Override
    public boolean isRetriable() {
        return false;
    }
}
