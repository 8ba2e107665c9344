package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.FixedSizeListBuilder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.client.arrow.ListBuilder;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.CommitId;
import io.lancegateway.proto.v1.CreateIndexRequest;
import io.lancegateway.proto.v1.CreateOptions;
import io.lancegateway.proto.v1.DropIndexRequest;
import io.lancegateway.proto.v1.ExchangeCommand;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.Float32Values;
import io.lancegateway.proto.v1.FullTextIndex;
import io.lancegateway.proto.v1.FullTextQuery;
import io.lancegateway.proto.v1.FullTextSearchRequest;
import io.lancegateway.proto.v1.HybridQuery;
import io.lancegateway.proto.v1.HybridSearchRequest;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.IndexStatistics;
import io.lancegateway.proto.v1.Job;
import io.lancegateway.proto.v1.JobState;
import io.lancegateway.proto.v1.LookupRequest;
import io.lancegateway.proto.v1.MatchQuery;
import io.lancegateway.proto.v1.OptimizeIndexRequest;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Search;
import io.lancegateway.proto.v1.Table;
import io.lancegateway.proto.v1.TextQuery;
import io.lancegateway.proto.v1.Vector;
import io.lancegateway.proto.v1.VectorIndex;
import io.lancegateway.proto.v1.VectorIndexType;
import io.lancegateway.proto.v1.VectorQuery;
import io.lancegateway.proto.v1.VectorSearchRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Searches, lookups and indexes against the gateway of `LANCE_GATEWAY_BIN`. */
@Tag("gateway")
@Timeout(120)
class RealSearchTest {

    private static final ArrowSchema POINTS =
            ArrowSchema.of(
                    ArrowField.required("id", ArrowType.INT64),
                    ArrowField.nullable("word", ArrowType.UTF8),
                    ArrowField.nullable(
                            "v",
                            ArrowType.fixedSizeList(2),
                            ArrowField.nullable("item", ArrowType.FLOAT32)));

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
    void theNearestTheBestAndBothAreFound() throws Exception {
        Table table = points("searched", 0, 10);
        SearchResult near =
                client.search(
                        VectorSearchRequest.newBuilder()
                                .setTable(table)
                                .setFilter(Filter.newBuilder().setSql("id <> 3"))
                                .setQuery(nearest(2).setVector(vector(3)))
                                .build());
        assertThat(ids(near)).containsExactlyInAnyOrder(2L, 4L);
        assertThat(near.info().getNumRows()).isEqualTo(2);
        assertThat(near.info().getVector().getNumUnindexedRows()).isEqualTo(10);

        FullTextQuery text = words("word7");
        SearchResult best =
                client.search(
                        FullTextSearchRequest.newBuilder().setTable(table).setQuery(text).build());
        assertThat(ids(best)).containsExactly(7L);
        SearchResult both =
                client.search(
                        HybridSearchRequest.newBuilder()
                                .setTable(table)
                                .setQuery(
                                        HybridQuery.newBuilder()
                                                .setVector(nearest(3).setVector(vector(7)))
                                                .setText(text))
                                .build());
        assertThat(ids(both).get(0)).isEqualTo(7);
        assertThat(both.schema().indexOf("_relevance_score")).isPositive();

        FatalException e =
                catchThrowableOfType(
                        FatalException.class,
                        () ->
                                client.search(
                                        VectorSearchRequest.newBuilder()
                                                .setTable(table)
                                                .setQuery(nearest(0).setVector(vector(0)))
                                                .build()));
        assertThat(e.reason()).isEqualTo(Reason.INVALID_ARGUMENT);
    }

