package io.lancegateway.client;

import io.grpc.Status;
import java.util.HashMap;
import java.util.Map;

/**
 * Why a call failed: the gateway's one table of errors. The names are stable, and stand as {@code
 * reason} in the {@code google.rpc.ErrorInfo} of a failed call.
 */
public enum Reason {
    /** The request is wrong by itself. */
    INVALID_ARGUMENT(Status.Code.INVALID_ARGUMENT, Retry.NEVER),
    /** A named column does not exist. */
    COLUMN_NOT_FOUND(Status.Code.INVALID_ARGUMENT, Retry.NEVER),
    /** Rows, files or a schema do not fit the table. */
    SCHEMA_MISMATCH(Status.Code.INVALID_ARGUMENT, Retry.NEVER),
    /** The query, the table and the index do not compare vectors alike. */
    METRIC_MISMATCH(Status.Code.INVALID_ARGUMENT, Retry.NEVER),
    /** Two rows of a merge have one key. */
    DUPLICATE_KEY(Status.Code.INVALID_ARGUMENT, Retry.NEVER),
    /** There is no such table. */
    TABLE_NOT_FOUND(Status.Code.NOT_FOUND, Retry.NEVER),
    /** The table has no such version, or no longer. */
    TABLE_VERSION_NOT_FOUND(Status.Code.NOT_FOUND, Retry.NEVER),
    /** The table exists already. */
    TABLE_ALREADY_EXISTS(Status.Code.ALREADY_EXISTS, Retry.NEVER),
    /** There is no such namespace. */
    NAMESPACE_NOT_FOUND(Status.Code.NOT_FOUND, Retry.NEVER),
    /** The namespace exists already. */
    NAMESPACE_ALREADY_EXISTS(Status.Code.ALREADY_EXISTS, Retry.NEVER),
    /** The namespace still holds something. */
    NAMESPACE_NOT_EMPTY(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** The table was dropped and made again since the write began. */
    TABLE_REPLACED(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** A staged data file is gone. */
    STAGED_FILE_MISSING(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** The committable is older than commits are remembered. */
    COMMITTABLE_EXPIRED(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** The commit id was aborted. */
    COMMIT_ABORTED(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** The gateway knows no such job, or no longer. */
    JOB_NOT_FOUND(Status.Code.NOT_FOUND, Retry.NEVER),
    /** The table has no such index. */
    INDEX_NOT_FOUND(Status.Code.NOT_FOUND, Retry.NEVER),
    /** The table has an index of this name already. */
    INDEX_ALREADY_EXISTS(Status.Code.ALREADY_EXISTS, Retry.NEVER),
    /** It contradicts what is committed already. */
    COMMIT_CONFLICT(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** Other writers were faster, more often than the gateway retries. */
    CONCURRENT_MODIFICATION(Status.Code.ABORTED, Retry.BACKOFF),
    /** An earlier commit of the epoch is neither committed nor aborted. */
    COMMIT_OUT_OF_ORDER(Status.Code.ABORTED, Retry.BACKOFF),
    /** The commit may or may not have happened. */
    COMMIT_STATE_UNKNOWN(Status.Code.UNKNOWN, Retry.RESOLVE),
    /** Commits to the store could be lost. */
    STORE_NOT_ATOMIC(Status.Code.FAILED_PRECONDITION, Retry.NEVER),
    /** A bound of the gateway is reached; later it may fit. */
    OVERLOADED(Status.Code.RESOURCE_EXHAUSTED, Retry.BACKOFF),
    /** The store is full. */
    QUOTA_EXCEEDED(Status.Code.RESOURCE_EXHAUSTED, Retry.NEVER),
    /** One row is larger than a message may be. */
    ROW_TOO_LARGE(Status.Code.RESOURCE_EXHAUSTED, Retry.NEVER),
    /** A message is larger than the gateway takes. */
    MESSAGE_TOO_LARGE(Status.Code.RESOURCE_EXHAUSTED, Retry.NEVER),
    /** The gateway does not serve yet. */
    STARTING(Status.Code.UNAVAILABLE, Retry.BACKOFF),
    /** The gateway stops and takes no new work. */
    DRAINING(Status.Code.UNAVAILABLE, Retry.BACKOFF),
    /** The object store does not answer. */
    STORE_UNAVAILABLE(Status.Code.UNAVAILABLE, Retry.BACKOFF),
    /** The time of the call is over. */
    DEADLINE_EXCEEDED(Status.Code.DEADLINE_EXCEEDED, Retry.RESOLVE),
    /** A stream sent nothing, or was not read, for too long. */
    STREAM_IDLE(Status.Code.DEADLINE_EXCEEDED, Retry.BACKOFF),
    /** The caller went away. */
    CANCELLED(Status.Code.CANCELLED, Retry.RESOLVE),
    /** Who calls is not known. */
    UNAUTHENTICATED(Status.Code.UNAUTHENTICATED, Retry.NEVER),
    /** The operator does not allow it. */
    PERMISSION_DENIED(Status.Code.PERMISSION_DENIED, Retry.NEVER),
    /** Bytes are not what they should be. */
    CORRUPT_DATA(Status.Code.DATA_LOSS, Retry.NEVER),
    /** The gateway cannot do it. */
    UNSUPPORTED(Status.Code.UNIMPLEMENTED, Retry.NEVER),
    /** A fault of the gateway. */
    INTERNAL(Status.Code.INTERNAL, Retry.NEVER),

    /**
     * The error names no reason, or one that this client does not know: it comes from the network,
     * from a proxy, or from a newer gateway. Not part of the gateway's table.
     */
    UNKNOWN(Status.Code.UNKNOWN, Retry.RESOLVE);

    /** What a client does with an error. */
    public enum Retry {
        /** The same call will fail again. */
        NEVER,
        /** Nothing was done; the same call may work later. */
        BACKOFF,
        /** Something may have been done. Ask, or repeat a call that may be repeated. */
        RESOLVE
    }

    private static final Map<String, Reason> BY_NAME = new HashMap<>();

    static {
        for (Reason reason : values()) {
            BY_NAME.put(reason.name(), reason);
        }
    }

    private final Status.Code code;
    private final Retry retry;

    Reason(Status.Code code, Retry retry) {
        this.code = code;
        this.retry = retry;
    }

    static Reason of(String name) {
        return BY_NAME.getOrDefault(name, UNKNOWN);
    }

    Status.Code code() {
        return code;
    }

    public Retry retry() {
        return retry;
    }
}
