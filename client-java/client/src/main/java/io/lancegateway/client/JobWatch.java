package io.lancegateway.client;

import io.grpc.CallOptions;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.lancegateway.client.Reason.Retry;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.WatchJobRequest;
import io.lancegateway.proto.v1.WatchJobResponse;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Follows a job to its end. A connection that breaks is opened again. */
final class JobWatch {

    private static final String DOING = "WatchJob";

    private final Connections connections;
    private final Consumer<Job> progress;
    private Job last;
    private Backoff backoff;
    private int failures;

    JobWatch(Connections connections, Job job, Consumer<Job> progress) {
        this.connections = connections;
        this.progress = progress;
        this.last = job;
        this.backoff = new Backoff(connections.options());
    }

    static boolean isRunning(Job job) {
        return job.getState() == JobState.JOB_STATE_RUNNING;
    }

    Job await() throws InterruptedException {
        while (isRunning(last)) {
            Failure failure = follow();
            if (!isRunning(last)) {
                break;
            }
            if (failure.reason() == Reason.JOB_NOT_FOUND) {
                // It was there: the gateway has lost it with its life.
                return last.toBuilder()
                        .setState(JobState.JOB_STATE_INTERRUPTED)
                        .setMessage(
                                "the gateway was restarted before the job ended: start it again")
                        .build();
            }
            failures++;
            if (failure.retry() == Retry.NEVER
                    || failures >= connections.options().maxAttempts()
                    || connections.isClosed()) {
                throw failure.toException(DOING);
            }
            TimeUnit.NANOSECONDS.sleep(backoff.nextNanos(failure.retryDelay()));
            connections.calls().resetConnectBackoff();
        }
        return last;
    }

    /** Reads until the stream breaks, or the job has ended. */
    private Failure follow() throws InterruptedException {
        WatchJobRequest request = WatchJobRequest.newBuilder().setId(last.getId()).build();
        try {
            Iterator<WatchJobResponse> jobs =
                    ClientCalls.blockingServerStreamingCall(
                            connections.calls(), Methods.WATCH_JOB, CallOptions.DEFAULT, request);
            while (jobs.hasNext()) {
                last = jobs.next().getJob();
                failures = 0;
                backoff = new Backoff(connections.options());
                progress.accept(last);
            }
            return Failure.local(
                    Reason.DRAINING, "the gateway went away while it was watched", null);
        } catch (StatusRuntimeException e) {
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            return Failure.of(e.getStatus(), e.getTrailers());
        } finally {
            UnaryCalls.forgetThread();
        }
    }
}
