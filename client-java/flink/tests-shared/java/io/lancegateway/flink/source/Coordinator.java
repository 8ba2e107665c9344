package io.lancegateway.flink.source;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import org.apache.flink.api.connector.source.ReaderInfo;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.SplitsAssignment;
import org.apache.flink.metrics.groups.SplitEnumeratorMetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;

/** What an enumerator sees of a job: its readers. Keeps who was given what. */
final class Coordinator<SplitT extends SourceSplit> implements SplitEnumeratorContext<SplitT> {

    /** Splits of each reader, in the order in which they were assigned. */
    final Map<Integer, List<SplitT>> assigned = new HashMap<>();

    /** Readers that were told that there are no more splits. */
    final Set<Integer> finished = new LinkedHashSet<>();

    private final int parallelism;
    private final Map<Integer, ReaderInfo> readers = new HashMap<>();
    private final List<Runnable> calls = new ArrayList<>();

    Coordinator(int parallelism) {
        this.parallelism = parallelism;
    }

    void register(int subtask) {
        readers.put(subtask, new ReaderInfo(subtask, "localhost"));
    }

    /** The reader is gone; its splits since the last checkpoint. */
    List<SplitT> fail(int subtask) {
        readers.remove(subtask);
        return assigned.remove(subtask);
    }

    /** Calls that the enumerator has made and that did not run yet; periodic ones once. */
    List<Runnable> calls() {
        return calls;
    }

    /** Runs what the enumerator has asked for. */
    void runCalls() {
        calls.forEach(Runnable::run);
        calls.clear();
    }

    @Override
    public SplitEnumeratorMetricGroup metricGroup() {
        return UnregisteredMetricsGroup.createSplitEnumeratorMetricGroup();
    }

    @Override
    public void sendEventToSourceReader(int subtask, SourceEvent event) {}

    @Override
    public int currentParallelism() {
        return parallelism;
    }

    @Override
    public Map<Integer, ReaderInfo> registeredReaders() {
        return readers;
    }

    @Override
    public void assignSplits(SplitsAssignment<SplitT> assignment) {
        assignment
                .assignment()
                .forEach(
                        (subtask, splits) ->
                                assigned.computeIfAbsent(subtask, s -> new ArrayList<>())
                                        .addAll(splits));
    }

    @Override
    public void signalNoMoreSplits(int subtask) {
        finished.add(subtask);
    }

    @Override
    public <T> void callAsync(Callable<T> callable, BiConsumer<T, Throwable> handler) {
        calls.add(
                () -> {
                    T result;
                    try {
                        result = callable.call();
                    } catch (Exception failed) {
                        handler.accept(null, failed);
                        return;
                    }
                    handler.accept(result, null);
                });
    }

    @Override
    public <T> void callAsync(
            Callable<T> callable, BiConsumer<T, Throwable> handler, long delay, long period) {
        callAsync(callable, handler);
    }

    @Override
    public void runInCoordinatorThread(Runnable task) {
        task.run();
    }
}
