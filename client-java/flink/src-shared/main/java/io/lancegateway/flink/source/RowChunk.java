package io.lancegateway.flink.source;

/**
 * The rows of a batch that are emitted in one go. Between two of them the task looks after
 * checkpoints and back pressure. One object moves over its batch.
 */
class RowChunk {

    private static final int MAX_ROWS = 1024;

    private final RowBatch batch;
    private int from;
    private int to;

    RowChunk(RowBatch batch) {
        this.batch = batch;
    }

    /** Moves to the next rows; false at the end. */
    boolean next() {
        from = to;
        to = Math.min(batch.rows(), from + MAX_ROWS);
        return from < to;
    }

    RowBatch batch() {
        return batch;
    }

    int from() {
        return from;
    }

    int to() {
        return to;
    }
}
