package io.lancegateway.flink.testing;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.GatewayOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A real gateway over a folder of its own. */
public final class GatewayProcess implements AutoCloseable {

    /** Names the binary; without it, tests that need a gateway are not run. */
    public static final String BINARY = "LANCE_GATEWAY_BIN";

    private static final Pattern READY =
            Pattern.compile("ready: grpc ([0-9.]+:[0-9]+), admin ([0-9.]+:[0-9]+)");

    private final Process process;
    private final Path folder;
    private final String uri;
    private final String admin;

    private GatewayProcess(Process process, Path folder, String uri, String admin) {
        this.process = process;
        this.folder = folder;
        this.uri = uri;
        this.admin = admin;
    }

    /** Starts one on a free port, and waits until it serves. */
    public static GatewayProcess start(String... arguments) {
        try {
            Path folder = Files.createTempDirectory("lance-gateway-test");
            List<String> command = new ArrayList<>();
            command.add(System.getenv(BINARY));
            command.addAll(List.of("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"));
            command.addAll(List.of("--warehouse", folder.resolve("warehouse").toString()));
            command.addAll(List.of(arguments));
            Files.createDirectory(folder.resolve("warehouse"));
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectError(folder.resolve("log").toFile());
            // The gateway takes variables of this prefix for options of its own.
            builder.environment().keySet().removeIf(name -> name.startsWith("LANCE_GATEWAY_"));
            Process process = builder.start();
            BufferedReader out =
                    new BufferedReader(
                            new InputStreamReader(
                                    process.getInputStream(), StandardCharsets.UTF_8));
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                Matcher ready = READY.matcher(line);
                if (ready.find()) {
                    GatewayProcess gateway =
                            new GatewayProcess(
                                    process, folder, "grpc://" + ready.group(1), ready.group(2));
                    Runtime.getRuntime().addShutdownHook(new Thread(gateway::close));
                    return gateway;
                }
            }
            throw new IllegalStateException(
                    "the gateway did not start: " + Files.readString(folder.resolve("log")));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    public String uri() {
        return uri;
    }

    public Path warehouse() {
        return folder.resolve("warehouse");
    }

    public GatewayClient connect() {
        return GatewayClient.connect(GatewayOptions.builder(uri).build());
    }

    /**
     * Whoever comes next to this fault point waits there. For one that was started with {@code
     * --faults}.
     */
    public void hold(String point) throws IOException, InterruptedException {
        fault(point, "hold");
    }

    public void release(String point) throws IOException, InterruptedException {
        fault(point, "pass");
    }

    private void fault(String point, String action) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://" + admin + "/faults/" + point))
                        .PUT(HttpRequest.BodyPublishers.ofString(action))
                        .build();
        int status =
                HttpClient.newHttpClient()
                        .send(request, HttpResponse.BodyHandlers.discarding())
                        .statusCode();
        if (status != 200) {
            throw new IOException("the gateway has no fault points: " + status);
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException | UncheckedIOException leftOver) {
            // The folder is temporary.
        }
    }
}
