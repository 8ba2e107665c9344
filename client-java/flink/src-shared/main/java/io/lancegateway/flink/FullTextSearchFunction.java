package io.lancegateway.flink;

import io.lancegateway.flink.search.Form;
import io.lancegateway.flink.search.SearchFunction;
import io.lancegateway.flink.search.SearchSpec;
import javax.annotation.Nullable;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.types.logical.ArrayType;

/**
 * The rows whose texts match best: the columns of the table and {@code _score}.
 *
 * <pre>{@code
 * CREATE TEMPORARY FUNCTION full_text_search AS 'io.lancegateway.flink.FullTextSearchFunction';
 * SELECT * FROM TABLE(full_text_search('pages', 'title, body', 'lance flink', 10, 'operator', 'all'));
 * }</pre>
 */
public class FullTextSearchFunction extends SearchFunction {

    private static final long serialVersionUID = 1L;

    public FullTextSearchFunction() {
        super(Form.TEXT);
    }

    private FullTextSearchFunction(SearchSpec spec) {
        super(Form.TEXT, spec, null);
    }

    @Override
    protected final SearchFunction of(SearchSpec spec, @Nullable ArrayType vectorType) {
        return new FullTextSearchFunction(spec);
    }

    public void eval(StringData path, StringData columns, @Nullable StringData query) {
        find(null, query);
    }

    /**
     * @param options names and values
     */
    public void eval(
            StringData path,
            StringData columns,
            @Nullable StringData query,
            @Nullable Long k,
            StringData... options) {
        find(null, query, k);
    }
}
