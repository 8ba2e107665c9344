package io.lancegateway.flink.search;

import io.lancegateway.flink.Metric;
import io.lancegateway.flink.util.WireMetric;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.inference.CallContext;

/** What the literals of a call say. The table decides the columns of the result, so it is one. */
final class SearchCall {

    private final Form form;
    private final String path;
    @Nullable private final String vectorColumn;
    private final List<String> textColumns;
    @Nullable private final Metric metric;
    private final SearchOptions options;

    private SearchCall(
            Form form,
            String path,
            @Nullable String vectorColumn,
            List<String> textColumns,
            @Nullable Metric metric,
            SearchOptions options) {
        this.form = form;
        this.path = path;
        this.vectorColumn = vectorColumn;
        this.textColumns = textColumns;
        this.metric = metric;
        this.options = options;
    }

    /** A search for vectors by a program. */
    static SearchCall nearest(
            String path, String column, @Nullable Metric metric, Map<String, String> options) {
        return new SearchCall(
                Form.VECTOR,
                path,
                column,
                List.of(),
                metric,
                SearchOptions.of(Form.VECTOR, options));
    }

    static SearchCall of(Form form, CallContext call) {
        List<String> rest = new ArrayList<>();
        int last = call.getArgumentDataTypes().size();
        boolean metricFirst = form == Form.VECTOR && (last - form.k() - 1) % 2 == 1;
        for (int i = form.k() + 1; i < last; i++) {
            rest.add(literal(call, i, name(i - form.k() - 1, metricFirst, rest)));
        }
        String metric = metricFirst ? rest.remove(0) : null;
        if (rest.size() % 2 == 1) {
            throw new ValidationException(
                    String.format(
                            "option '%s' has no value: %s",
                            rest.get(rest.size() - 1), form.signature()));
        }
        SearchOptions options = SearchOptions.of(form, rest);
        Optional<String> named = form.vectors() ? options.text("metric") : Optional.empty();
        if (metric != null && named.isPresent()) {
            throw new ValidationException("the metric is given twice: as argument and as option");
        }
        return new SearchCall(
                form,
                literal(call, 0, argument(form, 0)),
                form.vectors()
                        ? literal(call, form.vectorColumn(), argument(form, form.vectorColumn()))
                        : null,
                form.texts()
                        ? SearchOptions.split(
                                literal(call, form.textColumn(), argument(form, form.textColumn())))
                        : List.of(),
                metric == null && named.isEmpty()
                        ? null
                        : WireMetric.parse("metric", metric == null ? named.get() : metric),
                options);
    }

    private static String argument(Form form, int position) {
        return "the argument '" + form.arguments().get(position) + "'";
    }

    /** How the argument at this place behind {@code k} is called. */
    private static String name(int place, boolean metricFirst, List<String> before) {
        if (metricFirst && place == 0) {
            return "the argument 'metric'";
        }
        boolean isName = place % 2 == (metricFirst ? 1 : 0);
        return isName
                ? "the name of an option"
                : "the value of option '" + before.get(before.size() - 1) + "'";
    }

    private static String literal(CallContext call, int position, String name) {
        Optional<String> value =
                call.isArgumentLiteral(position)
                        ? call.getArgumentValue(position, String.class)
                        : Optional.empty();
        return value.orElseThrow(
                () ->
                        new ValidationException(
                                name
                                        + " must be a literal: it is needed when the statement is"
                                        + " planned"));
    }

    Form form() {
        return form;
    }

    String path() {
        return path;
    }

    @Nullable
    String vectorColumn() {
        return vectorColumn;
    }

    List<String> textColumns() {
        return textColumns;
    }

    @Nullable
    Metric metric() {
        return metric;
    }

    /** Null: where the process finds one. */
    @Nullable
    String gatewayUri() {
        return options.text("gateway.uri").orElse(null);
    }

    SearchOptions options() {
        return options;
    }
}
