package io.lancegateway.flink.search;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.SearchResult;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.flink.source.RowReader;
import io.lancegateway.proto.v1.FullTextQuery;
import io.lancegateway.proto.v1.FullTextSearchRequest;
import io.lancegateway.proto.v1.HybridQuery;
import io.lancegateway.proto.v1.HybridSearchRequest;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Search;
import io.lancegateway.proto.v1.Vector;
import io.lancegateway.proto.v1.VectorQuery;
import io.lancegateway.proto.v1.VectorSearchRequest;
import java.util.ArrayList;
import java.util.List;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;

/** Searches as planned, a query after the other. */
final class Searcher implements AutoCloseable {

    private final SearchSpec spec;
    private final ScanRequest request;
    private final GatewayClient client;

    Searcher(SearchSpec spec) {
        this.spec = spec;
        this.request = spec.request();
        this.client = spec.address().connect();
    }

    /**
     * The rows that are found, the best first; each may be kept.
     *
     * @param vector null in a search for texts
     * @param text null in a search for vectors
     * @param k rows to find; null: as planned, else the gateway's default
     */
    List<RowData> search(@Nullable Vector vector, @Nullable String text, @Nullable Long k) {
        Search planned = request.getSearch();
        SearchResult found;
        switch (planned.getKindCase()) {
            case VECTOR:
                found = nearest(Queries.vector(planned.getVector(), vector, k));
                break;
            case TEXT:
                found = best(Queries.text(planned.getText(), text, k));
                break;
            default:
                found = both(Queries.hybrid(planned.getHybrid(), vector, text, k));
        }
        RowReader reader = RowReader.of(found.schema(), spec.rowType());
        List<RowData> rows = new ArrayList<>();
        for (ArrowBatch batch : found.batches()) {
            rows.addAll(reader.rows(batch));
        }
        return rows;
    }

    private SearchResult nearest(VectorQuery query) {
        VectorSearchRequest.Builder search =
                VectorSearchRequest.newBuilder()
                        .setTable(request.getTable())
                        .setVersion(request.getVersion())
                        .setProjection(request.getProjection())
                        .setQuery(query);
        if (request.hasFilter()) {
            search.setFilter(request.getFilter());
        }
        return client.search(search.build());
    }

    private SearchResult best(FullTextQuery query) {
        FullTextSearchRequest.Builder search =
                FullTextSearchRequest.newBuilder()
                        .setTable(request.getTable())
                        .setVersion(request.getVersion())
                        .setProjection(request.getProjection())
                        .setQuery(query);
        if (request.hasFilter()) {
            search.setFilter(request.getFilter());
        }
        return client.search(search.build());
    }

    private SearchResult both(HybridQuery query) {
        HybridSearchRequest.Builder search =
                HybridSearchRequest.newBuilder()
                        .setTable(request.getTable())
                        .setVersion(request.getVersion())
                        .setProjection(request.getProjection())
                        .setQuery(query);
        if (request.hasFilter()) {
            search.setFilter(request.getFilter());
        }
        return client.search(search.build());
    }

    @Override
    public void close() {
        client.close();
    }
}
