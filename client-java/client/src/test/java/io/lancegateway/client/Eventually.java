package io.lancegateway.client;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Waits for what another thread will do. */
final class Eventually {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private Eventually() {}

    static void holds(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError(what + " does not hold after " + LIMIT);
            }
            Thread.onSpinWait();
            Thread.yield();
        }
    }
}
