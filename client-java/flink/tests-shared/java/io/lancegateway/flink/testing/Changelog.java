package io.lancegateway.flink.testing;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.conversion.RowRowConverter;
import org.apache.flink.table.runtime.typeutils.ExternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;

/** Changes of rows, in their order. */
public final class Changelog {

    private Changelog() {}

    /** Changes that come at once, as the Table API takes them. */
    public static DataStream<Row> rows(
            StreamExecutionEnvironment env, DataType type, List<Row> changes) {
        return rows(env, type, changes, RateLimiterStrategy.noOp());
    }

    /** Changes of which so many come between two checkpoints at most. */
    public static DataStream<Row> rows(
            StreamExecutionEnvironment env, DataType type, List<Row> changes, int perCheckpoint) {
        return rows(env, type, changes, RateLimiterStrategy.perCheckpoint(perCheckpoint));
    }

    // What paces a source has another type in Flink 2.2.
    @SuppressWarnings({"rawtypes", "unchecked"})
    private static DataStream<Row> rows(
            StreamExecutionEnvironment env,
            DataType type,
            List<Row> changes,
            RateLimiterStrategy pace) {
        ArrayList<Row> kept = new ArrayList<>(changes);
        return env.fromSource(
                        new DataGeneratorSource<>(
                                index -> kept.get(index.intValue()),
                                kept.size(),
                                pace,
                                ExternalTypeInfo.of(type)),
                        WatermarkStrategy.noWatermarks(),
                        "changes")
                .setParallelism(1);
    }

    /** The same as a sink takes them. */
    public static DataStream<RowData> rowData(DataStream<Row> changes, DataType type) {
        return changes.map(new ToRowData(type))
                .returns(InternalTypeInfo.of(type.getLogicalType()))
                .setParallelism(1);
    }

    private static final class ToRowData implements MapFunction<Row, RowData> {

        private static final long serialVersionUID = 1L;

        private final DataType type;
        private transient RowRowConverter converter;

        ToRowData(DataType type) {
            this.type = type;
        }

        @Override
        public RowData map(Row row) {
            if (converter == null) {
                converter = RowRowConverter.create(type);
                converter.open(getClass().getClassLoader());
            }
            return converter.toInternal(row);
        }
    }
}
