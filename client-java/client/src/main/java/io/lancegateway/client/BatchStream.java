package io.lancegateway.client;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowSchema;
import java.time.Duration;

/**
 * The batches of one split, in their order. If the connection or the gateway fails in a way that
 * passes, the stream goes on behind the last row that it gave out.
 *
 * <p>For one thread, except {@link #wakeUp} and {@link #close}.
 */
public final class BatchStream implements AutoCloseable {

    BatchStream() {}

    /**
     * The columns of all batches. Waits for the gateway's first message.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowSchema schema() throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * The next batch, or null at the end. Waits for it.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowBatch next() throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * The next batch, or null: at the end, which {@link #isFinished} tells, after the timeout, or
     * after {@link #wakeUp}.
     *
     * @throws LanceGatewayException if the scan failed
     */
    public ArrowBatch poll(Duration timeout) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** Whether the end was given out. */
    public boolean isFinished() {
        throw new UnsupportedOperationException();
    }

    /**
     * Makes a {@link #poll} that waits now, or else the next one, return at once. From any thread.
     */
    public void wakeUp() {
        throw new UnsupportedOperationException();
    }

    /** Cancels the scan if it runs. From any thread; a waiting reader gets the end. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
