package io.lancegateway.flink.util;

import java.io.IOException;

/** Formats of state. */
public final class Versions {

    private Versions() {}

    /** Refuses state of a newer connector, which this one cannot read. */
    public static void check(String what, int found, int newest) throws IOException {
        if (found < 1 || found > newest) {
            throw new IOException(
                    String.format(
                            "cannot restore a %s of format %d: this connector reads 1 to %d; use the"
                                    + " connector version that wrote it, or a newer one",
                            what, found, newest));
        }
    }
}
