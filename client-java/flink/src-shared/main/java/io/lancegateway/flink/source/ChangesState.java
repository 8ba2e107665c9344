package io.lancegateway.flink.source;

import java.util.List;
import java.util.Objects;

/** What the enumerator of changes keeps in a checkpoint. */
public final class ChangesState {

    private final String consumer;
    private final int parts;
    private final List<ChangesPart> pending;

    /**
     * @param consumer under which name versions are held
     * @param parts of the changes; 0: they are not planned yet
     * @param pending parts that are with no reader
     */
    ChangesState(String consumer, int parts, List<ChangesPart> pending) {
        this.consumer = consumer;
        this.parts = parts;
        this.pending = List.copyOf(pending);
    }

    String consumer() {
        return consumer;
    }

    int parts() {
        return parts;
    }

    List<ChangesPart> pending() {
        return pending;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ChangesState
                && consumer.equals(((ChangesState) other).consumer)
                && parts == ((ChangesState) other).parts
                && pending.equals(((ChangesState) other).pending);
    }

    @Override
    public int hashCode() {
        return Objects.hash(consumer, parts, pending);
    }

    @Override
    public String toString() {
        return parts + " parts for " + consumer + ", pending: " + pending;
    }
}
