package io.lancegateway.flink;

/** What a job does to the rows that a table has. */
public enum WriteMode {
    /** They stay. */
    APPEND,
    /** They are replaced, once: by the first commit of the job. Its later commits append. */
    OVERWRITE
}
