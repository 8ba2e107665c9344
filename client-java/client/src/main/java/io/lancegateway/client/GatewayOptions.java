package io.lancegateway.client;

import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;

/** Where the gateway is, and the bounds that a client keeps to. Immutable. */
public final class GatewayOptions {

    /** The address of a sidecar. */
    public static final String DEFAULT_URI = "grpc://localhost:8815";

    private final String uri;
    private final Duration connectTimeout;
    private final Duration callTimeout;
    private final Duration commitTimeout;
    private final Duration streamIdleTimeout;
    private final Duration keepAlive;
    private final int maxAttempts;
    private final Duration initialBackoff;
    private final Duration maxBackoff;
    private final int maxMessageBytes;
    private final int flowControlWindowBytes;
    private final int sendBufferBytes;
    private final int readAheadBatches;
    private final int maxQueries;
    private final Map<String, String> storageOptions;

    private GatewayOptions(Builder builder) {
        this.uri = Objects.requireNonNull(builder.uri, "uri");
        this.connectTimeout = positive("connectTimeout", builder.connectTimeout);
        this.callTimeout = positive("callTimeout", builder.callTimeout);
        this.commitTimeout = positive("commitTimeout", builder.commitTimeout);
        this.streamIdleTimeout = positive("streamIdleTimeout", builder.streamIdleTimeout);
        this.keepAlive = positive("keepAlive", builder.keepAlive);
        this.maxAttempts = positive("maxAttempts", builder.maxAttempts);
        this.initialBackoff = positive("initialBackoff", builder.initialBackoff);
        this.maxBackoff = positive("maxBackoff", builder.maxBackoff);
        this.maxMessageBytes = positive("maxMessageBytes", builder.maxMessageBytes);
        this.flowControlWindowBytes =
                positive("flowControlWindowBytes", builder.flowControlWindowBytes);
        this.sendBufferBytes = positive("sendBufferBytes", builder.sendBufferBytes);
        this.readAheadBatches = positive("readAheadBatches", builder.readAheadBatches);
        this.maxQueries = positive("maxQueries", builder.maxQueries);
        this.storageOptions = Map.copyOf(builder.storageOptions);
    }

    /**
     * Options with their defaults for a URI: {@code grpc://HOST:PORT} or {@code grpc+unix:///PATH}.
     */
    public static Builder builder(String uri) {
        return new Builder(uri);
    }

    public String uri() {
        return uri;
    }

    public Duration connectTimeout() {
        return connectTimeout;
    }

    public Duration callTimeout() {
        return callTimeout;
    }

    public Duration commitTimeout() {
        return commitTimeout;
    }

    public Duration streamIdleTimeout() {
        return streamIdleTimeout;
    }

    public Duration keepAlive() {
        return keepAlive;
    }

    public int maxAttempts() {
        return maxAttempts;
    }

    public Duration initialBackoff() {
        return initialBackoff;
    }

    public Duration maxBackoff() {
        return maxBackoff;
    }

    public int maxMessageBytes() {
        return maxMessageBytes;
    }

    public int flowControlWindowBytes() {
        return flowControlWindowBytes;
    }

    public int sendBufferBytes() {
        return sendBufferBytes;
    }

    public int readAheadBatches() {
        return readAheadBatches;
    }

    public int maxQueries() {
        return maxQueries;
    }

    /** Keys are among them: not for a log. */
    public Map<String, String> storageOptions() {
        return storageOptions;
    }

