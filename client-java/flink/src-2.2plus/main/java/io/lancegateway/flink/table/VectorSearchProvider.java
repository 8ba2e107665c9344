package io.lancegateway.flink.table;

import io.lancegateway.flink.search.TableSearch;
import io.lancegateway.flink.search.TableSearcher;
import java.io.IOException;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import javax.annotation.Nullable;
import org.apache.flink.table.connector.source.search.AsyncVectorSearchFunctionProvider;
import org.apache.flink.table.connector.source.search.VectorSearchFunctionProvider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.AsyncVectorSearchFunction;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.VectorSearchFunction;

/** Searches one by one or many at once, as the planner chooses. */
final class VectorSearchProvider
        implements VectorSearchFunctionProvider, AsyncVectorSearchFunctionProvider {

    private final TableSearch search;

    VectorSearchProvider(TableSearch search) {
        this.search = search;
    }

    @Override
    public VectorSearchFunction createVectorSearchFunction() {
        return new OneByOne(search);
    }

    @Override
    public AsyncVectorSearchFunction createAsyncVectorSearchFunction() {
        return new ManyAtOnce(search);
    }

    /** Public, as all functions must be. */
    public static final class OneByOne extends VectorSearchFunction {

        private static final long serialVersionUID = 1L;

        private final TableSearch search;
        @Nullable private transient TableSearcher searcher;

        OneByOne(TableSearch search) {
            this.search = search;
        }

        @Override
        public void open(FunctionContext context) {
            searcher = new TableSearcher(search);
        }

        @Override
        public Collection<RowData> vectorSearch(int k, RowData query) throws IOException {
            return searcher.find(k, query);
        }

        @Override
        public void close() {
            if (searcher != null) {
                searcher.close();
            }
        }
    }

    /** Public, as all functions must be. */
    public static final class ManyAtOnce extends AsyncVectorSearchFunction {

        private static final long serialVersionUID = 1L;

        private final TableSearch search;
        @Nullable private transient TableSearcher searcher;

        ManyAtOnce(TableSearch search) {
            this.search = search;
        }

        @Override
        public void open(FunctionContext context) {
            searcher = new TableSearcher(search);
        }

        @Override
        public CompletableFuture<Collection<RowData>> asyncVectorSearch(int k, RowData query) {
            return searcher.ask(k, query);
        }

        @Override
        public void close() {
            if (searcher != null) {
                searcher.close();
            }
        }
    }
}
