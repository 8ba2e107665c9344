package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowJava;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.Copy;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.proto.v1.Assignment;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.Call;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CommitResponse;
import io.lancegateway.proto.v1.CommitState;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CreateNamespaceRequest;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.CreateTableRequest;
import io.lancegateway.proto.v1.DeleteRowsRequest;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.DropTableRequest;
import io.lancegateway.proto.v1.Expression;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.GatewayState;
import io.lancegateway.proto.v1.ListNamespacesRequest;
import io.lancegateway.proto.v1.ListTablesRequest;
import io.lancegateway.proto.v1.ListVersionsRequest;
import io.lancegateway.proto.v1.Literal;
import io.lancegateway.proto.v1.MergeCounts;
import io.lancegateway.proto.v1.Operator;
import io.lancegateway.proto.v1.Projection;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Table;
import io.lancegateway.proto.v1.UpdateRowsRequest;
import io.lancegateway.proto.v1.WriteMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.compare.VectorEqualsVisitor;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Against the gateway of `LANCE_GATEWAY_BIN`. */
@Tag("gateway")
@Timeout(120)
class RealGatewayTest {

    @TempDir private static Path dir;
    private static GatewayProcess gateway;
    private static GatewayClient client;

    @BeforeAll
    static void start() {
        gateway = new GatewayProcess(dir);
        client = GatewayClient.connect(GatewayOptions.builder(gateway.uri()).build());
    }

    @AfterAll
    static void stop() {
        client.close();
        gateway.close();
    }

    @Test
    void theGatewaySaysThatItServes() {
        assertThat(client.status().getState()).isEqualTo(GatewayState.GATEWAY_STATE_SERVING);
        assertThat(client.status().getLimits().getMaxMessageBytes())
                .isGreaterThanOrEqualTo(64 << 20);
    }

    @Test
    void rowsThatTwoWritersStageBecomeVisibleOnceAndTogether() throws Exception {
        Table table = Tables.named("once");
        WriteHandle write = create(table, FakeGateway.SCHEMA);
        List<byte[]> staged = new ArrayList<>();
        try (StageStream a = client.stage(write, StageOptions.defaults());
                StageStream b = client.stage(write, StageOptions.defaults())) {
            writeIds(a, 0, 1000);
            writeIds(b, 1000, 500);
            staged.add(a.finish().bytes());
            staged.add(b.finish().bytes());
        }
        assertThat(count(table)).isZero();

        CommitId id =
                CommitId.newBuilder().setEpoch(UUID.randomUUID().toString()).setSeq(1).build();
        PreparedCommit prepared =
                client.prepareCommit(id, write.bytes(), staged, Map.of("flink.job-id", "j"));
        assertThat(prepared.rows()).isEqualTo(1500);
        assertThat(client.getCommit(table, id).getState())
                .isEqualTo(CommitState.COMMIT_STATE_UNSPECIFIED);
        CommitResponse first = client.commit(prepared.committable());
        CommitResponse second = client.commit(prepared.committable());

        assertThat(first.getAlreadyCommitted()).isFalse();
        assertThat(second.getAlreadyCommitted()).isTrue();
        assertThat(second.getVersion()).isEqualTo(first.getVersion());
        assertThat(count(table)).isEqualTo(1500);
        assertThat(client.getCommit(table, id).getVersion()).isEqualTo(first.getVersion());
        assertThat(client.listCommits(table).get(0).getEpoch()).isEqualTo(id.getEpoch());
        assertThat(
                        client.listVersions(
                                        ListVersionsRequest.newBuilder().setTable(table).build())
                                .getVersions(0)
                                .getPropertiesMap())
                .containsEntry("flink.job-id", "j");
    }

