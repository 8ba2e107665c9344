package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.proto.v1.CountRowsRequest;
import io.lancegateway.proto.v1.CountRowsResponse;
import java.io.File;
import java.lang.ref.WeakReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A client leaves neither threads nor its class loader behind, as a job in a session cluster must.
 */
@Timeout(120)
class LeakTest {

    @Test
    void closingTheLastClientEndsItsThreads() throws Exception {
        try (FakeGateway gateway = gateway()) {
            Set<Thread> before = threads();
            new UseEverything(gateway.uri()).call();
            Eventually.holds(
                    "the threads of before and no others run",
                    () -> {
                        Set<Thread> now = threads();
                        now.removeAll(before);
                        now.removeIf(thread -> !thread.getName().startsWith("lance-gateway"));
                        return now.isEmpty();
                    });
        }
    }

    @Test
    void theClassLoaderOfAClosedClientIsCollectedThoughItsCallerLives() throws Exception {
        ExecutorService caller = Executors.newSingleThreadExecutor();
        try (FakeGateway gateway = gateway()) {
            WeakReference<ClassLoader> loader =
                    caller.submit(() -> useInOwnLoader(gateway.uri())).get();
            Eventually.holds(
                    "the class loader is collected",
                    () -> {
                        System.gc();
                        return loader.get() == null;
                    });
        } finally {
            caller.shutdownNow();
        }
    }

    private static WeakReference<ClassLoader> useInOwnLoader(String uri) throws Exception {
        try (URLClassLoader loader =
                new URLClassLoader(classPath(), ClassLoader.getPlatformClassLoader())) {
            Class<?> use = loader.loadClass(UseEverything.class.getName());
            assertThat(use).isNotSameAs(UseEverything.class);
            ((Callable<?>) use.getDeclaredConstructor(String.class).newInstance(uri)).call();
            return new WeakReference<>(loader);
        }
    }

    private static URL[] classPath() {
        String path =
                System.getProperty(
                        "surefire.test.class.path", System.getProperty("java.class.path"));
        return Arrays.stream(path.split(File.pathSeparator))
                .map(
                        entry -> {
                            try {
                                return new File(entry).toURI().toURL();
                            } catch (MalformedURLException e) {
                                throw new AssertionError(e);
                            }
                        })
                .toArray(URL[]::new);
    }

    private static Set<Thread> threads() {
        return new HashSet<>(Thread.getAllStackTraces().keySet());
    }

    private static FakeGateway gateway() {
        FakeGateway gateway = FakeGateway.onTcp();
        gateway.on(Methods.COUNT_ROWS, request -> CountRowsResponse.getDefaultInstance());
        gateway.onScan(
                (ticket, out) -> {
                    out.onNext(FakeGateway.schemaMessage());
                    out.onNext(FakeGateway.batchMessage(0, 10));
                    out.onCompleted();
                });
        gateway.onPut(
                out ->
                        new io.grpc.stub.StreamObserver<>() {
                            @Override
                            public void onNext(io.lancegateway.proto.flight.FlightData message) {}

                            @Override
                            public void onError(Throwable error) {}

                            @Override
                            public void onCompleted() {
                                out.onNext(FakeGateway.ack(10, true));
                                out.onCompleted();
                            }
                        });
        return gateway;
    }

    /** A call, a scan and a put. */
    public static final class UseEverything implements Callable<Object> {

        private final String uri;

        public UseEverything(String uri) {
            this.uri = uri;
        }

        @Override
        public Object call() throws Exception {
            GatewayOptions options = GatewayOptions.builder(uri).build();
            try (GatewayClient client = GatewayClient.connect(options)) {
                client.countRows(CountRowsRequest.getDefaultInstance());
                try (BatchStream stream = client.read(new byte[0], 0)) {
                    while (stream.next() != null) {
                        // All rows.
                    }
                }
                WriteHandle write = new WriteHandle(new byte[0], FakeGateway.SCHEMA);
                try (StageStream stream = client.stage(write, StageOptions.defaults())) {
                    ArrowBatchBuilder builder = new ArrowBatchBuilder(FakeGateway.SCHEMA);
                    FakeGateway.fill(builder, 0, 10);
                    stream.write(builder);
                    stream.finish();
                }
            }
            return null;
        }
    }
}
