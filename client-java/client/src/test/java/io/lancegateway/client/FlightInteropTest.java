package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.BinaryBuilder;
import io.lancegateway.client.arrow.BinaryVector;
import io.lancegateway.client.arrow.FixedSizeListBuilder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.client.arrow.ListVector;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.arrow.flight.FlightServer;
import org.apache.arrow.flight.FlightStream;
import org.apache.arrow.flight.Location;
import org.apache.arrow.flight.NoOpFlightProducer;
import org.apache.arrow.flight.PutResult;
import org.apache.arrow.flight.Ticket;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The streams of this client against the Flight server of arrow-java. */
@Timeout(60)
class FlightInteropTest {

    private static final int BATCHES = 5;
    private static final int ROWS = 1000;
    private static final ArrowSchema SCHEMA =
            ArrowSchema.of(
                    ArrowField.required("id", ArrowType.INT64),
                    ArrowField.nullable("word", ArrowType.UTF8),
                    ArrowField.nullable(
                            "vector",
                            ArrowType.fixedSizeList(3),
                            ArrowField.nullable("item", ArrowType.FLOAT32)));

    private final List<String> taken = new CopyOnWriteArrayList<>();
    private BufferAllocator allocator;
    private FlightServer server;

    @BeforeEach
    void start() throws Exception {
        allocator = new RootAllocator();
        server =
                FlightServer.builder(
                                allocator, Location.forGrpcInsecure("127.0.0.1", 0), new Producer())
                        .build()
                        .start();
    }

    @AfterEach
    void stop() throws Exception {
        server.close();
        allocator.close();
    }

    private GatewayClient client() {
        return GatewayClient.connect(
                GatewayOptions.builder("grpc://127.0.0.1:" + server.getPort()).build());
    }

    @Test
    void whatAFlightServerSendsIsRead() throws Exception {
        List<String> rows = new ArrayList<>();
        try (GatewayClient client = client();
                BatchStream stream = client.read(new byte[0], 0)) {
            assertThat(stream.schema()).isEqualTo(SCHEMA);
            ArrowBatch batch;
            while ((batch = stream.next()) != null) {
                FixedWidthVector ids = (FixedWidthVector) batch.column(0);
                BinaryVector words = (BinaryVector) batch.column(1);
                ListVector vectors = (ListVector) batch.column(2);
                FixedWidthVector floats = (FixedWidthVector) vectors.child();
                for (int i = 0; i < batch.rows(); i++) {
                    String word = words.isNull(i) ? null : words.getString(i);
                    float last = floats.getFloat(vectors.start(i) + 2);
                    rows.add(ids.getLong(i) + " " + word + " " + last);
                }
            }
        }
        assertThat(rows).isEqualTo(expected());
    }

    @Test
    void aFlightServerTakesWhatIsStaged() throws Exception {
        try (GatewayClient client = client();
                StageStream stream =
                        client.stage(
                                new WriteHandle(new byte[] {1}, SCHEMA), StageOptions.defaults())) {
            ArrowBatchBuilder builder = new ArrowBatchBuilder(SCHEMA);
            for (int id = 0; id < BATCHES * ROWS; id++) {
                ((FixedWidthBuilder) builder.column(0)).appendLong(id);
                BinaryBuilder words = (BinaryBuilder) builder.column(1);
                if (id % 7 == 0) {
                    words.appendNull();
                } else {
                    words.append("word " + id);
                }
                ((FixedSizeListBuilder) builder.column(2))
                        .appendFloats(new float[] {id, id, id + 0.5f});
                builder.endRow();
                if (builder.rows() == ROWS) {
                    stream.write(builder);
                }
            }
            assertThat(stream.finish().rows()).isEqualTo(BATCHES * ROWS);
        }
        assertThat(taken).isEqualTo(expected());
    }

    private static List<String> expected() {
        List<String> rows = new ArrayList<>();
        for (int id = 0; id < BATCHES * ROWS; id++) {
            rows.add(id + " " + (id % 7 == 0 ? null : "word " + id) + " " + (id + 0.5f));
        }
        return rows;
    }

    private final class Producer extends NoOpFlightProducer {

        @Override
        public void getStream(CallContext context, Ticket ticket, ServerStreamListener listener) {
            Schema schema;
            try (org.apache.arrow.vector.ipc.ReadChannel in =
                    new org.apache.arrow.vector.ipc.ReadChannel(
                            java.nio.channels.Channels.newChannel(
                                    new java.io.ByteArrayInputStream(SCHEMA.toIpc())))) {
                schema =
                        org.apache.arrow.vector.ipc.message.MessageSerializer.deserializeSchema(in);
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            try (VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
                listener.start(root);
                for (int batch = 0; batch < BATCHES; batch++) {
                    root.allocateNew();
                    BigIntVector ids = (BigIntVector) root.getVector(0);
                    VarCharVector words = (VarCharVector) root.getVector(1);
                    FixedSizeListVector vectors = (FixedSizeListVector) root.getVector(2);
                    Float4Vector floats = (Float4Vector) vectors.getDataVector();
                    for (int i = 0; i < ROWS; i++) {
                        int id = batch * ROWS + i;
                        ids.setSafe(i, id);
                        if (id % 7 == 0) {
                            words.setNull(i);
                        } else {
                            words.setSafe(i, ("word " + id).getBytes());
                        }
                        vectors.setNotNull(i);
                        floats.setSafe(i * 3 + 2, id + 0.5f);
                    }
                    root.setRowCount(ROWS);
                    listener.putNext();
                }
                listener.completed();
            }
        }

        @Override
        public Runnable acceptPut(
                CallContext context, FlightStream stream, StreamListener<PutResult> acks) {
            return () -> {
                VectorSchemaRoot root = stream.getRoot();
                while (stream.next()) {
                    for (int i = 0; i < root.getRowCount(); i++) {
                        Object word = root.getVector(1).getObject(i);
                        Object vector = root.getVector(2).getObject(i);
                        taken.add(
                                root.getVector(0).getObject(i)
                                        + " "
                                        + word
                                        + " "
                                        + ((List<?>) vector).get(2));
                    }
                }
                byte[] ack = FakeGateway.ack(taken.size(), true).getAppMetadata().toByteArray();
                try (ArrowBuf buffer = allocator.buffer(ack.length)) {
                    buffer.writeBytes(ack);
                    acks.onNext(PutResult.metadata(buffer));
                }
                acks.onCompleted();
            };
        }
    }
}
