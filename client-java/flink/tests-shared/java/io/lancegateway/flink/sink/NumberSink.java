package io.lancegateway.flink.sink;

import io.lancegateway.client.Tables;
import io.lancegateway.flink.testing.GatewayResource;
import io.lancegateway.flink.util.GatewayAddress;
import java.io.IOException;
import java.util.Collection;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.connector.sink2.CommittableMessage;
import org.apache.flink.streaming.api.connector.sink2.SupportsPreCommitTopology;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.data.GenericRowData;

/** The sink, for values that Flink's suite can compare: rows are not comparable. */
final class NumberSink
        implements PortableSink<Long>,
                SupportsCommitter<Committable>,
                SupportsPreCommitTopology<StagedRows, Committable> {

    private static final long serialVersionUID = 1L;

    private final SinkSpec spec;
    private final TableSink sink;

    NumberSink(String uri, String table) {
        spec =
                new SinkSpec(
                        new GatewayAddress(uri),
                        Tables.named(table),
                        GatewayResource.ROW_TYPE,
                        false,
                        0,
                        0,
                        0,
                        NewTable.byDefault(),
                        null);
        sink = new TableSink(spec);
    }

    @Override
    public SinkWriter<Long> createWriter(WriterInitContext context) {
        return new Writer(new LanceSinkWriter(spec, context));
    }

    @Override
    public Committer<Committable> createCommitter(CommitterInitContext context) {
        return sink.createCommitter(context);
    }

    @Override
    public SimpleVersionedSerializer<Committable> getCommittableSerializer() {
        return sink.getCommittableSerializer();
    }

    @Override
    public SimpleVersionedSerializer<StagedRows> getWriteResultSerializer() {
        return sink.getWriteResultSerializer();
    }

    @Override
    public DataStream<CommittableMessage<Committable>> addPreCommitTopology(
            DataStream<CommittableMessage<StagedRows>> writes) {
        return sink.addPreCommitTopology(writes);
    }

    private static final class Writer implements CommittingSinkWriter<Long, StagedRows> {

        private final LanceSinkWriter rows;

        Writer(LanceSinkWriter rows) {
            this.rows = rows;
        }

        @Override
        public void write(Long number, Context context) throws IOException, InterruptedException {
            rows.write(GenericRowData.of(number), context);
        }

        @Override
        public void flush(boolean endOfInput) throws IOException, InterruptedException {
            rows.flush(endOfInput);
        }

        @Override
        public Collection<StagedRows> prepareCommit() throws IOException, InterruptedException {
            return rows.prepareCommit();
        }

        @Override
        public void close() {
            rows.close();
        }
    }
}
