package io.lancegateway.flink.source;

import java.util.Arrays;
import java.util.Objects;
import org.apache.flink.api.connector.source.SourceSplit;

/**
 * A part of a scan: what the gateway asks for to read it, and how much of it was read. The ticket
 * holds the version of the table, so that a split reads the same rows whenever it is read.
 */
public final class LanceSplit implements SourceSplit {

    private final String id;
    private final byte[] ticket;
    private final long rows;
    private final long rowOffset;

    /**
     * @param rows rows before the filter, as estimated
     * @param rowOffset rows that were emitted already
     */
    public LanceSplit(String id, byte[] ticket, long rows, long rowOffset) {
        this.id = id;
        this.ticket = ticket;
        this.rows = rows;
        this.rowOffset = rowOffset;
    }

    @Override
    public String splitId() {
        return id;
    }

    byte[] ticket() {
        return ticket;
    }

    long rows() {
        return rows;
    }

    public long rowOffset() {
        return rowOffset;
    }

    LanceSplit at(long offset) {
        return new LanceSplit(id, ticket, rows, offset);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof LanceSplit)) {
            return false;
        }
        LanceSplit that = (LanceSplit) other;
        return id.equals(that.id)
                && Arrays.equals(ticket, that.ticket)
                && rows == that.rows
                && rowOffset == that.rowOffset;
    }

    @Override
    public int hashCode() {
        return Objects.hash(id, Arrays.hashCode(ticket), rows, rowOffset);
    }

    @Override
    public String toString() {
        return "split " + id + " from row " + rowOffset + " of about " + rows;
    }
}
