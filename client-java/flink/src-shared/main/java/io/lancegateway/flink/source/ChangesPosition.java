package io.lancegateway.flink.source;

/** How far a part of the changes was emitted. Moves with each row. */
final class ChangesPosition {

    private final ChangesPart part;
    private long after;
    private boolean initial;
    private long rowOffset;

    ChangesPosition(ChangesPart part) {
        this.part = part;
        this.after = part.after();
        this.initial = part.initial();
        this.rowOffset = part.rowOffset();
    }

    /** The next row, of this version, was emitted. */
    void emitted(long version) {
        long current = initial ? after : after + 1;
        if (version == current) {
            rowOffset++;
        } else {
            after = version - 1;
            initial = false;
            rowOffset = 1;
        }
    }

    /** All rows up to this version were emitted. */
    void reached(long version) {
        after = version;
        initial = false;
        rowOffset = 0;
    }

    long after() {
        return after;
    }

    ChangesPart toPart() {
        return part.at(after, initial, rowOffset);
    }
}
