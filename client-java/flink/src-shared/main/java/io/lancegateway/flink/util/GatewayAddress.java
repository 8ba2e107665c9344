package io.lancegateway.flink.util;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.GatewayOptions;
import java.io.Serializable;
import java.util.Objects;
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

    public GatewayAddress(@Nullable String uri) {
        this.uri = uri;
    }

    /** Connects; to be called in the process that uses the connection. */
    public GatewayClient connect() {
        return GatewayClient.connect(
                GatewayOptions.builder(resolve(System.getenv(ENVIRONMENT))).build());
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
        return other instanceof GatewayAddress && Objects.equals(uri, ((GatewayAddress) other).uri);
    }

    @Override
    public int hashCode() {
        return Objects.hashCode(uri);
    }
}
