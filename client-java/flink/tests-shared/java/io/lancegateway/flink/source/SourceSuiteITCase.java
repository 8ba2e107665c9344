package io.lancegateway.flink.source;

import static org.apache.flink.runtime.testutils.CommonTestUtils.waitForJobStatus;
import static org.apache.flink.runtime.testutils.CommonTestUtils.waitUntilCondition;
import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.LanceSink;
import io.lancegateway.flink.testing.GatewayResource;
import io.lancegateway.flink.testing.NeedsGateway;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.BatchSize;
import io.lancegateway.proto.v1.ScanRequest;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import javax.annotation.Nullable;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.testframe.environment.ClusterControllable;
import org.apache.flink.connector.testframe.environment.MiniClusterTestEnvironment;
import org.apache.flink.connector.testframe.environment.TestEnvironment;
import org.apache.flink.connector.testframe.environment.TestEnvironmentSettings;
import org.apache.flink.connector.testframe.external.ExternalContextFactory;
import org.apache.flink.connector.testframe.external.ExternalSystemSplitDataWriter;
import org.apache.flink.connector.testframe.external.source.DataStreamSourceExternalContext;
import org.apache.flink.connector.testframe.external.source.TestingSourceSettings;
import org.apache.flink.connector.testframe.junit.annotations.TestContext;
import org.apache.flink.connector.testframe.junit.annotations.TestEnv;
import org.apache.flink.connector.testframe.junit.annotations.TestExternalSystem;
import org.apache.flink.connector.testframe.junit.annotations.TestSemantics;
import org.apache.flink.connector.testframe.source.FromElementsSource;
import org.apache.flink.connector.testframe.testsuites.SourceTestSuiteBase;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.TestTemplate;

/**
 * Flink's own suite for sources. A scan ends, so the cases that add rows to a source that is read
 * already are replaced: what is hit here is a scan in its middle.
 */
@NeedsGateway
class SourceSuiteITCase extends SourceTestSuiteBase<RowData> {

    private static final int SPLITS = 4;
    private static final int ROWS_OF_A_SPLIT = 60;

    @TestSemantics
    final CheckpointingMode[] modes = {
        CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE
    };

    @TestEnv final MiniClusterTestEnvironment flink = new MiniClusterTestEnvironment();

    @TestExternalSystem final GatewayResource gateway = new GatewayResource();

    @TestContext final ExternalContextFactory<NewTable> tables = test -> new NewTable(gateway);

    @Override
    @TestTemplate
    @DisplayName("Test source restarting from a savepoint in mid-scan")
    public void testSavepoint(
            TestEnvironment flink,
            DataStreamSourceExternalContext<RowData> table,
            CheckpointingMode mode)
            throws Exception {
        goOnFromSavepoint(flink, (NewTable) table, mode, 4, 4);
    }

    @Override
    @TestTemplate
    @DisplayName("Test source restarting in mid-scan with a higher parallelism")
    public void testScaleUp(
            TestEnvironment flink,
            DataStreamSourceExternalContext<RowData> table,
            CheckpointingMode mode)
            throws Exception {
        goOnFromSavepoint(flink, (NewTable) table, mode, 2, 4);
    }

    @Override
    @TestTemplate
    @DisplayName("Test source restarting in mid-scan with a lower parallelism")
    public void testScaleDown(
            TestEnvironment flink,
            DataStreamSourceExternalContext<RowData> table,
            CheckpointingMode mode)
            throws Exception {
        goOnFromSavepoint(flink, (NewTable) table, mode, 4, 2);
    }

    private void goOnFromSavepoint(
            TestEnvironment flink, NewTable table, CheckpointingMode mode, int before, int after)
            throws Exception {
        List<Long> rows = table.fill();
        String copy = GatewayResource.newTable();
        JobClient first = copy(flink, mode, new HeldSource(table.scan()), before, copy, null);
        waitUntilCondition(() -> !gateway.numbers(copy).isEmpty());
        String savepoint =
                first.stopWithSavepoint(
                                false, flink.getCheckpointUri(), SavepointFormatType.CANONICAL)
                        .get();
        waitForJobStatus(first, List.of(JobStatus.FINISHED));
        assertThat(gateway.numbers(copy)).hasSizeBetween(1, rows.size() - 1);

        JobClient second = copy(flink, mode, table.scan(), after, copy, savepoint);
        waitForJobStatus(second, List.of(JobStatus.FINISHED));
        assertThat(gateway.numbers(copy)).containsExactlyInAnyOrderElementsOf(rows);
    }

