package io.lancegateway.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The gateway itself, with a warehouse of its own. */
final class GatewayProcess implements AutoCloseable {

    private static final Pattern READY = Pattern.compile("ready: grpc ([0-9.:]+)");

    private final Process process;
    private final Path socket;
    private final String address;

    GatewayProcess(Path dir) {
        socket = dir.resolve("gateway.sock");
        ProcessBuilder builder =
                new ProcessBuilder(
                        System.getenv("LANCE_GATEWAY_BIN"),
                        "--listen",
                        "127.0.0.1:0",
                        "--listen",
                        "unix:" + socket,
                        "--admin-listen",
                        "127.0.0.1:0",
                        "--warehouse",
                        dir.resolve("warehouse").toString());
        // The gateway refuses variables of this name that are no option of its own.
        builder.environment().keySet().removeIf(name -> name.startsWith("LANCE_GATEWAY_"));
        Path log = dir.resolve("gateway.log");
        builder.redirectError(log.toFile());
        try {
            process = builder.start();
            address = awaitReady(log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String awaitReady(Path log) throws IOException {
        BufferedReader out =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        String line;
        while ((line = out.readLine()) != null) {
            Matcher ready = READY.matcher(line);
            if (ready.find()) {
                return ready.group(1);
            }
        }
        throw new IOException("the gateway did not start: " + Files.readString(log));
    }

    String uri() {
        return "grpc://" + address;
    }

    String unixUri() {
        return "grpc+unix://" + socket;
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
