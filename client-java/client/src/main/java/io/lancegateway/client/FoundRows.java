package io.lancegateway.client;

import io.lancegateway.client.arrow.ArrowBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The rows that one query of an {@link Exchange} found, of one version. Their first column is
 * {@code _query}, and then come those that the table was asked for.
 */
public final class FoundRows {

    private final long version;
    private final List<ArrowBatch> batches = new ArrayList<>();
    private int[] rows = new int[4];

    FoundRows(long version) {
        this.version = version;
    }

    void add(ArrowBatch batch, int row) {
        if (batches.size() == rows.length) {
            rows = Arrays.copyOf(rows, rows.length * 2);
        }
        rows[batches.size()] = row;
        batches.add(batch);
    }

    /** The version that was read. */
    public long version() {
        return version;
    }

    public int size() {
        return batches.size();
    }

    /** The batch that holds a row; neighbours often share one. */
    public ArrowBatch batch(int index) {
        return batches.get(index);
    }

    /** The place of a row in its batch. */
    public int row(int index) {
        return rows[index];
    }
}
