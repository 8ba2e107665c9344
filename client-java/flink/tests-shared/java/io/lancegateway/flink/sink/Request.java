package io.lancegateway.flink.sink;

import org.apache.flink.api.connector.sink2.Committer.CommitRequest;

/** A request to commit that may be answered by success alone. */
final class Request implements CommitRequest<Committable> {

    private final Committable committable;

    Request(Committable committable) {
        this.committable = committable;
    }

    @Override
    public Committable getCommittable() {
        return committable;
    }

    @Override
    public int getNumberOfRetries() {
        return 0;
    }

    @Override
    public void signalFailedWithKnownReason(Throwable cause) {
        throw new AssertionError("rows would be dropped", cause);
    }

    @Override
    public void signalFailedWithUnknownReason(Throwable cause) {
        throw new AssertionError(cause);
    }

    @Override
    public void retryLater() {
        throw new AssertionError("Flink would retry without a pause");
    }

    @Override
    public void updateAndRetryLater(Committable other) {
        throw new AssertionError("Flink would retry without a pause");
    }

    @Override
    public void signalAlreadyCommitted() {
        // Counted, no more.
    }
}