    @Test
    void changesApplyToTheRowsOfTheirKeysAndTheReplyCountsThem() throws Exception {
        Table table = Tables.named("merged");
        WriteHandle write =
                beginMerge(table, CreateOptions.newBuilder().addPrimaryKey("id").build());
        assertThat(write.schema().field(1).name()).isEqualTo(WriteHandle.CHANGE_KIND);

        CommitResponse first = merge(write, new long[][] {{1, 0}, {2, 0}, {3, 0}});
        CommitResponse second = merge(write, new long[][] {{1, 2}, {2, 3}, {4, 0}, {5, 3}, {4, 2}});

        assertThat(first.getMerged()).isEqualTo(MergeCounts.newBuilder().setNumInserted(3).build());
        assertThat(second.getMerged())
                .isEqualTo(
                        MergeCounts.newBuilder()
                                .setNumInserted(1)
                                .setNumUpdated(1)
                                .setNumDeleted(1)
                                .setNumUnchanged(1)
                                .build());
        assertThat(readAll(ScanRequest.newBuilder().setTable(table).build()))
                .containsExactlyInAnyOrder(1L, 3L, 4L);
    }

    @Test
    void rowsOfAFilterAreUpdatedAndDeletedOnceForARequestId() throws Exception {
        Table table = Tables.named("changed");
        WriteHandle write = beginMerge(table, CreateOptions.getDefaultInstance());
        merge(write, new long[][] {{1, 0}, {2, 0}, {3, 0}});
        UpdateRowsRequest update =
                UpdateRowsRequest.newBuilder()
                        .setRequestId(UUID.randomUUID().toString())
                        .setTable(table)
                        .setFilter(Filter.newBuilder().setSql("id > 1"))
                        .addAssignments(Assignment.newBuilder().setColumn("id").setSql("id * 10"))
                        .build();
        assertThat(client.updateRows(update).getNumRows()).isEqualTo(2);
        assertThat(client.updateRows(update).getAlreadyCommitted()).isTrue();
        DeleteRowsRequest delete =
                DeleteRowsRequest.newBuilder()
                        .setTable(table)
                        .setFilter(Filter.newBuilder().setSql("id = 20"))
                        .build();
        assertThat(client.deleteRows(delete).getNumRows()).isEqualTo(1);
        assertThat(readAll(ScanRequest.newBuilder().setTable(table).build()))
                .containsExactlyInAnyOrder(1L, 30L);
    }

    /** By the id, into a new table. */
    private static WriteHandle beginMerge(Table table, CreateOptions create) {
        return client.beginWrite(
                BeginWriteRequest.newBuilder()
                        .setTable(table)
                        .setMode(WriteMode.WRITE_MODE_MERGE)
                        .addKey("id")
                        .setSchema(ByteString.copyFrom(FakeGateway.SCHEMA.toIpc()))
                        .setCreate(create)
                        .build());
    }

