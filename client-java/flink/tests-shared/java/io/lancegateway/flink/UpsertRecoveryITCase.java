package io.lancegateway.flink;

import static org.apache.flink.runtime.testutils.CommonTestUtils.waitUntilCondition;
import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.Changelog;
import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.testing.GatewayProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Jobs with changes of rows that fail and go on. */
class UpsertRecoveryITCase extends FlinkAndGateway {

    private static final DataType ROW =
            DataTypes.ROW(
                    DataTypes.FIELD("id", DataTypes.BIGINT().notNull()),
                    DataTypes.FIELD("name", DataTypes.STRING()),
                    DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())));

    private static final String COLUMNS =
            "id BIGINT, name STRING, v ARRAY<FLOAT>, PRIMARY KEY (id) NOT ENFORCED";

    @ParameterizedTest
    @CsvSource({"1, false", "4, false", "4, true"})
    void aJobThatFailsBetweenCheckpointsLeavesWhatItsChangesSay(int writers, boolean unaligned)
            throws Exception {
        String table = newTable();
        List<Row> changes = new ArrayList<>();
        Map<Long, Row> expected = new TreeMap<>();
        randomChanges(new Random(writers), 4_000, changes, expected);
        FailOnce.FAILED.set(false);
        StreamExecutionEnvironment env = restarting();
        env.enableCheckpointing(50);
        env.getCheckpointConfig().enableUnalignedCheckpoints(unaligned);
        env.setParallelism(writers);
        Changelog.rowData(Changelog.rows(env, ROW, changes, 200), ROW)
                .map(new FailOnce(2_345))
                .returns(InternalTypeInfo.of(ROW.getLogicalType()))
                .setParallelism(1)
                .sinkTo(sink(gateway(), table));

        env.execute();

        assertThat(FailOnce.FAILED).isTrue();
        assertThat(rows(table)).isEqualTo(texts(expected));
        assertThat(versions(table)).hasSizeGreaterThan(10);
    }

    @Test
    void aMergeThatWasPendingWhenItsJobDiedComesBeforeTheChangesOfTheRestoredOne(
            @TempDir Path checkpoints) throws Exception {
        String table = newTable();
        List<Row> changes =
                List.of(
                        Row.of(1L, "a", null),
                        Row.of(2L, "a", null),
                        Row.ofKind(RowKind.UPDATE_AFTER, 1L, "b", null),
                        Row.ofKind(RowKind.DELETE, 2L, null, null));
        Configuration plain = new Configuration();
        plain.setString("execution.checkpointing.interval", "50 ms");
        Configuration retained = new Configuration(plain);
        retained.setString("execution.checkpointing.dir", checkpoints.toUri().toString());
        retained.setString(
                "execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        try (GatewayProcess gateway = GatewayProcess.start("--faults")) {
            write(plain, gateway, table, 2, List.of(Row.of(3L, "c", null)))
                    .getJobExecutionResult()
                    .get();
            gateway.hold("put.manifest");
            JobClient job = write(retained, gateway, table, 2, changes);
            waitUntilCondition(() -> sum(job.getJobID(), "Committer", "pendingCommittables") == 1);
            job.cancel().get();
            waitUntilCondition(() -> job.getJobStatus().get().isGloballyTerminalState());
            gateway.release("put.manifest");
            retained.setString("execution.state-recovery.path", latest(checkpoints));

            write(retained, gateway, table, 4, changes).getJobExecutionResult().get();

            StreamTableEnvironment env = batch(1);
            env.executeSql(
                    String.format(
                            "CREATE TEMPORARY TABLE %s (%s) WITH ('connector'='lance',"
                                    + " 'path'='%s', 'gateway.uri'='%s')",
                            table, COLUMNS, table, gateway.uri()));
            assertThat(query(env, "SELECT * FROM " + table))
                    .containsExactly("+I[1, b, null]", "+I[3, c, null]");
        }
    }

    @Test
    void jobsThatUpsertTheSameKeysAtOnceLeaveEachKeyOnce() throws Exception {
        String table = newTable();
        List<JobClient> jobs = new ArrayList<>();
        for (int job = 0; job < 4; job++) {
            List<Row> changes = new ArrayList<>();
            for (long round = 0; round < 20; round++) {
                for (long id = 1; id <= 10; id++) {
                    changes.add(Row.of(id, job + " in " + round, null));
                }
            }
            StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
            env.enableCheckpointing(30);
            env.setParallelism(1);
            Changelog.rowData(Changelog.rows(env, ROW, changes, 20), ROW)
                    .sinkTo(sink(gateway(), table));
            jobs.add(env.executeAsync());
        }
        for (JobClient job : jobs) {
            job.getJobExecutionResult().get();
        }

        assertThat(rows(table)).hasSize(10).allMatch(row -> row.contains(" in 19, "));
    }

    /** At most two changes between two checkpoints. */
    private static JobClient write(
            Configuration configuration,
            GatewayProcess gateway,
            String table,
            int writers,
            List<Row> changes)
            throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(writers);
        Changelog.rowData(Changelog.rows(env, ROW, changes, 2), ROW).sinkTo(sink(gateway, table));
        return env.executeAsync();
    }

    private static String latest(Path checkpoints) throws IOException {
        try (Stream<Path> files = Files.walk(checkpoints)) {
            return files.filter(file -> file.endsWith("_metadata"))
                    .max(Comparator.comparingLong(file -> file.toFile().lastModified()))
                    .orElseThrow()
                    .getParent()
                    .toUri()
                    .toString();
        }
    }

    /** A changelog as Flink makes them, with upserts and deletes of unknown keys among them. */
    private static void randomChanges(
            Random random, int size, List<Row> changes, Map<Long, Row> rows) {
        while (changes.size() < size) {
            long id = random.nextInt(150);
            Row old = rows.get(id);
            Row row = Row.of(id, "n" + changes.size(), vector(random));
            int what = random.nextInt(10);
            if (what < 3) {
                changes.add(
                        old == null
                                ? Row.ofKind(RowKind.DELETE, id, null, null)
                                : copy(old, RowKind.DELETE));
                rows.remove(id);
                continue;
            }
            if (old == null) {
                changes.add(copy(row, RowKind.INSERT));
            } else if (what < 6) {
                changes.add(copy(row, RowKind.UPDATE_AFTER));
            } else {
                changes.add(copy(old, RowKind.UPDATE_BEFORE));
                changes.add(copy(row, RowKind.UPDATE_AFTER));
            }
            rows.put(id, row);
        }
    }

    private static Float[] vector(Random random) {
        return random.nextInt(5) == 0
                ? null
                : new Float[] {random.nextFloat(), random.nextFloat(), random.nextFloat()};
    }

    private static Row copy(Row row, RowKind kind) {
        Row copy = Row.copy(row);
        copy.setKind(kind);
        return copy;
    }

    private static List<String> texts(Map<Long, Row> rows) {
        return rows.values().stream().map(Row::toString).sorted().collect(Collectors.toList());
    }

    private static List<String> rows(String table) throws Exception {
        StreamTableEnvironment env = batch(2);
        declare(env, table, COLUMNS);
        return query(env, "SELECT * FROM " + table);
    }

    private static Sink<RowData> sink(GatewayProcess gateway, String table) {
        return LanceSink.builder()
                .path(table)
                .gatewayUri(gateway.uri())
                .rowType((RowType) ROW.getLogicalType())
                .vectorDimensions(Map.of("v", 3))
                .primaryKey(List.of("id"))
                .build();
    }

    /** Fails at a row, the first time that it comes. */
    private static final class FailOnce implements MapFunction<RowData, RowData> {

        private static final long serialVersionUID = 1L;
        private static final AtomicBoolean FAILED = new AtomicBoolean();

        private final long at;
        private transient long rows;

        FailOnce(long at) {
            this.at = at;
        }

        @Override
        public RowData map(RowData row) {
            if (++rows == at && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("failed on purpose");
            }
            return row;
        }
    }
}
