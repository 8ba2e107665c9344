package io.lancegateway.flink.source;

import java.util.List;
import java.util.Objects;

/**
 * What the enumerator keeps in a checkpoint: whether the scan is planned, and the splits to hand
 * out.
 */
public final class ScanState {

    private final boolean planned;
    private final List<LanceSplit> pending;

    public ScanState(boolean planned, List<LanceSplit> pending) {
        this.planned = planned;
        this.pending = List.copyOf(pending);
    }

    boolean planned() {
        return planned;
    }

    List<LanceSplit> pending() {
        return pending;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ScanState
                && planned == ((ScanState) other).planned
                && pending.equals(((ScanState) other).pending);
    }

    @Override
    public int hashCode() {
        return Objects.hash(planned, pending);
    }

    @Override
    public String toString() {
        return (planned ? "planned, pending: " : "not planned") + pending;
    }
}
