package io.lancegateway.flink.search;

import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.WireMetric;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Search;
import io.lancegateway.proto.v1.VectorQuery;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.RowType;

/**
 * A search for vectors in a declared table but for what each query brings: its vector and its k.
 */
public final class TableSearch implements Serializable {

    private static final long serialVersionUID = 1L;

    private static final String DISTANCE = "_distance";

    private final SearchSpec spec;
    private final List<List<String>> paths;
    private final ArrayType queryType;

    private TableSearch(SearchSpec spec, List<List<String>> paths, ArrayType queryType) {
        this.spec = spec;
        this.paths = paths;
        this.queryType = queryType;
    }

    /**
     * The search that options mean.
     *
     * @param scan the columns of the table that are read, its version and its filter
     * @param rowType those columns
     * @param paths for each of them its way down; an empty one gives nulls
     * @param column that is searched
     * @param queryType the vectors that come
     * @param ofTable what the table says of searches, by option
     * @param ofStatement what the statement says, which wins
     */
    public static TableSearch of(
            GatewayAddress address,
            ScanRequest scan,
            RowType rowType,
            List<List<String>> paths,
            List<String> column,
            ArrayType queryType,
            Map<String, String> ofTable,
            Map<String, String> ofStatement) {
        Set<String> known = new TreeSet<>(SearchOptions.OF_VECTORS);
        known.addAll(Set.of("filter", "postfilter", "version", "offset"));
        Map<String, String> given = new HashMap<>(ofTable);
        given.putAll(ofStatement);
        SearchOptions options = SearchOptions.of(known, given);
        VectorQuery.Builder query =
                SearchPlan.vectors(
                                Column.newBuilder().addAllPath(column).build(),
                                options.text("metric")
                                        .map(name -> WireMetric.parse("metric", name))
                                        .orElse(null),
                                options)
                        .setOffset(options.notNegative("offset").orElse(0));
        ScanRequest.Builder request =
                scan.toBuilder().setSearch(Search.newBuilder().setVector(query));
        if (options.text("version").isPresent()) {
            request.setVersion(SearchPlan.version(options));
        }
        options.text("filter").ifPresent(sql -> request.setFilter(both(scan, sql)));

        List<RowType.RowField> fields = new ArrayList<>(rowType.getFields());
        fields.add(new RowType.RowField(DISTANCE, new DoubleType()));
        List<List<String>> ways = new ArrayList<>(paths);
        ways.add(List.of(DISTANCE));
        return new TableSearch(
                new SearchSpec(address, request.build(), new RowType(fields)), ways, queryType);
    }

    private static Filter both(ScanRequest scan, String sql) {
        String all =
                scan.hasFilter() ? "(" + scan.getFilter().getSql() + ") AND (" + sql + ")" : sql;
        return Filter.newBuilder().setSql(all).build();
    }

    SearchSpec spec() {
        return spec;
    }

    List<List<String>> paths() {
        return paths;
    }

    ArrayType queryType() {
        return queryType;
    }
}
