package io.lancegateway.flink.source;

import com.google.protobuf.Timestamp;
import io.lancegateway.proto.v1.VersionSelector;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.TemporalAccessor;

/** Which version of a table is read. */
public final class ReadVersion {

    /** {@code 2024-01-01}, with or without a time, with or without an offset. */
    private static final DateTimeFormatter ISO =
            new DateTimeFormatterBuilder()
                    .append(DateTimeFormatter.ISO_LOCAL_DATE)
                    .optionalStart()
                    .appendLiteral('T')
                    .append(DateTimeFormatter.ISO_LOCAL_TIME)
                    .optionalStart()
                    .appendOffsetId()
                    .optionalEnd()
                    .optionalEnd()
                    .toFormatter();

    private ReadVersion() {}

    /** This version. */
    public static VersionSelector version(long version) {
        return VersionSelector.newBuilder().setVersion(version).build();
    }

    /** The newest version that is not younger than this. */
    public static VersionSelector asOf(Instant time) {
        return VersionSelector.newBuilder()
                .setAsOf(
                        Timestamp.newBuilder()
                                .setSeconds(time.getEpochSecond())
                                .setNanos(time.getNano()))
                .build();
    }

    /**
     * Reads an ISO-8601 time; without an offset it is in UTC.
     *
     * @throws IllegalArgumentException if it is none
     */
    public static Instant parseTime(String text) {
        TemporalAccessor parsed;
        try {
            parsed =
                    ISO.parseBest(
                            text.trim().replace(' ', 'T'),
                            Instant::from,
                            LocalDateTime::from,
                            LocalDate::from);
        } catch (DateTimeException malformed) {
            throw new IllegalArgumentException(
                    String.format(
                            "'%s' is no ISO-8601 time, for example 2024-01-31T12:00:00Z", text),
                    malformed);
        }
        if (parsed instanceof Instant) {
            return (Instant) parsed;
        }
        LocalDateTime time =
                parsed instanceof LocalDate
                        ? ((LocalDate) parsed).atStartOfDay()
                        : (LocalDateTime) parsed;
        return time.toInstant(ZoneOffset.UTC);
    }
}
