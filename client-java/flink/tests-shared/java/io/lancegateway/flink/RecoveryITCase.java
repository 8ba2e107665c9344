package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.proto.v1.TableVersion;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;

/** Jobs of the DataStream API that fail and go on. */
class RecoveryITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    @Test
    void aJobThatFailsBetweenCheckpointsWritesEachRowOnce() throws Exception {
        String table = newTable();
        StreamExecutionEnvironment env = restarting();
        env.enableCheckpointing(50);
        // Five rows, then a checkpoint.
        DataStream<RowData> rows =
                env.fromSource(
                                new DataGeneratorSource<>(
                                        i -> i,
                                        60,
                                        RateLimiterStrategy.perCheckpoint(5),
                                        Types.LONG),
                                WatermarkStrategy.noWatermarks(),
                                "numbers")
                        .map(new FailOnce(33))
                        .map(id -> (RowData) GenericRowData.of(id))
                        .returns(RowData.class);
        rows.sinkTo(
                LanceSink.builder()
                        .path(table)
                        .gatewayUri(gateway().uri())
                        .rowType(ROW_TYPE)
                        .build());

        env.execute();

        assertThat(FailOnce.FAILED).isTrue();
        List<Long> ids = ids(table);
        assertThat(ids).hasSize(60).doesNotHaveDuplicates();
        List<TableVersion> versions = versions(table);
        assertThat(versions.size()).isGreaterThan(6);
        long before = 0;
        for (TableVersion version : versions.subList(1, versions.size())) {
            assertThat(version.getNumRows()).isGreaterThan(before);
            before = version.getNumRows();
        }
    }

    @Test
    void sourceAndSinkWorkTogetherInTheDataStreamApi() throws Exception {
        String from = newTable();
        String to = newTable();
        StreamExecutionEnvironment env = restarting();
        env.fromSequence(1, 1000)
                .map(id -> (RowData) GenericRowData.of(id))
                .returns(RowData.class)
                .sinkTo(
                        LanceSink.builder()
                                .path(from)
                                .gatewayUri(gateway().uri())
                                .rowType(ROW_TYPE)
                                .build());
        env.execute();

        env.fromSource(
                        LanceSource.builder()
                                .path(from)
                                .gatewayUri(gateway().uri())
                                .rowType(ROW_TYPE)
                                .filter("id > 100")
                                .batchSize(7)
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        "lance")
                .sinkTo(
                        LanceSink.builder()
                                .path(to)
                                .gatewayUri(gateway().uri())
                                .rowType(ROW_TYPE)
                                .batchSize(13)
                                .build());
        env.execute();

        assertThat(ids(to)).hasSize(900).doesNotHaveDuplicates();
    }

    private static List<Long> ids(String table) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        List<Long> ids = new ArrayList<>();
        try (CloseableIterator<Long> found =
                env.fromSource(
                                LanceSource.builder()
                                        .path(table)
                                        .gatewayUri(gateway().uri())
                                        .rowType(ROW_TYPE)
                                        .build(),
                                WatermarkStrategy.noWatermarks(),
                                "lance")
                        .map(row -> row.getLong(0))
                        .executeAndCollect()) {
            found.forEachRemaining(ids::add);
        }
        return ids;
    }

    /** Fails at a value, the first time that it comes. */
    private static final class FailOnce implements MapFunction<Long, Long> {

        private static final long serialVersionUID = 1L;
        private static final AtomicBoolean FAILED = new AtomicBoolean();

        private final long at;

        FailOnce(long at) {
            this.at = at;
        }

        @Override
        public Long map(Long value) {
            if (value == at && FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("failed on purpose");
            }
            return value;
        }
    }
}
