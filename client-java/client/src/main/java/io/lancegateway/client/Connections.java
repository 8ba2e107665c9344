package io.lancegateway.client;

import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollIoHandler;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The connections of all clients of one class loader that have the same options, with the threads
 * that serve them. The last client that is closed ends both.
 *
 * <p>Calls without a stream share one connection. A stream has one for itself: one thread on each
 * side serves a connection, and a put that the gateway does not take would use up the window of the
 * connection and hold up the commit behind it.
 */
final class Connections {

    /** Connections that are kept for the next stream. */
    private static final int MAX_IDLE = 8;

    /** A connection without a call is closed after this, and opened again when needed. */
    private static final long IDLE_SECONDS = 60;

    private static final int MAX_THREADS = 4;
    private static final long CLOSE_SECONDS = 5;
    private static final String USER_AGENT = "lance-gateway-java";

    private static final Map<GatewayOptions, Connections> SHARED = new HashMap<>();

    private final GatewayOptions options;
    private final Address address;
    private final EventLoopGroup eventLoops;
    private final ExecutorService resolver;
    private final ManagedChannel calls;
    private final Deque<ManagedChannel> idle = new ArrayDeque<>();
    private final Set<ManagedChannel> inUse = new HashSet<>();
    private boolean closed;
    private int users;

    private Connections(GatewayOptions options) {
        this.options = options;
        this.address = Address.parse(options.uri());
        int threads = Math.min(MAX_THREADS, Runtime.getRuntime().availableProcessors());
        DefaultThreadFactory factory = new DefaultThreadFactory("lance-gateway-client", true);
        this.eventLoops =
                new MultiThreadIoEventLoopGroup(
                        threads,
                        factory,
                        address.isUnix() ? EpollIoHandler.newFactory() : NioIoHandler.newFactory());
        ThreadPoolExecutor executor =
                new ThreadPoolExecutor(
                        1,
                        1,
                        1,
                        TimeUnit.SECONDS,
                        new LinkedBlockingQueue<>(),
                        new DefaultThreadFactory("lance-gateway-resolver", true));
        executor.allowCoreThreadTimeOut(true);
        this.resolver = executor;
        this.calls = newChannel();
    }

    static Connections acquire(GatewayOptions options) {
        synchronized (SHARED) {
            Connections connections = SHARED.computeIfAbsent(options, Connections::new);
            connections.users++;
            return connections;
        }
    }

    /** Gives up the use of these connections. Waits for their threads to end if it was the last. */
    void release() {
        synchronized (SHARED) {
            users--;
            if (users > 0) {
                return;
            }
            SHARED.remove(options);
        }
        close();
    }

    GatewayOptions options() {
        return options;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** For calls without a stream. */
    ManagedChannel calls() {
        return calls;
    }

    /** A connection for one stream; {@link #giveBack} is due. */
    synchronized ManagedChannel take() {
        if (closed) {
            throw new IllegalStateException("the client is closed");
        }
        ManagedChannel channel = idle.pollFirst();
        if (channel == null) {
            channel = newChannel();
        }
        inUse.add(channel);
        return channel;
    }

    /**
     * @param healthy whether another stream may use the connection; a broken one would wait before
     *     it connects again
     */
    void giveBack(ManagedChannel channel, boolean healthy) {
        synchronized (this) {
            inUse.remove(channel);
            if (healthy && !closed && idle.size() < MAX_IDLE) {
                idle.addFirst(channel);
                return;
            }
        }
        channel.shutdownNow();
    }

    /** Runs something in a thread of these connections, unless they are closed before. */
    void later(long nanos, Runnable task) {
        eventLoops.schedule(task, nanos, TimeUnit.NANOSECONDS);
    }

    private void close() {
        Set<ManagedChannel> channels;
        synchronized (this) {
            closed = true;
            channels = new HashSet<>(inUse);
            channels.addAll(idle);
            channels.add(calls);
            inUse.clear();
            idle.clear();
        }
        channels.forEach(ManagedChannel::shutdownNow);
        boolean interrupted = false;
        for (ManagedChannel channel : channels) {
            try {
                channel.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        resolver.shutdownNow();
        eventLoops
                .shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS)
                .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private ManagedChannel newChannel() {
        // The shared executor would outlive us; callbacks only hand over, so they need none.
        Executor direct = Runnable::run;
        return address.builder()
                .eventLoopGroup(eventLoops)
                .executor(direct)
                .offloadExecutor(resolver)
                .usePlaintext()
                .userAgent(USER_AGENT)
                .intercept(new StorageOptionsHeader(options.storageOptions()))
                // Retries keep what was sent in memory; we repeat what may be repeated ourselves.
                .disableRetry()
                .disableServiceConfigLookUp()
                .idleTimeout(IDLE_SECONDS, TimeUnit.SECONDS)
                .maxInboundMessageSize(options.maxMessageBytes())
                .flowControlWindow(options.flowControlWindowBytes())
                .keepAliveTime(options.keepAlive().toMillis(), TimeUnit.MILLISECONDS)
                .withOption(
                        ChannelOption.CONNECT_TIMEOUT_MILLIS,
                        (int) Math.min(options.connectTimeout().toMillis(), Integer.MAX_VALUE))
                .build();
    }

    /** Where the gateway listens. */
    private static final class Address {

        private static final int DEFAULT_PORT = 8815;

        /** Null for TCP. */
        private final String path;

        private final String host;
        private final int port;

        private Address(String path, String host, int port) {
            this.path = path;
            this.host = host;
            this.port = port;
        }

        static Address parse(String text) {
            URI uri;
            try {
                uri = new URI(text);
            } catch (URISyntaxException e) {
                throw invalid(text, e);
            }
            if ("grpc".equals(uri.getScheme()) && uri.getHost() != null && !hasMore(uri)) {
                int port = uri.getPort() < 0 ? DEFAULT_PORT : uri.getPort();
                return new Address(null, uri.getHost(), port);
            }
            if ("grpc+unix".equals(uri.getScheme())
                    && (uri.getRawAuthority() == null)
                    && uri.getPath() != null
                    && uri.getPath().startsWith("/")) {
                if (!Epoll.isAvailable()) {
                    throw new IllegalArgumentException(
                            "grpc+unix needs Linux, use grpc://HOST:PORT",
                            Epoll.unavailabilityCause());
                }
                return new Address(uri.getPath(), null, 0);
            }
            throw invalid(text, null);
        }

        private static boolean hasMore(URI uri) {
            return uri.getUserInfo() != null
                    || uri.getQuery() != null
                    || uri.getFragment() != null
                    || !(uri.getPath().isEmpty() || uri.getPath().equals("/"));
        }

        private static IllegalArgumentException invalid(String text, Throwable cause) {
            return new IllegalArgumentException(
                    "'" + text + "' is not grpc://HOST:PORT or grpc+unix:///PATH", cause);
        }

        boolean isUnix() {
            return path != null;
        }

        NettyChannelBuilder builder() {
            if (isUnix()) {
                // The path is no authority that a server would take.
                return NettyChannelBuilder.forAddress(new DomainSocketAddress(path))
                        .channelType(EpollDomainSocketChannel.class)
                        .overrideAuthority("localhost");
            }
            return NettyChannelBuilder.forAddress(host, port)
                    .channelType(NioSocketChannel.class)
                    .proxyDetector(target -> null);
        }
    }
}
