package io.lancegateway.flink.search;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.SearchResult;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.flink.Metric;
import io.lancegateway.flink.source.RowReader;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.Filter;
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
import java.util.Map;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/** Searches as planned, a query after the other. */
public final class Searcher implements AutoCloseable {

    private final ScanRequest request;
    private final RowType rowType;
    private final GatewayClient client;

    private Searcher(ScanRequest request, RowType rowType, GatewayClient client) {
        this.request = request;
        this.rowType = rowType;
        this.client = client;
    }

    static Searcher of(SearchSpec spec) {
        return new Searcher(spec.request(), spec.rowType(), spec.address().connect());
    }

    /**
     * Finds the nearest rows.
     *
     * @param metric null: the one that the table declares, else that of the index, else L2
     * @param options those of {@link Form#VECTOR}
     */
    public static Searcher nearest(
            GatewayAddress address,
            String path,
            String column,
            @Nullable Metric metric,
            Map<String, String> options) {
        return of(SearchPlan.of(SearchCall.nearest(path, column, metric, options), address));
    }

    /** The same in the rows that a filter keeps, over the same connection. */
    public Searcher filtered(String sql) {
        Filter filter = Filter.newBuilder().setSql(sql).build();
        return new Searcher(request.toBuilder().setFilter(filter).build(), rowType, client);
    }

    public RowType rowType() {
        return rowType;
    }

    /** The nearest rows to a vector, the nearest first; each may be kept. */
    public List<RowData> nearest(float[] query, long k) {
        return search(QueryVectors.of(query), null, k);
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
        RowReader reader = RowReader.of(found.schema(), rowType);
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
