package io.lancegateway.flink.util;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.GatewayOptions;
import java.io.Serializable;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import javax.annotation.Nullable;

/**
 * Where a task finds its gateway. Without a URI each process looks into its own environment, so
 * that every TaskManager uses the sidecar beside it.
 */
public final class GatewayAddress implements Serializable {

    private static final long serialVersionUID = 1L;

    /** Where the gateway is, if a table does not say. */
    public static final String ENVIRONMENT = "LANCE_GATEWAY_URI";

    @Nullable private final String uri;

    /** Keys are among them: never in a plan, a log or the state. */
    private final TreeMap<String, String> storageOptions;

    public GatewayAddress(@Nullable String uri) {
        this(uri, Map.of());
    }

    /**
     * @param storageOptions how the store of the table is reached, if not as the gateway does
     */
    public GatewayAddress(@Nullable String uri, Map<String, String> storageOptions) {
        this.uri = uri;
        this.storageOptions = new TreeMap<>(storageOptions);
    }

    /** Connects; to be called in the process that uses the connection. */
    public GatewayClient connect() {
        return GatewayClient.connect(
                GatewayOptions.builder(resolve(System.getenv(ENVIRONMENT)))
                        .storageOptions(storageOptions)
                        .build());
    }

    /**
     * @param environment what the process has in {@link #ENVIRONMENT}
     */
    String resolve(@Nullable String environment) {
        if (uri != null) {
            return uri;
        }
        return environment == null || environment.isEmpty()
                ? GatewayOptions.DEFAULT_URI
                : environment;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof GatewayAddress
                && Objects.equals(uri, ((GatewayAddress) other).uri)
                && storageOptions.equals(((GatewayAddress) other).storageOptions);
    }

    @Override
    public int hashCode() {
        return Objects.hash(uri, storageOptions);
    }
}
