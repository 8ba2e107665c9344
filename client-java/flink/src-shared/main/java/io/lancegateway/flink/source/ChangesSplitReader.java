package io.lancegateway.flink.source;

import io.lancegateway.client.BatchStream;
import io.lancegateway.client.FatalException;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.Reason;
import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.Changes;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import javax.annotation.Nullable;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;
import org.apache.flink.connector.base.source.reader.splitreader.SplitReader;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsAddition;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsChange;
import org.apache.flink.metrics.Counter;
import org.apache.flink.types.RowKind;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows parts of the changes, on the fetcher's thread: each in its turn up to the version that is
 * the latest then. Where nothing is new it waits.
 */
final class ChangesSplitReader implements SplitReader<ChangesChunk, ChangesPart> {

    private static final Logger LOG = LoggerFactory.getLogger(ChangesSplitReader.class);

    /** How long a fetch may last without a result; a wake-up ends it earlier. */
    private static final Duration MAX_FETCH = Duration.ofSeconds(10);

    private final GatewayAddress address;
    private final ChangesSpec spec;
    private final Counter skippedVersions;
    private final long interval;

    /** The next one first. */
    private final Deque<Cursor> cursors = new ArrayDeque<>();

    @Nullable private GatewayClient client;
    @Nullable private Cursor current;
    @Nullable private ChangesRows rows;

    /** Read by the thread that wakes up. */
    @Nullable private volatile BatchStream stream;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition awoken = lock.newCondition();

    /** Guarded by the lock. */
    private boolean isWoken;

    ChangesSplitReader(GatewayAddress address, ChangesSpec spec, Counter skippedVersions) {
        this.address = address;
        this.spec = spec;
        this.skippedVersions = skippedVersions;
        this.interval = spec.feed().discoveryInterval().toNanos();
    }

    @Override
    public RecordsWithSplitIds<ChangesChunk> fetch() throws IOException {
        try {
            return current == null ? turn() : fetchBatch();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw (IOException)
                    new InterruptedIOException("interrupted while reading changes")
                            .initCause(interrupted);
        }
    }

    /** Looks for new versions for the first part whose time it is, or waits for the time. */
    private FetchedRows<ChangesChunk> turn() throws InterruptedException {
        long now = System.nanoTime();
        long wait = Long.MAX_VALUE;
        for (int i = cursors.size(); i > 0; i--) {
            Cursor cursor = cursors.remove();
            if (cursor.part.isDone()) {
                return FetchedRows.finished(cursor.part.splitId());
            }
            cursors.add(cursor);
            long left = cursor.lookAt - now;
            if (left <= 0) {
                return look(cursor);
            }
            wait = Math.min(wait, left);
        }
        if (!cursors.isEmpty()) {
            await(wait);
        }
        return FetchedRows.nothing();
    }

    private FetchedRows<ChangesChunk> look(Cursor cursor) {
        cursor.lookAt = System.nanoTime() + interval;
        ChangesPart part = cursor.part;
        long latest;
        try {
            Changes changes =
                    Changes.newBuilder().setAfter(ReadVersion.version(part.after())).build();
            latest = plan(spec.request(changes)).version();
        } catch (FatalException refused) {
            return afterMissing(cursor, refused);
        }
        long to = part.until() == ChangesPart.NO_END ? latest : Math.min(latest, part.until());
        if (part.initial() || to > part.after()) {
            cursor.to = to;
            current = cursor;
            rows = null;
            stream = client.read(part.ticketTo(to), part.rowOffset());
        }
        return FetchedRows.nothing();
    }

    private ScanPlan plan(ScanRequest request) {
        if (client == null) {
            client = address.connect();
        }
        return client.plan(request);
    }

    private FetchedRows<ChangesChunk> fetchBatch() throws InterruptedException {
        Cursor cursor = current;
        ArrowBatch batch;
        try {
            batch = stream.poll(MAX_FETCH);
        } catch (FatalException refused) {
            endStream();
            return afterMissing(cursor, refused);
        }
        if (batch != null) {
            if (rows == null) {
                rows = spec.reader(batch.schema());
            }
            ChangesChunk chunk = rows.read(batch);
            cursor.lastVersion = chunk.version(batch.rows() - 1);
            checkKinds(chunk);
            return FetchedRows.of(cursor.part.splitId(), chunk);
        }
        if (!stream.isFinished()) {
            return FetchedRows.nothing();
        }
        endStream();
        return reached(cursor, cursor.to);
    }

