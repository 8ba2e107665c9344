package io.lancegateway.flink.table;

import io.lancegateway.flink.search.TableSearch;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.VectorSearchTableSource;

/** What a table source must be in this version of Flink. */
interface PortableTableSource extends ScanTableSource, VectorSearchTableSource {

    /** What Flink itself takes from the CONFIG of VECTOR_SEARCH. */
    Set<String> OF_FLINK = Set.of("async", "output-mode", "max-concurrent-operations", "timeout");

    /**
     * A search of a column.
     *
     * @param column its way down, by positions
     * @param config what the statement says of it
     */
    TableSearch vectorSearch(int[] column, Map<String, String> config);

    @Override
    default VectorSearchRuntimeProvider getSearchRuntimeProvider(VectorSearchContext context) {
        Map<String, String> config = new HashMap<>(context.runtimeConfig().toMap());
        config.keySet().removeAll(OF_FLINK);
        return new VectorSearchProvider(vectorSearch(context.getSearchColumns()[0], config));
    }
}
