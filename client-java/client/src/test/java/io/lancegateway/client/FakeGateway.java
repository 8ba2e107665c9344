package io.lancegateway.client;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Attributes;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServerTransportFilter;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollIoHandler;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import io.lancegateway.proto.flight.FlightData;
import io.lancegateway.proto.flight.PutResult;
import io.lancegateway.proto.flight.Ticket;
import io.lancegateway.proto.v1.ScanTicket;
import io.lancegateway.proto.v1.StageAck;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * A gRPC server on a real socket that answers as a test tells it, and remembers what it was asked.
 */
final class FakeGateway implements AutoCloseable {

    /** One column `id` of INT64. */
    static final ArrowSchema SCHEMA = ArrowSchema.of(ArrowField.required("id", ArrowType.INT64));

    private static final List<MethodDescriptor<?, ?>> UNARY =
            List.of(
                    Methods.GET_STATUS,
                    Methods.CREATE_TABLE,
                    Methods.DESCRIBE_TABLE,
                    Methods.COUNT_ROWS,
                    Methods.HOLD_VERSION,
                    Methods.RELEASE_VERSION,
                    Methods.BEGIN_WRITE,
                    Methods.PREPARE_COMMIT,
                    Methods.COMMIT,
                    Methods.ABORT,
                    Methods.GET_FLIGHT_INFO);

    private final Map<String, Function<Object, Object>> answers = new HashMap<>();
    private final List<Object> requests = new CopyOnWriteArrayList<>();
    private final AtomicInteger connections = new AtomicInteger();
    private final Server server;
    private final int port;
    private final MultiThreadIoEventLoopGroup loops;
    private volatile BiConsumer<ScanTicket, ServerCallStreamObserver<FlightData>> scans;
    private volatile Function<ServerCallStreamObserver<PutResult>, StreamObserver<FlightData>> puts;
    private volatile Function<StreamObserver<FlightData>, StreamObserver<FlightData>> exchanges;

