package io.lancegateway.flink.source;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;

/** Lets a few batches pass, and no more until it is let go. */
final class Hold implements RateLimiter<LanceSplit> {

    private static final int BATCHES = 2;

    private final CompletableFuture<Void> letGo;

    private int batches;

    Hold(CompletableFuture<Void> letGo) {
        this.letGo = letGo;
    }

    @Override
    public CompletionStage<Void> acquire(int requests) {
        return batches++ < BATCHES ? CompletableFuture.completedFuture(null) : letGo;
    }
}
