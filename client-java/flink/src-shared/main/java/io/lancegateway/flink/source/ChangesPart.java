package io.lancegateway.flink.source;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.proto.v1.ScanTicket;
import java.util.Arrays;
import java.util.Objects;
import org.apache.flink.api.connector.source.SourceSplit;

/**
 * A part of the changes of a table, for good: all changes of some of its keys. Where a reader
 * stands in it is the version whose changes it has all, and how many rows it has beyond.
 */
public final class ChangesPart implements SourceSplit {

    /** Of {@link #until}: there is no last version. */
    static final long NO_END = 0;

    private final int part;
    private final byte[] ticket;
    private final long until;
    private final long after;
    private final boolean initial;
    private final long rowOffset;

    /**
     * @param ticket a ScanTicket of this part, from whatever version on
     * @param until the last version that is read, or {@link #NO_END}
     * @param after changes after this version are to come
     * @param initial whether the rows of that version itself are to come before
     * @param rowOffset rows of all that which were emitted already
     */
    ChangesPart(int part, byte[] ticket, long until, long after, boolean initial, long rowOffset) {
        this.part = part;
        this.ticket = ticket;
        this.until = until;
        this.after = after;
        this.initial = initial;
        this.rowOffset = rowOffset;
    }

    /** A part as it was planned. */
    static ChangesPart of(byte[] ticket, long until) {
        io.lancegateway.proto.v1.ChangesSplit split = parse(ticket).getChanges();
        return new ChangesPart(
                split.getPart(), ticket, until, split.getAfter(), split.getInitial(), 0);
    }

    private static ScanTicket parse(byte[] ticket) {
        try {
            return ScanTicket.parseFrom(ticket);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the ticket of the changes is none", corrupt);
        }
    }

    @Override
    public String splitId() {
        return Integer.toString(part);
    }

    int part() {
        return part;
    }

    byte[] ticket() {
        return ticket;
    }

    long until() {
        return until;
    }

    long after() {
        return after;
    }

    boolean initial() {
        return initial;
    }

    long rowOffset() {
        return rowOffset;
    }

    /** Whether there is nothing more to read. */
    boolean isDone() {
        return until != NO_END && !initial && after >= until;
    }

    /** The same part where a reader has come to. */
    ChangesPart at(long after, boolean initial, long rowOffset) {
        return new ChangesPart(part, ticket, until, after, initial, rowOffset);
    }

    /** What to ask for: all from {@link #after} on up to this version. */
    byte[] ticketTo(long version) {
        ScanTicket.Builder read = parse(ticket).toBuilder();
        read.getChangesBuilder().setAfter(after).setInitial(initial).setTo(version);
        return read.build().toByteArray();
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ChangesPart)) {
            return false;
        }
        ChangesPart that = (ChangesPart) other;
        return part == that.part
                && Arrays.equals(ticket, that.ticket)
                && until == that.until
                && after == that.after
                && initial == that.initial
                && rowOffset == that.rowOffset;
    }

    @Override
    public int hashCode() {
        return Objects.hash(part, Arrays.hashCode(ticket), until, after, initial, rowOffset);
    }

    @Override
    public String toString() {
        return String.format(
                "part %d after version %d%s and %d rows",
                part, after, initial ? " with its rows" : "", rowOffset);
    }
}