    private void endStream() {
        stream.close();
        stream = null;
        current = null;
    }

    private static FetchedRows<ChangesChunk> reached(Cursor cursor, long version) {
        cursor.part = cursor.part.at(version, false, 0);
        cursor.lastVersion = version;
        return FetchedRows.of(cursor.part.splitId(), ChangesChunk.reached(version));
    }

    private void checkKinds(ChangesChunk chunk) {
        if (spec.feed().changelog()) {
            return;
        }
        for (int i = 0; i < chunk.batch().rows(); i++) {
            if (chunk.kind(i) != RowKind.INSERT) {
                throw NoRestart.because(
                        String.format(
                                "version %d of table %s updates or deletes rows, and only inserted"
                                        + " ones are read here: set 'scan.mode' = 'changelog' to"
                                        + " read all changes",
                                chunk.version(i), spec.tableName()),
                        null);
            }
        }
    }

    /** Goes on after the oldest version there is, if that is what was missing and is wanted. */
    private FetchedRows<ChangesChunk> afterMissing(Cursor cursor, FatalException refused) {
        if (refused.reason() == Reason.TABLE_REPLACED) {
            throw NoRestart.because(cannotGoOn(cursor), refused);
        }
        if (refused.reason() != Reason.TABLE_VERSION_NOT_FOUND) {
            throw refused;
        }
        if (!spec.feed().skipsMissing()) {
            throw NoRestart.because(
                    cannotGoOn(cursor)
                            + "; 'scan.missing-versions' = 'skip' would go on after the oldest"
                            + " version there is",
                    refused);
        }
        ScanPlan plan = plan(spec.request(Changes.newBuilder().setAfterOldest(true).build()));
        long oldest = ChangesPart.of(plan.splits().get(0).ticket(), ChangesPart.NO_END).after();
        if (oldest <= cursor.part.after()) {
            throw NoRestart.because(cannotGoOn(cursor), refused);
        }
        long missed = oldest - Math.min(oldest, cursor.lastVersion);
        LOG.warn(
                "{} versions of table {} are skipped: {} goes on after version {}",
                missed,
                spec.tableName(),
                cursor.part,
                oldest,
                refused);
        skippedVersions.inc(missed);
        cursor.lookAt = System.nanoTime();
        return reached(cursor, oldest);
    }

    private String cannotGoOn(Cursor cursor) {
        return String.format(
                "cannot go on with the changes of table %s after version %d",
                spec.tableName(), cursor.part.after());
    }

    private void await(long nanos) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            long left = nanos;
            while (!isWoken && left > 0) {
                left = awoken.awaitNanos(left);
            }
            isWoken = false;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void handleSplitsChanges(SplitsChange<ChangesPart> change) {
        if (!(change instanceof SplitsAddition)) {
            throw new UnsupportedOperationException("unknown change of splits: " + change);
        }
        change.splits().forEach(part -> cursors.addFirst(new Cursor(part)));
    }

    @Override
    public void wakeUp() {
        lock.lock();
        try {
            isWoken = true;
            awoken.signalAll();
        } finally {
            lock.unlock();
        }
        BatchStream reading = stream;
        if (reading != null) {
            reading.wakeUp();
        }
    }

    @Override
    public void close() {
        BatchStream reading = stream;
        if (reading != null) {
            reading.close();
        }
        if (client != null) {
            client.close();
        }
    }

    /** Where a part is read. */
    private static final class Cursor {

        /** At the end of the last stream. */
        private ChangesPart part;

        /** When to look for new versions. */
        private long lookAt = System.nanoTime();

        /** Where the stream that runs ends. */
        private long to;

        /** Of the last row. */
        private long lastVersion;

        Cursor(ChangesPart part) {
            this.part = part;
            this.lastVersion = part.after();
        }
    }
}