    @Test
    void manySearchesOnOneStreamAreAnsweredEachByItself() throws Exception {
        Table table = points("many", 0, 100);
        ExchangeCommand command =
                ExchangeCommand.newBuilder()
                        .setSearch(
                                ScanRequest.newBuilder()
                                        .setTable(table)
                                        .setSearch(Search.newBuilder().setVector(nearest(1))))
                        .build();
        ArrowSchema queries =
                ArrowSchema.of(
                        ArrowField.required("id", ArrowType.INT64),
                        ArrowField.nullable(
                                "vector",
                                ArrowType.LIST,
                                ArrowField.nullable("item", ArrowType.FLOAT32)));
        try (Exchange exchange = client.exchange(command, queries)) {
            List<CompletableFuture<FoundRows>> found = new ArrayList<>();
            for (int i = 0; i < 300; i++) {
                found.add(exchange.ask(query(i % 100, i == 150 ? 3 : 2)));
            }
            for (int i = 0; i < 300; i++) {
                if (i != 150) {
                    assertThat(ids(found.get(i).get())).containsExactly((long) i % 100);
                }
            }
            assertThat(found.get(150))
                    .failsWithin(Duration.ofSeconds(30))
                    .withThrowableThat()
                    .havingCause()
                    .withMessageContaining("INVALID_ARGUMENT");
        }
    }

    private static Exchange.Query query(int x, int dimension) {
        return batch -> {
            ((FixedWidthBuilder) batch.column(0)).appendLong(0);
            ListBuilder vectors = (ListBuilder) batch.column(1);
            for (int i = 0; i < dimension; i++) {
                ((FixedWidthBuilder) vectors.child()).appendFloat(i == 0 ? x : 0);
            }
            vectors.append(dimension);
            batch.endRow();
        };
    }

    @Test
    void rowsAreLookedUpByKeysInAnyNumber() throws Exception {
        Table table = points("keyed", 0, 1000);
        ExchangeCommand command =
                ExchangeCommand.newBuilder()
                        .setLookup(
                                LookupRequest.newBuilder()
                                        .setTable(table)
                                        .addKeys(Column.newBuilder().addPath("id")))
                        .build();
        ArrowSchema keys = ArrowSchema.of(ArrowField.nullable("key", ArrowType.INT64));
        try (Exchange exchange = client.exchange(command, keys)) {
            List<CompletableFuture<FoundRows>> found = new ArrayList<>();
            for (long i = 0; i < 2000; i++) {
                long key = i;
                found.add(exchange.ask(batch -> FakeGateway.fill(batch, key, 1)));
            }
            for (long i = 0; i < 2000; i++) {
                List<Long> ids = ids(found.get((int) i).get());
                assertThat(ids).isEqualTo(i < 1000 ? List.of(i) : List.of());
            }
        }
    }

    @Test
    void anIndexIsBuiltFollowedOptimizedDescribedAndDropped() throws Exception {
        Table table = points("indexed", 0, 300);
        List<Job> steps = new ArrayList<>();
        Job built =
                client.awaitJob(
                        client.createIndex(
                                CreateIndexRequest.newBuilder()
                                        .setTable(table)
                                        .setBuild(
                                                build("v")
                                                        .setVector(
                                                                VectorIndex.newBuilder()
                                                                        .setType(
                                                                                VectorIndexType
                                                                                        .VECTOR_INDEX_TYPE_IVF_FLAT)
                                                                        .setNumPartitions(1)))
                                        .build()),
                        steps::add);
        assertThat(built.getState()).isEqualTo(JobState.JOB_STATE_SUCCEEDED);
        assertThat(built.getIndexResult().getNumIndexedRows()).isEqualTo(300);
        assertThat(steps).isNotEmpty().last().isEqualTo(built);
        assertThat(client.getJob(built.getId())).isEqualTo(built);

        client.awaitJob(
                client.createIndex(
                        CreateIndexRequest.newBuilder()
                                .setTable(table)
                                .setBuild(build("word").setFullText(FullTextIndex.newBuilder()))
                                .build()),
                step -> {});
        assertThat(client.listIndexes(table))
                .extracting(IndexStatistics::getName)
                .containsExactly("v_idx", "word_idx");

        write(table, 300, 10);
        assertThat(client.describeIndex(table, "v_idx").getNumUnindexedRows()).isEqualTo(10);
        Job optimized =
                client.awaitJob(
                        client.optimizeIndex(
                                OptimizeIndexRequest.newBuilder().setTable(table).build()),
                        step -> {});
        assertThat(optimized.getOptimizationResult().getIndexesCount()).isEqualTo(2);
        assertThat(client.describeIndex(table, "v_idx").getNumUnindexedRows()).isZero();

        DropIndexRequest drop =
                DropIndexRequest.newBuilder()
                        .setRequestId(UUID.randomUUID().toString())
                        .setTable(table)
                        .setName("v_idx")
                        .build();
        assertThat(client.dropIndex(drop)).isEqualTo(client.dropIndex(drop));
        FatalException e =
                catchThrowableOfType(
                        FatalException.class, () -> client.describeIndex(table, "v_idx"));
        assertThat(e.reason()).isEqualTo(Reason.INDEX_NOT_FOUND);
    }