    private Object[] all() {
        return new Object[] {
            uri,
            connectTimeout,
            callTimeout,
            commitTimeout,
            streamIdleTimeout,
            keepAlive,
            maxAttempts,
            initialBackoff,
            maxBackoff,
            maxMessageBytes,
            flowControlWindowBytes,
            sendBufferBytes,
            readAheadBatches,
            maxQueries,
            storageOptions
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof GatewayOptions
                && Arrays.equals(all(), ((GatewayOptions) other).all());
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(all());
    }

    private static Duration positive(String name, Duration value) {
        if (value.isZero() || value.isNegative()) {
            throw new IllegalArgumentException(name + " must be positive, not " + value);
        }
        return value;
    }

    private static int positive(String name, int value) {
        if (value <= 0) {
            throw new IllegalArgumentException(name + " must be positive, not " + value);
        }
        return value;
    }

    /** Sets options; what is not set has its default. */
    public static final class Builder {

        private final String uri;
        private Duration connectTimeout = Duration.ofSeconds(10);
        private Duration callTimeout = Duration.ofSeconds(60);
        private Duration commitTimeout = Duration.ofMinutes(2);
        private Duration streamIdleTimeout = Duration.ofMinutes(10);
        private Duration keepAlive = Duration.ofSeconds(30);
        private int maxAttempts = 8;
        private Duration initialBackoff = Duration.ofMillis(100);
        private Duration maxBackoff = Duration.ofSeconds(5);
        private int maxMessageBytes = 64 << 20;
        private int flowControlWindowBytes = 4 << 20;
        private int sendBufferBytes = 4 << 20;
        private int readAheadBatches = 2;
        private int maxQueries = 1000;
        private Map<String, String> storageOptions = Map.of();

        private Builder(String uri) {
            this.uri = uri;
        }

        /** How long one attempt to connect may take. Default 10 s. */
        public Builder connectTimeout(Duration value) {
            this.connectTimeout = value;
            return this;
        }

        /** How long a call without a stream may take, with its retries. Default 60 s. */
        public Builder callTimeout(Duration value) {
            this.callTimeout = value;
            return this;
        }

        /**
         * How long a commit may take until its outcome is known, with its retries. Default 2 min.
         */
        public Builder commitTimeout(Duration value) {
            this.commitTimeout = value;
            return this;
        }

        /**
         * How long a stream waits for the gateway to send, or to take, a message. Default 10 min: a
         * filter that keeps few rows reads long before it finds one.
         */
        public Builder streamIdleTimeout(Duration value) {
            this.streamIdleTimeout = value;
            return this;
        }

        /** How often a connection in use is checked when nothing comes. Default 30 s. */
        public Builder keepAlive(Duration value) {
            this.keepAlive = value;
            return this;
        }

        /** How often a call is tried that may be tried again. Default 8. */
        public Builder maxAttempts(int value) {
            this.maxAttempts = value;
            return this;
        }

        /** The wait before the second attempt; it doubles. Default 100 ms. */
        public Builder initialBackoff(Duration value) {
            this.initialBackoff = value;
            return this;
        }

        /** The longest wait between attempts. Default 5 s. */
        public Builder maxBackoff(Duration value) {
            this.maxBackoff = value;
            return this;
        }

        /** The largest message that is taken or sent. Default 64 MiB. */
        public Builder maxMessageBytes(int value) {
            this.maxMessageBytes = value;
            return this;
        }

        /** Bytes that the gateway may send ahead on one stream. Default 4 MiB. */
        public Builder flowControlWindowBytes(int value) {
            this.flowControlWindowBytes = value;
            return this;
        }

        /** Bytes that wait to be sent on one stream before a writer is held. Default 4 MiB. */
        public Builder sendBufferBytes(int value) {
            this.sendBufferBytes = value;
            return this;
        }

        /** Batches that a stream decodes ahead of its reader. Default 2. */
        public Builder readAheadBatches(int value) {
            this.readAheadBatches = value;
            return this;
        }

        /** Queries of one exchange that have no answer yet. Default 1000. */
        public Builder maxQueries(int value) {
            this.maxQueries = value;
            return this;
        }

        /**
         * How the stores of the tables are reached, by options such as {@code s3-access-key}, where
         * the gateway's own are not meant and the operator allows it. Default: as the gateway does.
         */
        public Builder storageOptions(Map<String, String> value) {
            this.storageOptions = value;
            return this;
        }

        public GatewayOptions build() {
            return new GatewayOptions(this);
        }
    }
}
