package io.lancegateway.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A network between client and gateway that can be cut. */
final class Wire implements AutoCloseable {

    private final ServerSocket listener;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();

    Wire(int target) {
        this.target = target;
        try {
            this.listener = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        start(this::accept);
    }

    String uri() {
        return "grpc://127.0.0.1:" + listener.getLocalPort();
    }

    /** Cuts what is connected; new connections work. */
    void cut() {
        sockets.forEach(Wire::close);
        sockets.clear();
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        cut();
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                sockets.add(client);
                sockets.add(server);
                start(() -> copy(client, server));
                start(() -> copy(server, client));
            } catch (IOException e) {
                // Closed: the loop ends.
            }
        }
    }

    private static void copy(Socket from, Socket to) {
        try (InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream()) {
            in.transferTo(out);
        } catch (IOException e) {
            // Cut.
        }
    }

    private static void close(Socket socket) {
        try (socket) {
            socket.setSoLinger(true, 0);
        } catch (IOException e) {
            // The other side closed it.
        }
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "test-wire");
        thread.setDaemon(true);
        thread.start();
    }
}
