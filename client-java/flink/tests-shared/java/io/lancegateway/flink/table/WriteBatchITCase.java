package io.lancegateway.flink.table;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import java.lang.reflect.Proxy;
import java.util.Map;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.SinkWriterMetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.metrics.groups.InternalSinkWriterMetricGroup;
import org.apache.flink.streaming.runtime.tasks.TestProcessingTimeService;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.catalog.CatalogTable;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ResolvedCatalogTable;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.FactoryUtil;
import org.junit.jupiter.api.Test;

/** How many rows a writer lets wait. */
class WriteBatchITCase extends FlinkAndGateway {

    private final SinkWriterMetricGroup metrics =
            InternalSinkWriterMetricGroup.wrap(
                    UnregisteredMetricsGroup.createOperatorMetricGroup());

    @Test
    void writeBatchSizeBoundsTheRowsThatWait() throws Exception {
        try (CommittingSinkWriter<RowData, ?> writer = writer("write.batch-size", "3")) {
            write(writer, 7);
            assertThat(metrics.getNumRecordsSendCounter().getCount()).isEqualTo(6);

            writer.prepareCommit();
            assertThat(metrics.getNumRecordsSendCounter().getCount()).isEqualTo(7);
        }
    }

    @Test
    void withoutItRowsWaitForTheirBytes() throws Exception {
        try (CommittingSinkWriter<RowData, ?> writer = writer("write.mode", "append")) {
            write(writer, 2000);

            assertThat(metrics.getNumRecordsSendCounter().getCount()).isZero();
        }
    }

    @Test
    void theMemoryCapBoundsTheBytesThatWait() throws Exception {
        try (CommittingSinkWriter<RowData, ?> writer = writer("write.memory-cap-bytes", "1")) {
            write(writer, 2);

            assertThat(metrics.getNumRecordsSendCounter().getCount()).isEqualTo(2);
        }
    }

    private static void write(CommittingSinkWriter<RowData, ?> writer, int rows) throws Exception {
        for (long id = 0; id < rows; id++) {
            writer.write(GenericRowData.of(id), null);
        }
    }

    /** A writer as a table with this option makes it. */
    @SuppressWarnings("unchecked")
    private CommittingSinkWriter<RowData, ?> writer(String option, String value) throws Exception {
        Map<String, String> options =
                Map.of(
                        "connector",
                        "lance",
                        "path",
                        newTable(),
                        "gateway.uri",
                        gateway().uri(),
                        option,
                        value);
        Schema schema = Schema.newBuilder().column("id", DataTypes.BIGINT()).build();
        DynamicTableSink sink =
                FactoryUtil.createDynamicTableSink(
                        new LanceDynamicTableFactory(),
                        ObjectIdentifier.of("c", "d", "t"),
                        new ResolvedCatalogTable(
                                CatalogTable.newBuilder().schema(schema).options(options).build(),
                                ResolvedSchema.of(Column.physical("id", DataTypes.BIGINT()))),
                        Map.of(),
                        new Configuration(),
                        getClass().getClassLoader(),
                        false);
        SinkV2Provider provider = (SinkV2Provider) ((PortableTableSink) sink).provider(false);
        return (CommittingSinkWriter<RowData, ?>) provider.createSink().createWriter(context());
    }

    private WriterInitContext context() {
        Map<String, Object> known =
                Map.of(
                        "metricGroup",
                        metrics,
                        "getProcessingTimeService",
                        new TestProcessingTimeService());
        return (WriterInitContext)
                Proxy.newProxyInstance(
                        getClass().getClassLoader(),
                        new Class<?>[] {WriterInitContext.class},
                        (self, method, arguments) -> known.get(method.getName()));
    }
}
