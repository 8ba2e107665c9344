package io.lancegateway.flink;

import io.lancegateway.flink.source.ReadVersion;
import io.lancegateway.proto.v1.Changes;
import io.lancegateway.proto.v1.VersionSelector;
import java.io.Serializable;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;
import java.util.regex.Pattern;
import javax.annotation.Nullable;

/**
 * How the changes of a table are followed: where they begin and end, and which come.
 *
 * <pre>{@code
 * ChangeFeed feed = ChangeFeed.builder().changelog().fromVersion(17).build();
 * LanceSource.builder().path("users").rowType(rowType).changes(feed);
 * }</pre>
 */
public final class ChangeFeed implements Serializable {

    private static final long serialVersionUID = 1L;

    /** Of {@link #until}: it has no end. */
    public static final long NEVER = 0;

    /** Of {@link #until}: it ends with the version that is the latest when it begins. */
    public static final long LATEST = -1;

    private static final Pattern CONSUMER = Pattern.compile("[A-Za-z0-9_-]{1,128}");

    private final boolean changelog;
    private final byte[] start;
    private final long until;
    private final boolean skipsMissing;
    private final Duration discoveryInterval;
    @Nullable private final String consumerId;

    private ChangeFeed(Builder builder) {
        this.changelog = builder.changelog;
        this.start = builder.start.toByteArray();
        this.until = builder.until;
        this.skipsMissing = builder.skipsMissing;
        this.discoveryInterval = builder.discoveryInterval;
        this.consumerId = builder.consumerId;
    }

    /** Without more: the rows of the latest version, then the rows that are inserted. */
    public static Builder builder() {
        return new Builder();
    }

    /** Whether updates and deletes come. */
    public boolean changelog() {
        return changelog;
    }

    /** A message {@link Changes} that says where it begins. */
    public byte[] start() {
        return start.clone();
    }

    /** The last version, {@link #NEVER} or {@link #LATEST}. */
    public long until() {
        return until;
    }

    /** Whether it goes on after versions that a cleanup has removed. */
    public boolean skipsMissing() {
        return skipsMissing;
    }

    /** How often it looks for new versions. */
    public Duration discoveryInterval() {
        return discoveryInterval;
    }

    /** Under which name versions are held, or null. */
    @Nullable
    public String consumerId() {
        return consumerId;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ChangeFeed)) {
            return false;
        }
        ChangeFeed that = (ChangeFeed) other;
        return changelog == that.changelog
                && Arrays.equals(start, that.start)
                && until == that.until
                && skipsMissing == that.skipsMissing
                && discoveryInterval.equals(that.discoveryInterval)
                && Objects.equals(consumerId, that.consumerId);
    }

    @Override
    public int hashCode() {
        return Objects.hash(changelog, Arrays.hashCode(start), until, skipsMissing, consumerId);
    }

    /** Sets what is not as usual. */
    public static final class Builder {

        private boolean changelog;
        private Changes start = Changes.newBuilder().setInitial(true).build();
        private long until = NEVER;
        private boolean skipsMissing;
        private Duration discoveryInterval = Duration.ofSeconds(10);
        @Nullable private String consumerId;

        private Builder() {}

        /**
         * Rows come with their kinds: inserted, before and after an update, deleted. Default: a
         * version that updates or deletes rows fails the job.
         */
        public Builder changelog() {
            this.changelog = true;
            return this;
        }

        /** The rows of the oldest version there is, then all changes. */
        public Builder fromEarliest() {
            this.start = Changes.newBuilder().setAfterOldest(true).setInitial(true).build();
            return this;
        }

        /** Changes from now on. */
        public Builder fromLatest() {
            this.start = Changes.getDefaultInstance();
            return this;
        }

        /** Changes after this version; 0 stands for the table before its first one. */
        public Builder fromVersion(long version) {
            if (version < 0) {
                throw new IllegalArgumentException("there is no version " + version);
            }
            return after(ReadVersion.version(version));
        }

        /** Changes after the newest version that is not younger than this. */
        public Builder fromTimestamp(Instant time) {
            return after(ReadVersion.asOf(time));
        }

        private Builder after(VersionSelector version) {
            this.start = Changes.newBuilder().setAfter(version).build();
            return this;
        }

        /** Ends with this version, whether it is there yet or not. */
        public Builder untilVersion(long version) {
            if (version <= 0) {
                throw new IllegalArgumentException("there is no version " + version);
            }
            this.until = version;
            return this;
        }

        /** Ends with the version that is the latest when the job starts. */
        public Builder untilLatest() {
            this.until = LATEST;
            return this;
        }

        /**
         * Goes on after the oldest version there is, if a cleanup has removed the one where it
         * stands. Default: the job fails for good.
         */
        public Builder skipMissingVersions() {
            this.skipsMissing = true;
            return this;
        }

        /** How often it looks for new versions. Default: 10 seconds. */
        public Builder discoveryInterval(Duration interval) {
            if (interval.isZero() || interval.isNegative()) {
                throw new IllegalArgumentException(
                        "the discovery interval must be positive, not " + interval);
            }
            this.discoveryInterval = interval;
            return this;
        }

        /**
         * The name under which the versions that are still to be read are kept from cleanups, for
         * this reader alone. Default: one that is drawn, and kept in the state.
         */
        public Builder consumerId(String name) {
            if (!CONSUMER.matcher(name).matches()) {
                throw new IllegalArgumentException(
                        String.format(
                                "'%s' names no consumer: it takes 1 to 128 of the characters A-Z"
                                        + " a-z 0-9 _ -",
                                name));
            }
            this.consumerId = name;
            return this;
        }

        public ChangeFeed build() {
            return new ChangeFeed(this);
        }
    }
}
