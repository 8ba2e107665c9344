package org.apache.flink.connector.lance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.lancegateway.flink.testing.FlinkAndGateway;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.List;
import org.apache.flink.connector.lance.LanceIndexBuilder.IndexBuildResult;
import org.apache.flink.connector.lance.LanceVectorSearch.SearchResult;
import org.apache.flink.connector.lance.config.LanceOptions.IndexType;
import org.apache.flink.connector.lance.config.LanceOptions.MetricType;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.Test;

/** Programs that name the classes of other connectors. */
class AliasesIT extends FlinkAndGateway {

    @Test
    void anIndexIsBuiltAndSearchedByTheOldNames() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(1);
        declare(env, table, "id BIGINT, v ARRAY<FLOAT>");
        numbers(env, "n_" + table, 1, 300);
        insert(
                env,
                String.format(
                        "INSERT INTO %s SELECT n, ARRAY[CAST(n AS FLOAT), CAST(0 AS FLOAT)] FROM"
                                + " n_%s",
                        table, table));
        LanceIndexBuilder.Builder builder =
                LanceIndexBuilder.builder()
                        .datasetPath(table)
                        .gatewayUri(gateway().uri())
                        .columnName("v")
                        .indexType(IndexType.IVF_FLAT)
                        .metricType(MetricType.L2)
                        .numPartitions(1)
                        .numSubVectors(null);
        try (LanceIndexBuilder index = copy(builder.build())) {
            IndexBuildResult result = index.buildIndex();
            assertThat(result.getErrorMessage()).isNull();
            assertThat(result.isSuccess()).isTrue();
            assertThat(result.getIndexType()).isEqualTo(IndexType.IVF_FLAT);
            assertThat(result.getColumnName()).isEqualTo("v");
            IndexBuildResult again = index.buildIndex();
            assertThat(again.isSuccess()).isFalse();
            assertThat(again.getErrorMessage()).contains("INDEX_ALREADY_EXISTS");
        }

        LanceVectorSearch.Builder near =
                LanceVectorSearch.builder()
                        .datasetPath(table)
                        .gatewayUri(gateway().uri())
                        .columnName("v")
                        .metricType(MetricType.L2)
                        .nprobes(20)
                        .ef(100)
                        .refineFactor(null);
        try (LanceVectorSearch search = copy(near.build())) {
            search.open();
            List<SearchResult> found = search.search(new float[] {7, 1}, 2);
            assertThat(found).extracting(SearchResult::getDistance).containsExactly(1.0, 2.0);
            assertThat(found.get(0).getRowData().getLong(0)).isEqualTo(7);
            assertThat(found.get(0).getSimilarity()).isEqualTo(0.5);
            assertThat(search.search(new float[] {7, 1}, 1, "id > 100"))
                    .extracting(result -> result.getRowData().getLong(0))
                    .containsExactly(101L);
            assertThat(search.getRowType().getFieldNames()).containsExactly("id", "v");
            assertThatThrownBy(() -> search.search(new float[] {7}, 1))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("INVALID_ARGUMENT");
        }
    }

    /** What a job graph does to it. */
    @SuppressWarnings("unchecked")
    private static <T extends Serializable> T copy(T object) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(object);
        }
        try (ObjectInputStream in =
                new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            return (T) in.readObject();
        }
    }
}
