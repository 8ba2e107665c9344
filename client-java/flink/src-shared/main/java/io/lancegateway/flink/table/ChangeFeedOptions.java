package io.lancegateway.flink.table;

import static io.lancegateway.flink.table.LanceOptions.READ_AS_OF_TIMESTAMP;
import static io.lancegateway.flink.table.LanceOptions.READ_FILTER;
import static io.lancegateway.flink.table.LanceOptions.READ_LIMIT;
import static io.lancegateway.flink.table.LanceOptions.READ_VERSION;
import static io.lancegateway.flink.table.LanceOptions.SCAN_BOUNDED_MODE;
import static io.lancegateway.flink.table.LanceOptions.SCAN_BOUNDED_VERSION;
import static io.lancegateway.flink.table.LanceOptions.SCAN_MODE;
import static io.lancegateway.flink.table.LanceOptions.SCAN_STARTUP_MODE;
import static io.lancegateway.flink.table.LanceOptions.SCAN_STARTUP_TIMESTAMP;
import static io.lancegateway.flink.table.LanceOptions.SCAN_STARTUP_VERSION;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.source.ReadVersion;
import io.lancegateway.flink.table.LanceOptions.BoundedMode;
import io.lancegateway.flink.table.LanceOptions.StartupMode;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;

/** What the options say of a streaming source. */
final class ChangeFeedOptions {

    private ChangeFeedOptions() {}

    /** How changes are followed; empty if the options are those of a scan that ends. */
    static Optional<ChangeFeed> parse(ReadableConfig options) {
        boolean changelog = options.get(SCAN_MODE) == LanceOptions.ScanMode.CHANGELOG;
        boolean streaming =
                options.get(LanceOptions.SOURCE_MODE) == LanceOptions.SourceMode.STREAMING;
        if (!changelog && !streaming) {
            refuse(
                    options,
                    LanceOptions.STREAMING,
                    "is for a streaming source: set 'source.mode' = 'streaming' or 'scan.mode' ="
                            + " 'changelog'");
            return Optional.empty();
        }
        refuse(
                options,
                List.of(READ_VERSION, READ_AS_OF_TIMESTAMP, READ_LIMIT, READ_FILTER),
                "has no meaning for a streaming source, which reads all changes: leave it out");
        ChangeFeed.Builder feed = ChangeFeed.builder();
        if (changelog) {
            feed.changelog();
        }
        start(options, feed);
        end(options, feed);
        if (options.get(LanceOptions.SCAN_MISSING_VERSIONS) == LanceOptions.MissingVersions.SKIP) {
            feed.skipMissingVersions();
        }
        set(
                LanceOptions.SOURCE_DISCOVERY_INTERVAL,
                options.get(LanceOptions.SOURCE_DISCOVERY_INTERVAL),
                millis -> feed.discoveryInterval(Duration.ofMillis(millis)));
        options.getOptional(LanceOptions.SCAN_CONSUMER_ID)
                .ifPresent(name -> set(LanceOptions.SCAN_CONSUMER_ID, name, feed::consumerId));
        return Optional.of(feed.build());
    }

    private static void start(ReadableConfig options, ChangeFeed.Builder feed) {
        StartupMode mode = options.get(SCAN_STARTUP_MODE);
        onlyWith(options, SCAN_STARTUP_VERSION, SCAN_STARTUP_MODE, mode, StartupMode.VERSION);
        onlyWith(options, SCAN_STARTUP_TIMESTAMP, SCAN_STARTUP_MODE, mode, StartupMode.TIMESTAMP);
        switch (mode) {
            case EARLIEST:
                feed.fromEarliest();
                break;
            case LATEST:
                feed.fromLatest();
                break;
            case VERSION:
                set(SCAN_STARTUP_VERSION, options.get(SCAN_STARTUP_VERSION), feed::fromVersion);
                break;
            case TIMESTAMP:
                set(
                        SCAN_STARTUP_TIMESTAMP,
                        options.get(SCAN_STARTUP_TIMESTAMP),
                        text -> feed.fromTimestamp(ReadVersion.parseTime(text)));
                break;
            default:
                // With the rows of the latest version, as it is without more.
        }
    }

    private static void end(ReadableConfig options, ChangeFeed.Builder feed) {
        Optional<Long> version = options.getOptional(SCAN_BOUNDED_VERSION);
        BoundedMode mode =
                options.getOptional(SCAN_BOUNDED_MODE)
                        .orElse(version.isPresent() ? BoundedMode.VERSION : BoundedMode.UNBOUNDED);
        onlyWith(options, SCAN_BOUNDED_VERSION, SCAN_BOUNDED_MODE, mode, BoundedMode.VERSION);
        if (mode == BoundedMode.LATEST) {
            feed.untilLatest();
        }
        if (mode == BoundedMode.VERSION) {
            set(SCAN_BOUNDED_VERSION, version.orElseThrow(), feed::untilVersion);
            Long start = options.getOptional(SCAN_STARTUP_VERSION).orElse(0L);
            if (start > version.orElseThrow()) {
                throw new ValidationException(
                        String.format(
                                "'scan.startup.version' = '%d' comes after 'scan.bounded.version' ="
                                        + " '%d': nothing would be read",
                                start, version.orElseThrow()));
            }
        }
    }

    /** An option and the mode that it is for need each other. */
    private static <M extends Enum<M>> void onlyWith(
            ReadableConfig options, ConfigOption<?> option, ConfigOption<M> of, M mode, M needed) {
        boolean given = options.getOptional(option).isPresent();
        if (given != (mode == needed)) {
            String name = needed.name().toLowerCase(Locale.ROOT);
            throw new ValidationException(
                    String.format(
                            given
                                    ? "'%s' is for '%s' = '%s': set both"
                                    : "'%s' is missing: '%s' = '%s' needs it",
                            option.key(),
                            of.key(),
                            name));
        }
    }

    private static void refuse(ReadableConfig options, List<ConfigOption<?>> refused, String why) {
        for (ConfigOption<?> option : refused) {
            if (options.getOptional(option).isPresent()) {
                throw new ValidationException(String.format("'%s' %s", option.key(), why));
            }
        }
    }

    private static <T> void set(ConfigOption<T> option, T value, Consumer<T> setter) {
        try {
            setter.accept(value);
        } catch (IllegalArgumentException wrong) {
            throw new ValidationException(
                    String.format("'%s': %s", option.key(), wrong.getMessage()), wrong);
        }
    }
}
