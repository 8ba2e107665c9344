package io.lancegateway.flink.search;

import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.source.Asker;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.proto.v1.ExchangeCommand;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Search;
import io.lancegateway.proto.v1.VectorQuery;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import javax.annotation.Nullable;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/** Searches a table for the vectors of one task, over one stream. */
public final class TableSearcher implements AutoCloseable {

    private final TableSearch search;

    @Nullable private Asker gateway;
    private int k;

    public TableSearcher(TableSearch search) {
        this.search = search;
    }

    /**
     * The rows that are nearest, the best first.
     *
     * @param query a row of one field, the vector; where that is null nothing is found
     */
    public CompletableFuture<Collection<RowData>> ask(int k, RowData query) {
        return query.isNullAt(0)
                ? CompletableFuture.completedFuture(List.of())
                : gateway(k).ask(row(query));
    }

    /** The same, waiting for them. */
    public Collection<RowData> find(int k, RowData query) throws IOException {
        return query.isNullAt(0) ? List.of() : gateway(k).find(row(query));
    }

    /** The gateway asks for an id; the stream counts queries by itself. */
    private RowData row(RowData query) {
        ArrayData vector = query.getArray(0);
        QueryVectors.checkType(vector, search.queryType());
        return GenericRowData.of(0L, vector);
    }

    /** All queries of a stream want as many rows: that is the same in all calls of a function. */
    private Asker gateway(int wanted) {
        if (gateway != null && wanted == k) {
            return gateway;
        }
        close();
        k = wanted;
        ScanRequest request = search.spec().request();
        VectorQuery planned = request.getSearch().getVector();
        VectorQuery query =
                Queries.withEffort(planned.toBuilder().setK(k), k + planned.getOffset());
        ScanRequest asked =
                request.toBuilder().setSearch(Search.newBuilder().setVector(query)).build();
        RowType queries =
                RowType.of(
                        new LogicalType[] {new BigIntType(false), search.queryType()},
                        new String[] {"id", "vector"});
        gateway =
                new Asker(
                        search.spec().address(),
                        ExchangeCommand.newBuilder().setSearch(asked).build(),
                        ArrowSchema.of(ArrowTypes.columns(queries, Set.of(), name -> 0)),
                        queries,
                        search.spec().rowType(),
                        search.paths(),
                        false);
        return gateway;
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
            gateway = null;
        }
    }
}
