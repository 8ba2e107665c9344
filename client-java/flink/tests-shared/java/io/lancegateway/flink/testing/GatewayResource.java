package io.lancegateway.flink.testing;

import com.google.protobuf.ByteString;
import io.lancegateway.client.BatchStream;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.ScanSplit;
import io.lancegateway.client.StageOptions;
import io.lancegateway.client.StageStream;
import io.lancegateway.client.StagedWrite;
import io.lancegateway.client.Tables;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.WriteMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.connector.testframe.TestResource;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.logical.RowType;

/** A gateway for Flink's suites, and tables of numbers in it. */
public final class GatewayResource implements TestResource {

    /** The rows of the tables. */
    public static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    private static final ArrowSchema SCHEMA =
            ArrowSchema.of(ArrowField.nullable("id", ArrowType.INT64));

    private GatewayProcess gateway;
    private GatewayClient client;

    @Override
    public void startUp() {
        gateway = GatewayProcess.start();
        client = gateway.connect();
    }

    @Override
    public void tearDown() {
        client.close();
        gateway.close();
    }

    public String uri() {
        return gateway.uri();
    }

    /** A name that no other test uses. */
    public static String newTable() {
        return "t_" + UUID.randomUUID().toString().replace('-', '_');
    }

    /** Appends numbers as one version. */
    public void append(String table, List<Long> numbers) {
        WriteHandle write =
                client.beginWrite(
                        BeginWriteRequest.newBuilder()
                                .setTable(Tables.named(table))
                                .setMode(WriteMode.WRITE_MODE_APPEND)
                                .setSchema(ByteString.copyFrom(SCHEMA.toIpc()))
                                .setCreate(CreateOptions.getDefaultInstance())
                                .build());
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        for (long number : numbers) {
            ((FixedWidthBuilder) batch.column(0)).appendLong(number);
            batch.endRow();
        }
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            stream.write(batch);
            StagedWrite staged = stream.finish();
            CommitId id =
                    CommitId.newBuilder().setEpoch(UUID.randomUUID().toString()).setSeq(1).build();
            client.commit(
                    client.prepareCommit(id, write.bytes(), List.of(staged.bytes()), Map.of())
                            .committable());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    /**
     * All numbers of a table, in the order in which they were committed; none while it is absent.
     */
    public List<Long> numbers(String table) {
        List<Long> numbers = new ArrayList<>();
        try {
            ScanRequest scan = ScanRequest.newBuilder().setTable(Tables.named(table)).build();
            for (ScanSplit split : client.plan(scan).splits()) {
                try (BatchStream stream = client.read(split.ticket(), 0)) {
                    for (ArrowBatch batch = stream.next(); batch != null; batch = stream.next()) {
                        FixedWidthVector ids = (FixedWidthVector) batch.column(0);
                        for (int i = 0; i < batch.rows(); i++) {
                            numbers.add(ids.getLong(i));
                        }
                    }
                }
            }
        } catch (LanceGatewayException failed) {
            if (failed.reason() != Reason.TABLE_NOT_FOUND) {
                throw failed;
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
        return numbers;
    }
}
