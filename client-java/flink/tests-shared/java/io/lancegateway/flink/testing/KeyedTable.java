package io.lancegateway.flink.testing;

import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.StageOptions;
import io.lancegateway.client.StageStream;
import io.lancegateway.client.StagedWrite;
import io.lancegateway.client.Tables;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.types.ChangeAppender;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.Cleanup;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.Compaction;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.StartJobRequest;
import io.lancegateway.proto.v1.Table;
import io.lancegateway.proto.v1.WriteMode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.flink.table.data.conversion.RowRowConverter;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;

/** A table with a primary key, whose versions are made one by one. The first one has no row. */
public final class KeyedTable {

    private final GatewayClient client;
    private final Table table;
    private final RowType type;
    private final List<String> key;
    private final ArrowSchema schema;
    private final RowRowConverter rows;

    private KeyedTable(GatewayClient client, String name, DataType type, List<String> key) {
        this.client = client;
        this.table = Tables.named(name);
        this.type = (RowType) type.getLogicalType();
        this.key = key;
        this.schema = ArrowSchema.of(List.of(ArrowTypes.columns(this.type, Set.of(), column -> 0)));
        this.rows = RowRowConverter.create(type);
        rows.open(getClass().getClassLoader());
    }

    public static KeyedTable create(
            GatewayClient client, String name, DataType type, List<String> key) {
        KeyedTable table = new KeyedTable(client, name, type, key);
        client.createTable(
                CreateTableRequest.newBuilder()
                        .setTable(table.table)
                        .setSchema(ByteString.copyFrom(table.schema.toIpc()))
                        .setOptions(CreateOptions.newBuilder().addAllPrimaryKey(key))
                        .build());
        return table;
    }

    /** Makes one version of these changes, and tells its number. */
    public long change(Row... changes) throws InterruptedException {
        return change(List.of(changes));
    }

    public long change(List<Row> changes) throws InterruptedException {
        WriteHandle write =
                client.beginWrite(
                        BeginWriteRequest.newBuilder()
                                .setTable(table)
                                .setSchema(ByteString.copyFrom(schema.toIpc()))
                                .setMode(WriteMode.WRITE_MODE_MERGE)
                                .build());
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        ChangeAppender appender = new ChangeAppender(type, column -> true, key, batch);
        changes.forEach(row -> appender.append(rows.toInternal(row)));
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            stream.write(batch);
            StagedWrite staged = stream.finish();
            CommitId id =
                    CommitId.newBuilder().setEpoch(UUID.randomUUID().toString()).setSeq(1).build();
            byte[] committable =
                    client.prepareCommit(id, write.bytes(), List.of(staged.bytes()), Map.of())
                            .committable();
            return client.commit(committable).getVersion();
        }
    }

    public void compact() throws InterruptedException {
        run(StartJobRequest.newBuilder().setCompaction(Compaction.getDefaultInstance()));
    }

    /** Removes all versions but the newest ones, and those that are held. */
    public void cleanUp(int keep) throws InterruptedException {
        Cleanup.Builder cleanup = Cleanup.newBuilder().setKeepVersions(keep);
        if (keep == 0) {
            cleanup.setOlderThan(Duration.getDefaultInstance());
        }
        run(StartJobRequest.newBuilder().setCleanup(cleanup));
    }

    private void run(StartJobRequest.Builder request) throws InterruptedException {
        Job job = client.startJob(request.setTable(table).build());
        Job ended = client.awaitJob(job, step -> {});
        if (ended.getState() != JobState.JOB_STATE_SUCCEEDED) {
            throw new IllegalStateException("the job failed: " + ended);
        }
    }
}
