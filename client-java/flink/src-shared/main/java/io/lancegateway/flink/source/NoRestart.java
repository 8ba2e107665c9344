package io.lancegateway.flink.source;

import javax.annotation.Nullable;
import org.apache.flink.runtime.execution.SuppressRestartsException;
import org.apache.flink.util.FlinkRuntimeException;

/** Failures that would come again after each restart. */
final class NoRestart {

    private NoRestart() {}

    /** Fails the job for good, whatever its restart strategy. */
    static SuppressRestartsException because(String what, @Nullable Throwable cause) {
        String why = cause == null ? what : what + ": " + cause.getMessage();
        return new SuppressRestartsException(new FlinkRuntimeException(why, cause));
    }
}
