package io.lancegateway.flink.sink;

import java.util.Arrays;
import java.util.Objects;

/** What one writer staged for a checkpoint: data files that nobody sees yet. */
public final class StagedRows {

    private final byte[] write;
    private final byte[] schema;
    private final byte[] staged;
    private final long rows;

    /**
     * @param write the handle that they were staged with
     * @param schema of the rows, as Arrow IPC
     * @param staged what the gateway said of them
     */
    public StagedRows(byte[] write, byte[] schema, byte[] staged, long rows) {
        this.write = write;
        this.schema = schema;
        this.staged = staged;
        this.rows = rows;
    }

    byte[] write() {
        return write;
    }

    byte[] schema() {
        return schema;
    }

    byte[] staged() {
        return staged;
    }

    long rows() {
        return rows;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof StagedRows)) {
            return false;
        }
        StagedRows that = (StagedRows) other;
        return Arrays.equals(write, that.write)
                && Arrays.equals(schema, that.schema)
                && Arrays.equals(staged, that.staged)
                && rows == that.rows;
    }

    @Override
    public int hashCode() {
        return Objects.hash(
                Arrays.hashCode(write), Arrays.hashCode(schema), Arrays.hashCode(staged), rows);
    }

    @Override
    public String toString() {
        return "staged rows: " + rows;
    }
}
