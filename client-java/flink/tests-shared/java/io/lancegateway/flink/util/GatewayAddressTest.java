package io.lancegateway.flink.util;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class GatewayAddressTest {

    private static final GatewayAddress UNSET = new GatewayAddress(null);

    @Test
    void theTableWinsOverTheEnvironment() {
        assertThat(new GatewayAddress("grpc://a:1").resolve("grpc://b:2")).isEqualTo("grpc://a:1");
    }

    @Test
    void theEnvironmentOfTheProcessWinsOverTheDefault() {
        assertThat(UNSET.resolve("grpc://b:2")).isEqualTo("grpc://b:2");
    }

    @Test
    void withoutBothTheSidecarIsMeant() {
        assertThat(UNSET.resolve(null)).isEqualTo("grpc://localhost:8815");
        assertThat(UNSET.resolve("")).isEqualTo("grpc://localhost:8815");
    }
}