    @Test
    void aJobWhoseGatewayIsGoneIsInterrupted() throws Exception {
        Job lost =
                Job.newBuilder()
                        .setId(UUID.randomUUID().toString())
                        .setState(JobState.JOB_STATE_RUNNING)
                        .build();
        assertThat(client.awaitJob(lost, step -> {}).getState())
                .isEqualTo(JobState.JOB_STATE_INTERRUPTED);
        assertThat(client.listJobs()).doesNotContain(lost);
    }

    private static IndexBuild.Builder build(String column) {
        return IndexBuild.newBuilder().setColumn(Column.newBuilder().addPath(column));
    }

    /** The {@code k} nearest; where to is set apart. */
    private static VectorQuery.Builder nearest(long k) {
        return VectorQuery.newBuilder().setColumn(Column.newBuilder().addPath("v")).setK(k);
    }

    private static Vector vector(float x) {
        return Vector.newBuilder()
                .setFloat32(Float32Values.newBuilder().addValues(x).addValues(0))
                .build();
    }

    private static FullTextQuery words(String text) {
        return FullTextQuery.newBuilder()
                .setQuery(
                        TextQuery.newBuilder()
                                .setMatch(
                                        MatchQuery.newBuilder()
                                                .setColumn(Column.newBuilder().addPath("word"))
                                                .setText(text)))
                .build();
    }

    private static List<Long> ids(SearchResult found) {
        List<Long> ids = new ArrayList<>();
        for (ArrowBatch batch : found.batches()) {
            FixedWidthVector column = (FixedWidthVector) batch.column(found.schema().indexOf("id"));
            for (int row = 0; row < batch.rows(); row++) {
                ids.add(column.getLong(row));
            }
        }
        return ids;
    }

    private static List<Long> ids(FoundRows found) {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < found.size(); i++) {
            ArrowBatch batch = found.batch(i);
            int column = batch.schema().indexOf("id");
            ids.add(((FixedWidthVector) batch.column(column)).getLong(found.row(i)));
        }
        return ids;
    }

    /** A table of points on a line. */
    private static Table points(String name, int from, int rows) throws Exception {
        Table table = Tables.named(name);
        write(table, from, rows);
        return table;
    }

    private static void write(Table table, int from, int rows) throws Exception {
        WriteHandle write =
                client.beginWrite(
                        BeginWriteRequest.newBuilder()
                                .setTable(table)
                                .setSchema(ByteString.copyFrom(POINTS.toIpc()))
                                .setCreate(CreateOptions.newBuilder())
                                .build());
        ArrowBatchBuilder batch = new ArrowBatchBuilder(write.schema());
        for (int i = from; i < from + rows; i++) {
            ((FixedWidthBuilder) batch.column(0)).appendLong(i);
            ((BinaryBuilder) batch.column(1)).append("word" + i);
            ((FixedSizeListBuilder) batch.column(2)).appendFloats(new float[] {i, 0});
            batch.endRow();
        }
        try (StageStream stream = client.stage(write, StageOptions.defaults())) {
            stream.write(batch);
            byte[] staged = stream.finish().bytes();
            CommitId id =
                    CommitId.newBuilder().setEpoch(UUID.randomUUID().toString()).setSeq(1).build();
            client.commit(
                    client.prepareCommit(id, write.bytes(), List.of(staged), Map.of())
                            .committable());
        }
    }
}
