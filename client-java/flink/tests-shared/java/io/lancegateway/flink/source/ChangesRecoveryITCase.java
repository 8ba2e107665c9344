package io.lancegateway.flink.source;

import static org.apache.flink.runtime.testutils.CommonTestUtils.waitUntilCondition;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.ScanPlan;
import io.lancegateway.client.Tables;
import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.LanceSink;
import io.lancegateway.flink.LanceSource;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.testing.KeyedTable;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.DropTableRequest;
import io.lancegateway.proto.v1.ReleaseVersionRequest;
import io.lancegateway.proto.v1.ScanRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Changes whose readers stop and go on: each comes once. */
class ChangesRecoveryITCase extends FlinkAndGateway {

    private static final DataType ROW =
            DataTypes.ROW(
                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                    DataTypes.FIELD("name", DataTypes.STRING()));

    private static final RowType ROW_TYPE = (RowType) ROW.getLogicalType();

    /** A change as a row of its own. */
    private static final RowType LOG =
            (RowType) DataTypes.ROW(DataTypes.FIELD("change", DataTypes.STRING())).getLogicalType();

    private static final int VERSIONS = 12;

    private String table;
    private KeyedTable keyed;

    @BeforeEach
    void makeHistory() throws Exception {
        table = newTable();
        makeHistory(table);
    }

    private void makeHistory(String table) throws Exception {
        keyed = KeyedTable.create(client(), table, ROW, List.of("id"));
        Random random = new Random(7);
        for (int version = 0; version < VERSIONS; version++) {
            changeSome(random);
        }
    }

    private void changeSome(Random random) throws InterruptedException {
        Map<Long, Row> changes = new HashMap<>();
        for (int i = 0; i < 30; i++) {
            long id = random.nextInt(50);
            RowKind kind = random.nextInt(4) == 0 ? RowKind.DELETE : RowKind.UPDATE_AFTER;
            changes.put(id, Row.ofKind(kind, id, "n" + random.nextInt(1000)));
        }
        keyed.change(new ArrayList<>(changes.values()));
    }

    private static String text(RowData row) {
        return String.format(
                "%s[%d, %s] in %d",
                row.getRowKind().shortString(),
                row.getLong(0),
                row.isNullAt(1) ? null : row.getString(1),
                row.getLong(2));
    }

    private static ChangesSource source(String table, ChangeFeed feed) {
        return (ChangesSource)
                LanceSource.builder()
                        .path(table)
                        .gatewayUri(gateway().uri())
                        .rowType(ROW_TYPE)
                        .batchSize(4)
                        .changes(feed, "version");
    }

