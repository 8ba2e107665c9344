package io.lancegateway.flink.util;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.flink.table.api.ValidationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TablePathTest {

    @Test
    void aPlainNameIsATableBelowTheWarehouse() {
        assertThat(TablePath.parse("vectors").getName().getPartsList()).containsExactly("vectors");
    }

    @Test
    void dotsSeparateNamespaces() {
        assertThat(TablePath.parse("a.b.vectors").getName().getPartsList())
                .containsExactly("a", "b", "vectors");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/data/vectors", "s3://bucket/vectors.lance", "./vectors", "memory:x"})
    void whatHasASlashOrASchemeIsAUri(String path) {
        assertThat(TablePath.parse(path).getUri()).isEqualTo(path);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a..b", ".a", "a.", " "})
    void anEmptyPartIsRefused(String path) {
        assertThatThrownBy(() -> TablePath.parse(path))
                .isInstanceOf(ValidationException.class)
                .hasMessageContaining("is no table");
    }
}