    /** Commits changes, of which each is a key and a kind. */
    private static CommitResponse merge(WriteHandle write, long[][] changes) throws Exception {
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        for (long[] change : changes) {
            ((FixedWidthBuilder) batch.column(0)).appendLong(change[0]);
            ((FixedWidthBuilder) batch.column(1)).appendByte((byte) change[1]);
            batch.endRow();
        }
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            stream.write(batch);
            byte[] staged = stream.finish().bytes();
            return client.commit(
                    client.prepareCommit(newId(), write.bytes(), List.of(staged), Map.of())
                            .committable());
        }
    }

    @Test
    void anAbortedCommitIsRefused() throws Exception {
        Table table = Tables.named("aborted");
        WriteHandle write = create(table, FakeGateway.SCHEMA);
        byte[] committable = prepare(write, 0, 10);
        assertThat(client.abort(committable).getNumFiles()).isPositive();
        FatalException e =
                catchThrowableOfType(FatalException.class, () -> client.commit(committable));
        assertThat(e.reason()).isEqualTo(Reason.COMMIT_ABORTED);
        assertThat(e.requestId()).isNotEmpty();
    }

    @Test
    void aScanIsPlannedReadAndResumed() throws Exception {
        Table table = Tables.named("scanned");
        WriteHandle write = create(table, FakeGateway.SCHEMA);
        client.commit(prepare(write, 0, 10_000));
        client.commit(prepare(write, 10_000, 10_000));
        ScanPlan plan = client.plan(ScanRequest.newBuilder().setTable(table).build());
        client.commit(prepare(write, 20_000, 5));

        assertThat(plan.schema()).isEqualTo(FakeGateway.SCHEMA);
        assertThat(plan.rows()).isEqualTo(20_000);
        List<Long> all = new ArrayList<>();
        for (ScanSplit split : plan.splits()) {
            List<Long> ids = read(split.ticket(), 0);
            all.addAll(ids);
            List<Long> rest = read(split.ticket(), 777);
            assertThat(rest).isEqualTo(ids.subList(777, ids.size()));
        }
        assertThat(all).hasSize(20_000).doesNotHaveDuplicates().contains(0L, 19_999L);
    }

    @Test
    void aScanKeepsToItsFilterProjectionAndLimit() throws Exception {
        Table table = Tables.named("filtered");
        client.commit(prepare(create(table, FakeGateway.SCHEMA), 0, 1000));
        Expression column =
                Expression.newBuilder().setColumn(Column.newBuilder().addPath("id")).build();
        Expression limit =
                Expression.newBuilder().setLiteral(Literal.newBuilder().setInteger(990)).build();
        Expression greater =
                Expression.newBuilder()
                        .setCall(
                                Call.newBuilder()
                                        .setOperator(Operator.OPERATOR_GREATER_OR_EQUAL)
                                        .addArguments(column)
                                        .addArguments(limit))
                        .build();
        ScanRequest.Builder request =
                ScanRequest.newBuilder()
                        .setTable(table)
                        .setFilter(Filter.newBuilder().setExpression(greater));
        assertThat(readAll(request.build())).hasSize(10).contains(990L, 999L);
        assertThat(readAll(request.setLimit(3).build())).hasSize(3);
        assertThat(readAll(request.setLimit(0).build())).isEmpty();

        request.clearLimit().setProjection(Projection.getDefaultInstance());
        int rows = 0;
        for (ScanSplit split : client.plan(request.build()).splits()) {
            try (BatchStream stream = client.read(split.ticket(), 0)) {
                ArrowBatch batch;
                while ((batch = stream.next()) != null) {
                    assertThat(batch.schema().size()).isZero();
                    rows += batch.rows();
                }
            }
        }
        assertThat(rows).isEqualTo(10);
    }

    @Test
    void rowsOfEightMebibytesGoInAndComeOut() throws Exception {
        Table table = Tables.named("wide");
        ArrowSchema schema =
                ArrowSchema.of(
                        ArrowField.nullable("s", io.lancegateway.client.arrow.ArrowType.UTF8));
        WriteHandle write = create(table, schema);
        String text = "y".repeat(8 << 20);
        byte[] staged;
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(write.schema());
            for (int i = 0; i < 7; i++) {
                ((BinaryBuilder) builder.column(0)).append(text);
                builder.endRow();
            }
            assertThat(builder.sizeInBytes()).isGreaterThan(7 * 8 << 20);
            stream.write(builder);
            staged = stream.finish().bytes();
        }
        client.commit(
                client.prepareCommit(newId(), write.bytes(), List.of(staged), Map.of())
                        .committable());
        int rows = 0;
        for (ScanSplit split :
                client.plan(ScanRequest.newBuilder().setTable(table).build()).splits()) {
            try (BatchStream stream = client.read(split.ticket(), 0)) {
                ArrowBatch batch;
                while ((batch = stream.next()) != null) {
                    for (int i = 0; i < batch.rows(); i++) {
                        assertThat(((BinaryVector) batch.column(0)).getString(i)).isEqualTo(text);
                        rows++;
                    }
                }
            }
        }
        assertThat(rows).isEqualTo(7);
    }

    @Test
    void everyTypeOfATableComesBackAsItWas() throws Exception {
        List<Field> fields = new ArrayList<>();
        tableTypes().forEach(type -> fields.add(field("c" + fields.size(), type)));
        Field item = field("item", new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE));
        Field text = field("text", new ArrowType.Utf8());
        Field vector = field("vector", new ArrowType.FixedSizeList(4), item);
        Field struct = field("struct", new ArrowType.Struct(), text, vector);
        fields.add(vector);
        fields.add(struct);
        fields.add(field("list", new ArrowType.List(), struct));
        fields.add(field("large", new ArrowType.LargeList(), text));
        Field key = new Field("key", FieldType.notNullable(new ArrowType.Utf8()), null);
        Field entries =
                new Field(
                        "entries",
                        FieldType.notNullable(new ArrowType.Struct()),
                        List.of(key, field("value", new ArrowType.Int(32, true))));
        fields.add(field("map", new ArrowType.Map(false), entries));
        for (double nulls : new double[] {0, 0.3}) {
            Table table = Tables.named("types" + (nulls > 0));
            try (BufferAllocator allocator = new RootAllocator();
                    VectorSchemaRoot root =
                            VectorSchemaRoot.create(new Schema(fields), allocator)) {
                root.getFieldVectors().forEach(v -> ArrowJava.fill(v, 5000, new Random(1), nulls));
                root.setRowCount(5000);
                ArrowBatch sent = ArrowJava.toOurs(root);
                // Maps need 2.2.
                CreateOptions options =
                        CreateOptions.newBuilder().setDataStorageVersion("2.2").build();
                WriteHandle write = create(table, sent.schema(), options);
                ArrowBatchBuilder builder = new ArrowBatchBuilder(write.schema());
                Copy.into(sent, builder);
                byte[] staged;
                try (StageStream stream = client.stage(write, StageOptions.defaults())) {
                    stream.write(builder);
                    staged = stream.finish().bytes();
                }
                client.commit(
                        client.prepareCommit(newId(), write.bytes(), List.of(staged), Map.of())
                                .committable());

                ArrowBatchBuilder read = new ArrowBatchBuilder(sent.schema());
                for (ScanSplit split :
                        client.plan(ScanRequest.newBuilder().setTable(table).build()).splits()) {
                    try (BatchStream stream = client.read(split.ticket(), 0)) {
                        ArrowBatch batch;
                        while ((batch = stream.next()) != null) {
                            Copy.into(batch, read);
                        }
                    }
                }
                ArrowJava.fromOurs(
                        sent.schema(),
                        read.encode(),
                        allocator,
                        back -> {
                            for (int c = 0; c < fields.size(); c++) {
                                assertThat(
                                                VectorEqualsVisitor.vectorEquals(
                                                        root.getVector(c), back.getVector(c)))
                                        .as("%s", fields.get(c))
                                        .isTrue();
                            }
                        });
            }
        }
    }

    private static List<ArrowType> tableTypes() {
        List<ArrowType> types =
                new ArrayList<>(
                        List.of(
                                new ArrowType.Bool(),
                                new ArrowType.Int(8, true),
                                new ArrowType.Int(16, true),
                                new ArrowType.Int(32, true),
                                new ArrowType.Int(64, true),
                                new ArrowType.Int(8, false),
                                new ArrowType.Int(16, false),
                                new ArrowType.Int(32, false),
                                new ArrowType.Int(64, false),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.HALF),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE),
                                new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE),
                                new ArrowType.Decimal(38, 10, 128),
                                new ArrowType.Decimal(76, 20, 256),
                                new ArrowType.Date(DateUnit.DAY),
                                new ArrowType.Date(DateUnit.MILLISECOND),
                                new ArrowType.Time(TimeUnit.SECOND, 32),
                                new ArrowType.Time(TimeUnit.MILLISECOND, 32),
                                new ArrowType.Time(TimeUnit.MICROSECOND, 64),
                                new ArrowType.Time(TimeUnit.NANOSECOND, 64),
                                new ArrowType.Utf8(),
                                new ArrowType.LargeUtf8(),
                                new ArrowType.Binary(),
                                new ArrowType.LargeBinary(),
                                new ArrowType.FixedSizeBinary(7)));
        for (TimeUnit unit : TimeUnit.values()) {
            types.add(new ArrowType.Timestamp(unit, null));
            types.add(new ArrowType.Timestamp(unit, "UTC"));
            types.add(new ArrowType.Duration(unit));
        }
        return types;
    }

    private static Field field(String name, ArrowType type, Field... children) {
        return new Field(name, FieldType.nullable(type), List.of(children));
    }

    @Test
    void aUnixSocketWorksAsTcpDoes() throws Exception {
        Table table = Tables.named("unix");
        client.commit(prepare(create(table, FakeGateway.SCHEMA), 0, 100));
        GatewayOptions options = GatewayOptions.builder(gateway.unixUri()).build();
        try (GatewayClient unix = GatewayClient.connect(options)) {
            ScanPlan plan = unix.plan(ScanRequest.newBuilder().setTable(table).build());
            try (BatchStream stream = unix.read(plan.splits().get(0).ticket(), 0)) {
                assertThat(stream.next().rows()).isEqualTo(100);
            }
        }
    }

    @Test
    void tablesAndNamespacesAreMadeListedDescribedAndDropped() {
        client.createNamespace(CreateNamespaceRequest.newBuilder().addNamespace("ns").build());
        assertThat(client.listNamespaces(ListNamespacesRequest.getDefaultInstance()).getNamesList())
                .contains("ns");
        Table table = Tables.named("ns", "t");
        client.createTable(
                CreateTableRequest.newBuilder()
                        .setTable(table)
                        .setSchema(ByteString.copyFrom(FakeGateway.SCHEMA.toIpc()))
                        .build());
        assertThat(
                        client.listTables(ListTablesRequest.newBuilder().addNamespace("ns").build())
                                .getTablesList())
                .hasSize(1);
        ByteString schema =
                client.describeTable(DescribeTableRequest.newBuilder().setTable(table).build())
                        .getSchema();
        assertThat(ArrowSchema.fromIpc(schema.asReadOnlyByteBuffer()))
                .isEqualTo(FakeGateway.SCHEMA);
        assertThat(
                        client.dropTable(DropTableRequest.newBuilder().setTable(table).build())
                                .getDropped())
                .isTrue();
        FatalException e = catchThrowableOfType(FatalException.class, () -> count(table));
        assertThat(e.reason()).isEqualTo(Reason.TABLE_NOT_FOUND);
    }

    private static WriteHandle create(Table table, ArrowSchema schema) {
        return create(table, schema, CreateOptions.getDefaultInstance());
    }

    private static WriteHandle create(Table table, ArrowSchema schema, CreateOptions options) {
        return client.beginWrite(
                BeginWriteRequest.newBuilder()
                        .setTable(table)
                        .setSchema(ByteString.copyFrom(schema.toIpc()))
                        .setCreate(options)
                        .build());
    }

    private static byte[] prepare(WriteHandle write, long first, int rows) throws Exception {
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            writeIds(stream, first, rows);
            byte[] staged = stream.finish().bytes();
            return client.prepareCommit(newId(), write.bytes(), List.of(staged), Map.of())
                    .committable();
        }
    }

    private static CommitId newId() {
        return CommitId.newBuilder().setEpoch(UUID.randomUUID().toString()).setSeq(1).build();
    }

    private static void writeIds(StageStream stream, long first, int rows) throws Exception {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
        FakeGateway.fill(builder, first, rows);
        stream.write(builder);
    }

    private static long count(Table table) {
        return client.countRows(CountRowsRequest.newBuilder().setTable(table).build()).getNumRows();
    }

    private static List<Long> readAll(ScanRequest request) throws InterruptedException {
        List<Long> ids = new ArrayList<>();
        for (ScanSplit split : client.plan(request).splits()) {
            ids.addAll(read(split.ticket(), 0));
        }
        return ids;
    }

    private static List<Long> read(byte[] ticket, long offset) throws InterruptedException {
        List<Long> ids = new ArrayList<>();
        try (BatchStream stream = client.read(ticket, offset)) {
            ArrowBatch batch;
            while ((batch = stream.next()) != null) {
                FixedWidthVector column = (FixedWidthVector) batch.column(0);
                for (int i = 0; i < batch.rows(); i++) {
                    ids.add(column.getLong(i));
                }
            }
        }
        return ids;
    }
}
