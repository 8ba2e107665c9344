package io.lancegateway.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class ReasonTest {

    /** Written by hand from, and checked against, the same file as the gateway's table. */
    private static final Path GOLDEN = Path.of("../../tests/golden/errors.json");

    @Test
    void theTableIsTheOneOfTheGateway() throws IOException {
        List<String> golden = new ArrayList<>();
        for (JsonNode row : new ObjectMapper().readTree(GOLDEN.toFile())) {
            golden.add(
                    String.join(
                            " ",
                            row.get("reason").asText(),
                            row.get("code").asText(),
                            row.get("retry").asText()));
        }
        List<String> ours =
                Arrays.stream(Reason.values())
                        .filter(reason -> reason != Reason.UNKNOWN)
                        .map(
                                reason ->
                                        String.join(
                                                " ",
                                                reason.name(),
                                                reason.code().name(),
                                                reason.retry().name().toLowerCase(Locale.ROOT)))
                        .collect(Collectors.toList());
        assertThat(ours).isEqualTo(golden);
    }

    @Test
    void aReasonOfANewerGatewayIsUnknown() {
        assertThat(Reason.of("MOON_TOO_CLOSE")).isEqualTo(Reason.UNKNOWN);
        assertThat(Reason.of("")).isEqualTo(Reason.UNKNOWN);
        assertThat(Reason.of("OVERLOADED")).isEqualTo(Reason.OVERLOADED);
    }
}
