package io.lancegateway.flink.search;

import io.lancegateway.flink.types.TypeMismatchException;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.PortableFunction;
import java.util.Optional;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.catalog.DataTypeFactory;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.SpecializedFunction;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.inference.CallContext;
import org.apache.flink.table.types.inference.TypeInference;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.utils.TypeConversions;

/**
 * A function of SQL that gives the rows that are found in a table, with their ranks. The table, and
 * all but the query and {@code k}, are literals: the gateway is asked for the columns of the table
 * while the statement is planned.
 */
public abstract class SearchFunction extends PortableFunction<RowData>
        implements SpecializedFunction {

    private static final long serialVersionUID = 1L;

    private final Form form;

    /** What one call of the function means; null in the function that is registered. */
    @Nullable private final SearchSpec spec;

    /** Of the query of that call. */
    @Nullable private final ArrayType vectorType;

    @Nullable private transient Searcher searcher;

    protected SearchFunction(Form form) {
        this(form, null, null);
    }

    protected SearchFunction(Form form, @Nullable SearchSpec spec, @Nullable ArrayType vectorType) {
        this.form = form;
        this.spec = spec;
        this.vectorType = vectorType;
    }

    /** The same function for one call. */
    protected abstract SearchFunction of(SearchSpec spec, @Nullable ArrayType vectorType);

    @Override
    public UserDefinedFunction specialize(SpecializedContext context) {
        CallContext call = context.getCallContext();
        ArrayType type =
                form.vectors()
                        ? (ArrayType)
                                call.getArgumentDataTypes()
                                        .get(form.vectorColumn() + 1)
                                        .getLogicalType()
                        : null;
        return of(plan(call), type);
    }

    @Override
    public TypeInference getTypeInference(DataTypeFactory types) {
        return TypeInference.newBuilder()
                .inputTypeStrategy(new SearchArguments(form))
                .outputTypeStrategy(call -> Optional.of(type(spec == null ? plan(call) : spec)))
                .build();
    }

    private SearchSpec plan(CallContext call) {
        try {
            SearchCall literals = SearchCall.of(form, call);
            return SearchPlan.of(literals, new GatewayAddress(literals.gatewayUri()));
        } catch (TypeMismatchException unfit) {
            throw new ValidationException(
                    unfit.getMessage() + "; the option 'columns' can leave it out", unfit);
        }
    }

    private static DataType type(SearchSpec spec) {
        return TypeConversions.fromLogicalToDataType(spec.rowType()).bridgedTo(RowData.class);
    }

    @Override
    public void open(FunctionContext context) {
        searcher = Searcher.of(spec);
    }

    @Override
    public void close() {
        if (searcher != null) {
            searcher.close();
            searcher = null;
        }
    }

    /** Emits what is found. */
    protected final void find(@Nullable ArrayData vector, @Nullable StringData text) {
        emit(vector, text, null);
    }

    /** Emits what is found. */
    protected final void find(
            @Nullable ArrayData vector, @Nullable StringData text, @Nullable Long k) {
        if (k == null) {
            throw new IllegalArgumentException("k is NULL; it must be 1 or more");
        }
        emit(vector, text, k);
    }

    /** A query that is null finds nothing. */
    private void emit(@Nullable ArrayData vector, @Nullable StringData text, @Nullable Long k) {
        if (form.vectors() && vector == null || form.texts() && text == null) {
            return;
        }
        searcher.search(
                        vector == null ? null : QueryVectors.of(vector, vectorType),
                        text == null ? null : text.toString(),
                        k)
                .forEach(this::collect);
    }
}
