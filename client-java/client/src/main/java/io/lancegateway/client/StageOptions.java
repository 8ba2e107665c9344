package io.lancegateway.client;

/** How rows become data files. Immutable. */
public final class StageOptions {

    private static final StageOptions DEFAULTS = new StageOptions(0);

    private final long maxRowsPerFile;

    private StageOptions(long maxRowsPerFile) {
        this.maxRowsPerFile = maxRowsPerFile;
    }

    public static StageOptions defaults() {
        return DEFAULTS;
    }

    /** A data file is closed after this many rows. 0, the default: the gateway decides. */
    public StageOptions withMaxRowsPerFile(long rows) {
        if (rows < 0) {
            throw new IllegalArgumentException("negative rows per file: " + rows);
        }
        return new StageOptions(rows);
    }

    public long maxRowsPerFile() {
        return maxRowsPerFile;
    }
}
