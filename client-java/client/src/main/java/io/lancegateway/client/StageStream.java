package io.lancegateway.client;

import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.EncodedBatch;

/**
 * Sends rows to be staged. Nothing that it sent is seen by anybody before a commit; nothing is sent
 * twice: if it fails, the rows of this stream must be staged again by another.
 *
 * <p>For one thread, except {@link #close}.
 */
public final class StageStream implements AutoCloseable {

    StageStream() {}

    /**
     * Sends the rows and leaves the builder empty. Waits while the gateway does not keep up.
     *
     * @throws LanceGatewayException if staging failed, now or with earlier rows
     */
    public void write(ArrowBatchBuilder builder) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends the rows. Waits while the gateway does not keep up. When it returns, the arrays of the
     * batch may be used again.
     *
     * @throws LanceGatewayException if staging failed, now or with earlier rows
     */
    public void write(EncodedBatch batch) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** Rows that were sent. */
    public long rowsSent() {
        throw new UnsupportedOperationException();
    }

    /** Of the rows that were sent, those that the gateway has acknowledged. */
    public long rowsAcknowledged() {
        throw new UnsupportedOperationException();
    }

    /**
     * Ends the stream and waits until all rows are durable.
     *
     * @throws LanceGatewayException if staging failed
     */
    public StagedWrite finish() throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** Cancels the stream if it is not finished; what it staged is swept by the gateway. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