    private static ChangeFeed.Builder feed() {
        return ChangeFeed.builder().changelog().discoveryInterval(Duration.ofMillis(50));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void readersThatStopAnywhereAndAreMoreOrFewerThenGiveEachChangeOnceInItsOrder(boolean initial)
            throws Exception {
        ChangeFeed feed =
                (initial ? feed().fromEarliest() : feed().fromVersion(0)).untilLatest().build();
        List<String> expected = read(feed, parts(initial, 1), new Random(0), Integer.MAX_VALUE);
        Random random = new Random(1);

        Map<Long, List<String>> found = byKey(read(feed, parts(initial, 3), random, 5));

        assertThat(expected).hasSizeGreaterThan(VERSIONS * 20);
        assertThat(found).isEqualTo(byKey(expected));
    }

    /** Parts as the enumerator makes them. */
    private List<ChangesPart> parts(boolean initial, int count) {
        ScanRequest.Builder request =
                ScanRequest.newBuilder()
                        .setTable(Tables.named(table))
                        .setBatch(BatchSize.newBuilder().setRows(4));
        request.getChangesBuilder().setInitial(initial).setParts(count);
        if (initial) {
            request.getChangesBuilder().setAfterOldest(true);
        } else {
            request.getChangesBuilder().setAfter(ReadVersion.version(0));
        }
        ScanPlan plan = client().plan(request.build());
        List<ChangesPart> parts = new ArrayList<>();
        plan.splits().forEach(s -> parts.add(ChangesPart.of(s.ticket(), plan.version())));
        assertThat(parts).hasSize(count);
        return parts;
    }

    /** Reads by one or three readers, which are replaced after a few polls, until all is read. */
    private List<String> read(ChangeFeed feed, List<ChangesPart> parts, Random random, int maxPolls)
            throws Exception {
        ChangesPartSerializer serializer = new ChangesPartSerializer();
        Emitted<String> emitted = new Emitted<>(ChangesRecoveryITCase::text);
        List<ChangesPart> state = parts;
        while (!state.isEmpty()) {
            int readers = random.nextBoolean() ? 1 : 3;
            List<ChangesPart> next = new ArrayList<>();
            for (int i = 0; i < readers; i++) {
                List<ChangesPart> own = new ArrayList<>();
                for (int part = i; part < state.size(); part += readers) {
                    own.add(serializer.deserialize(1, serializer.serialize(state.get(part))));
                }
                next.addAll(readOn(feed, own, emitted, 1 + random.nextInt(maxPolls)));
            }
            state = next;
        }
        return emitted.rows;
    }

    private List<ChangesPart> readOn(
            ChangeFeed feed, List<ChangesPart> parts, Emitted<?> emitted, int polls)
            throws Exception {
        try (SourceReader<RowData, ChangesPart> reader =
                source(table, feed).createReader(new ReaderContext())) {
            reader.addSplits(parts);
            reader.start();
            reader.notifyNoMoreSplits();
            int given = 0;
            while (given < polls) {
                int before = emitted.rows.size();
                if (emitted.poll(reader) == InputStatus.END_OF_INPUT) {
                    break;
                }
                given += emitted.rows.size() > before ? 1 : 0;
            }
            return reader.snapshotState(1);
        }
    }

    private static Map<Long, List<String>> byKey(List<String> changes) {
        Map<Long, List<String>> byKey = new HashMap<>();
        for (String change : changes) {
            long key = Long.parseLong(change.substring(3, change.indexOf(',')));
            byKey.computeIfAbsent(key, k -> new ArrayList<>()).add(change);
        }
        return byKey;
    }

    @Test
    void aReaderTellsWhatItHasReadOnceACheckpointHoldsIt() throws Exception {
        ChangeFeed feed = feed().fromVersion(0).build();
        ReaderContext context = new ReaderContext();
        Emitted<String> emitted = new Emitted<>(ChangesRecoveryITCase::text);
        try (SourceReader<RowData, ChangesPart> reader =
                source(table, feed).createReader(context)) {
            reader.addSplits(parts(false, 1));
            reader.start();
            while (reader.snapshotState(1).get(0).after() <= VERSIONS) {
                emitted.poll(reader);
            }
            reader.notifyCheckpointComplete(1);
            assertThat(context.events)
                    .extracting(event -> ((ReadPositions) event).afterOfPart())
                    .containsExactly(Map.of(0, 0L), Map.of(0, VERSIONS + 1L));
        }
    }

    @Test
    void aTableThatTookTheNameOfTheOneThatWasReadIsNotFollowed() throws Exception {
        List<ChangesPart> read = List.of(parts(false, 1).get(0).at(5, false, 0));
        client().dropTable(DropTableRequest.newBuilder().setTable(Tables.named(table)).build());
        makeHistory(table);

        assertThatThrownBy(() -> readOn(feed().build(), read, new Emitted<>(row -> row), 1))
                .hasStackTraceContaining("SuppressRestarts")
                .hasStackTraceContaining(
                        "cannot go on with the changes of table " + table + " after version 5")
                .hasStackTraceContaining("TABLE_REPLACED");
    }

    @ParameterizedTest
    @CsvSource({"1, 3", "3, 1"})
    void aJobThatFailsAndIsStoppedAndRescaledGivesEachChangeOnce(
            int before, int after, @TempDir Path savepoints) throws Exception {
        String log = newTable();
        ChangeFeed feed = feed().fromVersion(0).build();
        LogChange.FAILED.set(false);
        JobClient job = follow(feed, log, before, null);
        waitUntilCondition(() -> logged(log) > 100);
        String savepoint = stop(job, savepoints);
        assertThat(LogChange.FAILED).isTrue();
        changeSome(new Random(8));
        List<String> all =
                read(
                        feed().fromVersion(0).untilLatest().build(),
                        parts(false, 1),
                        new Random(0),
                        Integer.MAX_VALUE);
        assertThat(logged(log)).isLessThan(all.size());

        JobClient restored = follow(feed, log, after, savepoint);
        waitUntilCondition(() -> logged(log) >= all.size());
        stop(restored, savepoints);

        assertThat(log(log)).containsExactlyInAnyOrderElementsOf(all);
    }

    @Test
    void aJobWhoseVersionWasRemovedMeanwhileFailsOnceWithBothVersions(@TempDir Path savepoints)
            throws Exception {
        String log = newTable();
        String savepoint = loseVersions(log, savepoints);

        JobClient job = follow(feed().fromVersion(0).build(), log, 2, savepoint);

        assertThatThrownBy(() -> job.getJobExecutionResult().get())
                .isInstanceOf(ExecutionException.class)
                .hasStackTraceContaining("cannot go on with the changes of table " + table)
                .hasStackTraceContaining("version " + (VERSIONS + 1) + " of table")
                .hasStackTraceContaining(
                        "the oldest version that there is now is " + (VERSIONS + 5))
                .hasStackTraceContaining("The failure is not recoverable");
    }

    @Test
    void aJobThatSkipsWhatWasRemovedGoesOnAfterTheOldestVersion(@TempDir Path savepoints)
            throws Exception {
        String log = newTable();
        String savepoint = loseVersions(log, savepoints);
        long before = logged(log);
        keyed.change(Row.of(1000L, "after"));

        ChangeFeed feed = feed().fromVersion(0).skipMissingVersions().build();
        JobClient job = follow(feed, log, 1, savepoint);
        waitUntilCondition(() -> logged(log) > before);

        assertThat(sum(job.getJobID(), "Source: changes", "skippedVersions")).isEqualTo(4);
        stop(job, savepoints);
        assertThat(log(log))
                .hasSize((int) before + 1)
                .contains("+I[1000, after] in " + (VERSIONS + 6));
    }

    /** A job reads all, and is stopped; four more versions come, and all but the last one go. */
    private String loseVersions(String log, Path savepoints) throws Exception {
        LogChange.FAILED.set(true);
        JobClient job = follow(feed().fromVersion(0).consumerId("it").build(), log, 1, null);
        waitUntilCondition(
                () -> sum(job.getJobID(), "Source: changes", "currentVersion") > VERSIONS);
        String savepoint = stop(job, savepoints);
        for (int i = 0; i < 4; i++) {
            changeSome(new Random(i));
        }
        client().releaseVersion(
                        ReleaseVersionRequest.newBuilder()
                                .setTable(Tables.named(table))
                                .setHolder("it")
                                .build());
        keyed.cleanUp(1);
        return savepoint;
    }

    /** Writes each change into another table, and fails once. */
    private JobClient follow(ChangeFeed feed, String log, int parallelism, String savepoint)
            throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.interval", "50 ms");
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "1000000");
        configuration.setString("restart-strategy.fixed-delay.delay", "10 ms");
        if (savepoint != null) {
            configuration.setString("execution.state-recovery.path", savepoint);
        }
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(parallelism);
        env.fromSource(
                        new SlowSource<>(source(table, feed), 1),
                        WatermarkStrategy.noWatermarks(),
                        "changes")
                .uid("changes")
                .map(new LogChange())
                .returns(InternalTypeInfo.of(LOG))
                .uid("log")
                .sinkTo(
                        LanceSink.builder()
                                .path(log)
                                .gatewayUri(gateway().uri())
                                .rowType(LOG)
                                .build())
                .uid("sink");
        return env.executeAsync();
    }

    private static String stop(JobClient job, Path savepoints) throws Exception {
        return job.stopWithSavepoint(
                        false, savepoints.toUri().toString(), SavepointFormatType.CANONICAL)
                .get();
    }

    /** Changes that were written down; none while the table is absent. */
    private static long logged(String log) {
        try {
            return count(log);
        } catch (LanceGatewayException failed) {
            if (failed.reason() != Reason.TABLE_NOT_FOUND) {
                throw failed;
            }
            return 0;
        }
    }

    private static List<String> log(String log) throws Exception {
        StreamTableEnvironment env = batch(1);
        declare(env, log, "`change` STRING");
        List<String> changes = new ArrayList<>();
        query(env, "SELECT * FROM " + log)
                .forEach(row -> changes.add(row.substring(3, row.length() - 1)));
        return changes;
    }

    /** Writes a change down; at the thirtieth the job fails, the first time. */
    private static final class LogChange implements MapFunction<RowData, RowData> {

        private static final long serialVersionUID = 1L;
        private static final AtomicBoolean FAILED = new AtomicBoolean();

        private transient int rows;

        @Override
        public RowData map(RowData row) {
            if (++rows == 30 && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("failed on purpose");
            }
            return GenericRowData.of(StringData.fromString(text(row)));
        }
    }
}
