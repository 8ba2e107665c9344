package io.lancegateway.flink.source;

import com.google.protobuf.Timestamp;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.HoldVersionRequest;
import io.lancegateway.proto.v1.ReleaseVersionRequest;
import io.lancegateway.proto.v1.Table;
import java.time.Duration;
import java.time.Instant;
import javax.annotation.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the versions that a job has still to read from cleanups. What is wanted may be said by any
 * thread; {@link #renew} is for one at a time.
 */
final class HeldVersion implements AutoCloseable {

    private static final Logger LOG = LoggerFactory.getLogger(HeldVersion.class);

    private static final Duration AFTER_FAILURE = Duration.ofSeconds(10);
    private static final Duration MIN_RENEWAL = Duration.ofMillis(250);

    /** A hold is made young again once this part of its time is over. */
    private static final int RENEWALS = 3;

    private final GatewayAddress address;
    private final Table table;
    private final String holder;

    /** 0: none yet. */
    private volatile long wanted;

    // Of the thread that renews.
    @Nullable private GatewayClient client;
    private long tried;
    private long nextTry;

    HeldVersion(GatewayAddress address, Table table, String holder) {
        this.address = address;
        this.table = table;
        this.holder = holder;
    }

    /** Changes after this version are still to be read. */
    void want(long after) {
        // Those after 0 are the rows of version 1.
        wanted = Math.max(1, after);
    }

    /** Holds what is wanted, if it is another version or the time has come. */
    synchronized void renew() {
        long version = wanted;
        if (version == 0 || version == tried && System.nanoTime() - nextTry < 0) {
            return;
        }
        tried = version;
        nextTry = System.nanoTime() + AFTER_FAILURE.toNanos();
        HoldVersionRequest request =
                HoldVersionRequest.newBuilder()
                        .setTable(table)
                        .setHolder(holder)
                        .setVersion(version)
                        .build();
        Duration left = until(client().holdVersion(request).getExpiresAt()).dividedBy(RENEWALS);
        Duration wait = left.compareTo(MIN_RENEWAL) < 0 ? MIN_RENEWAL : left;
        nextTry = System.nanoTime() + wait.toNanos();
    }

    private static Duration until(Timestamp time) {
        return Duration.between(
                Instant.now(), Instant.ofEpochSecond(time.getSeconds(), time.getNanos()));
    }

    /** Lets go of it: all is read. */
    synchronized void release() {
        wanted = 0;
        try {
            client().releaseVersion(
                            ReleaseVersionRequest.newBuilder()
                                    .setTable(table)
                                    .setHolder(holder)
                                    .build());
        } catch (RuntimeException failed) {
            LOG.warn("{} still holds a version, until that is too old", holder, failed);
        }
    }

    private GatewayClient client() {
        if (client == null) {
            client = address.connect();
        }
        return client;
    }

    @Override
    public synchronized void close() {
        if (client != null) {
            client.close();
        }
    }
}
