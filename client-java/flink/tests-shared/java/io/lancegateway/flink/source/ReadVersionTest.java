package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReadVersionTest {

    @ParameterizedTest
    @CsvSource({
        "2024-01-31T12:00:00Z, 2024-01-31T12:00:00Z",
        "2024-01-31T12:00:00.5+02:00, 2024-01-31T10:00:00.5Z",
        "2024-01-31T12:00:00, 2024-01-31T12:00:00Z",
        "2024-01-31 12:00, 2024-01-31T12:00:00Z",
        "2024-01-31, 2024-01-31T00:00:00Z"
    })
    void aTimeWithoutZoneIsInUtc(String text, Instant expected) {
        assertThat(ReadVersion.parseTime(text)).isEqualTo(expected);
    }

    @Test
    void whatIsNoTimeIsRefused() {
        assertThatThrownBy(() -> ReadVersion.parseTime("yesterday"))
                .hasMessageContaining("'yesterday' is no ISO-8601 time");
    }
}
