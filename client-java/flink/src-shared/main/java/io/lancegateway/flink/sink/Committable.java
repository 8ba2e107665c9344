package io.lancegateway.flink.sink;

import java.util.Arrays;
import java.util.Objects;

/**
 * All rows of a checkpoint, sealed by the gateway. It carries its own identity: committing it
 * twice, by whoever, in whichever job, makes one version.
 */
public final class Committable {

    private final byte[] sealed;
    private final long rows;
    private final long sizeInBytes;

    public Committable(byte[] sealed, long rows, long sizeInBytes) {
        this.sealed = sealed;
        this.rows = rows;
        this.sizeInBytes = sizeInBytes;
    }

    byte[] sealed() {
        return sealed;
    }

    long rows() {
        return rows;
    }

    long sizeInBytes() {
        return sizeInBytes;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Committable
                && Arrays.equals(sealed, ((Committable) other).sealed)
                && rows == ((Committable) other).rows
                && sizeInBytes == ((Committable) other).sizeInBytes;
    }

    @Override
    public int hashCode() {
        return Objects.hash(Arrays.hashCode(sealed), rows, sizeInBytes);
    }

    @Override
    public String toString() {
        return "committable of " + rows + " rows, " + sizeInBytes + " bytes";
    }
}