    private FakeGateway(NettyServerBuilder builder, MultiThreadIoEventLoopGroup loops) {
        this.loops = loops;
        Map<String, ServerServiceDefinition.Builder> services = new HashMap<>();
        for (MethodDescriptor<?, ?> method : UNARY) {
            addUnary(services, method);
        }
        ServerServiceDefinition.Builder flight =
                services.get("arrow.flight.protocol.FlightService");
        flight.addMethod(
                flightMethod(
                        "DoGet",
                        MethodType.SERVER_STREAMING,
                        Ticket.getDefaultInstance(),
                        FlightData.getDefaultInstance()),
                ServerCalls.asyncServerStreamingCall(this::scan));
        flight.addMethod(
                flightMethod(
                        "DoPut",
                        MethodType.BIDI_STREAMING,
                        FlightData.getDefaultInstance(),
                        PutResult.getDefaultInstance()),
                ServerCalls.asyncBidiStreamingCall(
                        observer -> puts.apply((ServerCallStreamObserver<PutResult>) observer)));
        flight.addMethod(
                flightMethod(
                        "DoExchange",
                        MethodType.BIDI_STREAMING,
                        FlightData.getDefaultInstance(),
                        FlightData.getDefaultInstance()),
                ServerCalls.asyncBidiStreamingCall(observer -> exchanges.apply(observer)));
        services.values().forEach(service -> builder.addService(service.build()));
        builder.addTransportFilter(
                new ServerTransportFilter() {
                    @Override
                    public Attributes transportReady(Attributes attributes) {
                        connections.incrementAndGet();
                        return attributes;
                    }
                });
        try {
            this.server = builder.maxInboundMessageSize(64 << 20).build().start();
            this.port = server.getPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static FakeGateway onTcp() {
        return onTcp(0);
    }

    static FakeGateway onTcp(int port) {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        return new FakeGateway(NettyServerBuilder.forAddress(address), null);
    }

    static FakeGateway onUnix(Path path) {
        MultiThreadIoEventLoopGroup loops =
                new MultiThreadIoEventLoopGroup(2, EpollIoHandler.newFactory());
        return new FakeGateway(
                NettyServerBuilder.forAddress(new DomainSocketAddress(path.toFile()))
                        .channelType(EpollServerDomainSocketChannel.class)
                        .bossEventLoopGroup(loops)
                        .workerEventLoopGroup(loops),
                loops);
    }

    private <Q, R> void addUnary(
            Map<String, ServerServiceDefinition.Builder> services, MethodDescriptor<Q, R> method) {
        services.computeIfAbsent(method.getServiceName(), ServerServiceDefinition::builder)
                .addMethod(
                        method,
                        ServerCalls.asyncUnaryCall(
                                (request, observer) -> answer(method, request, observer)));
    }

    @SuppressWarnings("unchecked")
    private <Q, R> void answer(
            MethodDescriptor<Q, R> method, Q request, StreamObserver<R> observer) {
        requests.add(request);
        R response;
        try {
            response = (R) answers.get(method.getFullMethodName()).apply(request);
        } catch (StatusRuntimeException e) {
            observer.onError(e);
            return;
        }
        if (response != null) {
            observer.onNext(response);
            observer.onCompleted();
        }
    }

    private void scan(Ticket ticket, StreamObserver<FlightData> observer) {
        try {
            ScanTicket scan = ScanTicket.parseFrom(ticket.getTicket());
            requests.add(scan);
            scans.accept(scan, (ServerCallStreamObserver<FlightData>) observer);
        } catch (com.google.protobuf.InvalidProtocolBufferException e) {
            throw new UncheckedIOException(e);
        } catch (StatusRuntimeException e) {
            observer.onError(e);
        }
    }

    private static <Q extends com.google.protobuf.Message, R extends com.google.protobuf.Message>
            MethodDescriptor<Q, R> flightMethod(
                    String name, MethodType type, Q request, R response) {
        return MethodDescriptor.newBuilder(
                        ProtoUtils.marshaller(request), ProtoUtils.marshaller(response))
                .setType(type)
                .setFullMethodName("arrow.flight.protocol.FlightService/" + name)
                .build();
    }

    /** Answers a call; null: never; a StatusRuntimeException: with that error. */
    @SuppressWarnings("unchecked")
    <Q, R> void on(MethodDescriptor<Q, R> method, Function<Q, R> answer) {
        answers.put(method.getFullMethodName(), request -> answer.apply((Q) request));
    }

    void onScan(BiConsumer<ScanTicket, ServerCallStreamObserver<FlightData>> scans) {
        this.scans = scans;
    }

    void onPut(Function<ServerCallStreamObserver<PutResult>, StreamObserver<FlightData>> puts) {
        this.puts = puts;
    }

    void onExchange(Function<StreamObserver<FlightData>, StreamObserver<FlightData>> exchanges) {
        this.exchanges = exchanges;
    }

    List<Object> requests() {
        return requests;
    }

    /** Connections that were ever made. */
    int connections() {
        return connections.get();
    }

    int port() {
        return port;
    }

    String uri() {
        return "grpc://127.0.0.1:" + port();
    }

    @Override
    public void close() {
        server.shutdownNow();
        try {
            server.awaitTermination();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (loops != null) {
            loops.shutdownGracefully(0, 1, java.util.concurrent.TimeUnit.SECONDS)
                    .syncUninterruptibly();
        }
    }

    /** An error as the gateway sends it. */
    static StatusRuntimeException error(Reason reason) {
        return error(reason, Duration.ZERO);
    }

    static StatusRuntimeException error(Reason reason, Duration retryDelay) {
        com.google.rpc.Status.Builder status =
                com.google.rpc.Status.newBuilder()
                        .setCode(reason.code().value())
                        .setMessage("told by the test")
                        .addDetails(
                                Any.pack(
                                        ErrorInfo.newBuilder()
                                                .setDomain("lance-gateway")
                                                .setReason(reason.name())
                                                .putMetadata("request_id", "r-1")
                                                .build()));
        if (!retryDelay.isZero()) {
            com.google.protobuf.Duration delay =
                    com.google.protobuf.Duration.newBuilder()
                            .setSeconds(retryDelay.getSeconds())
                            .setNanos(retryDelay.getNano())
                            .build();
            status.addDetails(Any.pack(RetryInfo.newBuilder().setRetryDelay(delay).build()));
        }
        return StatusProto.toStatusRuntimeException(status.build());
    }

    static FlightData schemaMessage() {
        return FlightData.newBuilder()
                .setDataHeader(ByteString.copyFrom(SCHEMA.toMessage()))
                .build();
    }

    /** Rows with the ids from `first` on. */
    static FlightData batchMessage(long first, int rows) {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(SCHEMA);
        fill(builder, first, rows);
        return message(builder.encode());
    }

    static void fill(ArrowBatchBuilder builder, long first, int rows) {
        for (int i = 0; i < rows; i++) {
            ((FixedWidthBuilder) builder.column(0)).appendLong(first + i);
            builder.endRow();
        }
    }

    static FlightData message(EncodedBatch batch) {
        ByteString.Output body = ByteString.newOutput((int) batch.bodySize());
        try {
            batch.writeBody(body);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return FlightData.newBuilder()
                .setDataHeader(ByteString.copyFrom(batch.header()))
                .setDataBody(body.toByteString())
                .build();
    }

    static PutResult ack(long rows, boolean done) {
        StageAck.Builder ack = StageAck.newBuilder().setNumRows(rows).setNumBytes(rows * 8);
        if (done) {
            ack.setDone(true).setNumDurableRows(rows);
            if (rows > 0) {
                ack.setStaged(ByteString.copyFromUtf8("staged " + rows));
            }
        }
        return PutResult.newBuilder().setAppMetadata(ack.build().toByteString()).build();
    }
}
