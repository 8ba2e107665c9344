package io.lancegateway.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Waits that double, with a little chance in them so that clients do not come back all at once. */
final class Backoff {

    private final long maxNanos;
    private long nextNanos;

    Backoff(GatewayOptions options) {
        this.nextNanos = options.initialBackoff().toNanos();
        this.maxNanos = options.maxBackoff().toNanos();
    }

    /** The next wait, not shorter than what the gateway asks for. */
    long nextNanos(Duration asked) {
        long wait = Math.min(nextNanos, maxNanos);
        nextNanos = Math.min(wait * 2, maxNanos);
        long spread = ThreadLocalRandom.current().nextLong(wait / 4 + 1);
        return Math.max(wait - spread, asked.toNanos());
    }
}
