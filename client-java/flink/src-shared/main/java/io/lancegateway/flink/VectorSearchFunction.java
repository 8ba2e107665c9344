package io.lancegateway.flink;

import io.lancegateway.flink.search.Form;
import io.lancegateway.flink.search.SearchFunction;
import io.lancegateway.flink.search.SearchSpec;
import javax.annotation.Nullable;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.types.logical.ArrayType;

/**
 * The nearest rows to a vector: the columns of the table and {@code _distance}.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION vector_search AS 'io.lancegateway.flink.VectorSearchFunction';
 * SELECT * FROM TABLE(vector_search('vectors', 'embedding', ARRAY[0.1, 0.2], 10, 'COSINE'));
 * SELECT q.id, v.* FROM q, LATERAL TABLE(vector_search('vectors', 'embedding', q.v, 3)) AS v;
 * }</pre>
 */
public class VectorSearchFunction extends SearchFunction {

    private static final long serialVersionUID = 1L;

    public VectorSearchFunction() {
        super(Form.VECTOR);
    }

    private VectorSearchFunction(SearchSpec spec, ArrayType vectorType) {
        super(Form.VECTOR, spec, vectorType);
    }

    @Override
    protected final SearchFunction of(SearchSpec spec, @Nullable ArrayType vectorType) {
        return new VectorSearchFunction(spec, vectorType);
    }

    public void eval(StringData path, StringData column, @Nullable ArrayData query) {
        find(query, null);
    }

    /**
     * @param rest metric, and names and values of options
     */
    public void eval(
            StringData path,
            StringData column,
            @Nullable ArrayData query,
            @Nullable Long k,
            StringData... rest) {
        find(query, null, k);
    }
}
