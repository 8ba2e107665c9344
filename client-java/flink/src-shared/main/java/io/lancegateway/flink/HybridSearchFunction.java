package io.lancegateway.flink;

import io.lancegateway.flink.search.Form;
import io.lancegateway.flink.search.SearchFunction;
import io.lancegateway.flink.search.SearchSpec;
import javax.annotation.Nullable;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.types.logical.ArrayType;

/**
 * Nearest vectors and best texts as one ranking: the columns of the table, {@code _distance},
 * {@code _score} and {@code _relevance_score}.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION hybrid_search AS 'io.lancegateway.flink.HybridSearchFunction';
 * SELECT * FROM TABLE(hybrid_search('pages', 'embedding', ARRAY[0.1, 0.2], 'body', 'lance flink', 10));
 * }</pre>
 */
public class HybridSearchFunction extends SearchFunction {

    private static final long serialVersionUID = 1L;

    public HybridSearchFunction() {
        super(Form.HYBRID);
    }

    private HybridSearchFunction(SearchSpec spec, ArrayType vectorType) {
        super(Form.HYBRID, spec, vectorType);
    }

    @Override
    protected final SearchFunction of(SearchSpec spec, @Nullable ArrayType vectorType) {
        return new HybridSearchFunction(spec, vectorType);
    }

    public void eval(
            StringData path,
            StringData vectorColumn,
            @Nullable ArrayData vector,
            StringData textColumn,
            @Nullable StringData text) {
        find(vector, text);
    }

    /**
     * @param options names and values
     */
    public void eval(
            StringData path,
            StringData vectorColumn,
            @Nullable ArrayData vector,
            StringData textColumn,
            @Nullable StringData text,
            @Nullable Long k,
            StringData... options) {
        find(vector, text, k);
    }
}