    @Override
    @TestTemplate
    @DisplayName("Test TaskManager failure in mid-scan")
    public void testTaskManagerFailure(
            TestEnvironment flink,
            DataStreamSourceExternalContext<RowData> external,
            ClusterControllable cluster,
            CheckpointingMode mode)
            throws Exception {
        NewTable table = (NewTable) external;
        List<Long> rows = table.fill();
        String copy = GatewayResource.newTable();
        JobClient job = copy(flink, mode, new HeldSource(table.scan()), 2, copy, null);
        waitUntilCondition(() -> !gateway.numbers(copy).isEmpty());
        cluster.triggerTaskManagerFailover(job, () -> {});
        HeldSource.letGo();
        waitForJobStatus(job, List.of(JobStatus.FINISHED));
        assertThat(gateway.numbers(copy)).containsExactlyInAnyOrderElementsOf(rows);
    }

    /** Reads with one source into another table. */
    private JobClient copy(
            TestEnvironment flink,
            CheckpointingMode mode,
            Source<RowData, ?, ?> source,
            int parallelism,
            String copy,
            @Nullable String savepoint)
            throws Exception {
        TestEnvironmentSettings.Builder settings = TestEnvironmentSettings.builder();
        if (savepoint != null) {
            settings.setSavepointRestorePath(savepoint);
        }
        StreamExecutionEnvironment env = flink.createExecutionEnvironment(settings.build());
        env.enableCheckpointing(50, mode);
        env.setParallelism(parallelism);
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "scan")
                .uid("scan")
                .sinkTo(
                        LanceSink.builder()
                                .gatewayUri(gateway.uri())
                                .path(copy)
                                .rowType(GatewayResource.ROW_TYPE)
                                .build())
                .uid("copy");
        return env.executeAsync("copy");
    }

    /** The table of one test. A split is what was committed at once. */
    private static final class NewTable implements DataStreamSourceExternalContext<RowData> {

        private final GatewayResource gateway;
        private final String table = GatewayResource.newTable();

        NewTable(GatewayResource gateway) {
            this.gateway = gateway;
        }

        ScanSource scan() {
            ScanRequest request =
                    ScanRequest.newBuilder()
                            .setTable(Tables.named(table))
                            .setBatch(BatchSize.newBuilder().setRows(5))
                            .setSplitBytes(1)
                            .setMaxSplits(SPLITS)
                            .build();
            return new ScanSource(
                    new GatewayAddress(gateway.uri()),
                    ScanSpec.rows(request, GatewayResource.ROW_TYPE, List.of(List.of("id"))));
        }

        /** The rows. */
        List<Long> fill() {
            List<Long> all = new ArrayList<>();
            for (int split = 0; split < SPLITS; split++) {
                List<Long> numbers = random(split);
                gateway.append(table, numbers);
                all.addAll(numbers);
            }
            return all;
        }

        private static List<Long> random(long seed) {
            return new Random(seed).longs(ROWS_OF_A_SPLIT).boxed().collect(Collectors.toList());
        }

        /** One that does not end is a scan, and a source without rows behind it. */
        @Override
        public Source<RowData, ?, ?> createSource(TestingSourceSettings settings) {
            if (settings.getBoundedness() == Boundedness.BOUNDED) {
                return scan();
            }
            return new WrappedSource<>(
                    HybridSource.builder(scan())
                            .addSource(
                                    new FromElementsSource<RowData>(
                                            Boundedness.CONTINUOUS_UNBOUNDED, List.of(), 0))
                            .build());
        }

        @Override
        public ExternalSystemSplitDataWriter<RowData> createSourceSplitDataWriter(
                TestingSourceSettings settings) {
            return new ExternalSystemSplitDataWriter<RowData>() {
                @Override
                public void writeRecords(List<RowData> rows) {
                    gateway.append(
                            table,
                            rows.stream().map(row -> row.getLong(0)).collect(Collectors.toList()));
                }

                @Override
                public void close() {
                    // What is written is committed.
                }
            };
        }

        @Override
        public List<RowData> generateTestData(
                TestingSourceSettings settings, int split, long seed) {
            // As they come out of Flink: only the same form is equal.
            RowDataSerializer serializer = new RowDataSerializer(GatewayResource.ROW_TYPE);
            return random(seed).stream()
                    .map(number -> serializer.toBinaryRow(GenericRowData.of(number)).copy())
                    .collect(Collectors.toList());
        }

        @Override
        public TypeInformation<RowData> getProducedType() {
            return InternalTypeInfo.of(GatewayResource.ROW_TYPE);
        }

        @Override
        public List<URL> getConnectorJarPaths() {
            return List.of();
        }

        @Override
        public void close() {
            // The gateway takes its warehouse along.
        }
    }
}
