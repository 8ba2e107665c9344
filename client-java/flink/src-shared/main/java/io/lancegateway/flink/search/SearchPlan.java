package io.lancegateway.flink.search;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.Metric;
import io.lancegateway.flink.types.FlinkTypes;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.TablePath;
import io.lancegateway.flink.util.WireMetric;
import io.lancegateway.proto.v1.BooleanQuery;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.Filter;
import io.lancegateway.proto.v1.FullTextQuery;
import io.lancegateway.proto.v1.HybridQuery;
import io.lancegateway.proto.v1.MatchQuery;
import io.lancegateway.proto.v1.PhraseQuery;
import io.lancegateway.proto.v1.Projection;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Search;
import io.lancegateway.proto.v1.TextQuery;
import io.lancegateway.proto.v1.VectorQuery;
import io.lancegateway.proto.v1.VersionSelector;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.RowType;

/** Asks the gateway for the table that a call searches, and checks the call against it. */
final class SearchPlan {

    /** Partitions of an index that are searched at least, as other connectors have it. */
    private static final int DEFAULT_NPROBES = 20;

    private final SearchCall call;
    private final SearchOptions options;
    private final SearchedColumns columns;

    private SearchPlan(SearchCall call, ArrowSchema schema) {
        this.call = call;
        this.options = call.options();
        this.columns = new SearchedColumns(call.path(), schema);
    }

    /**
     * The search that a call means.
     *
     * @throws ValidationException if it cannot be
     */
    static SearchSpec of(SearchCall call, GatewayAddress address) {
        ScanRequest.Builder request =
                ScanRequest.newBuilder()
                        .setTable(TablePath.parse(call.path()))
                        .setVersion(version(call.options()));
        call.options()
                .text("filter")
                .ifPresent(sql -> request.setFilter(Filter.newBuilder().setSql(sql)));
        ArrowSchema schema = schema(address, request);
        SearchPlan plan = new SearchPlan(call, schema);
        List<ArrowField> fields =
                call.options().list("columns").map(plan.columns::projected).orElse(schema.fields());
        request.setProjection(projection(fields)).setSearch(plan.search());
        return new SearchSpec(address, request.build(), rowType(call.form(), fields));
    }

    static VersionSelector version(SearchOptions options) {
        VersionSelector.Builder version = VersionSelector.newBuilder();
        options.text("version")
                .ifPresent(
                        text -> {
                            if (text.chars().allMatch(Character::isDigit)) {
                                options.whole("version", 1, Long.MAX_VALUE)
                                        .ifPresent(version::setVersion);
                            } else {
                                version.setTag(text);
                            }
                        });
        return version.build();
    }

    private static ArrowSchema schema(GatewayAddress address, ScanRequest.Builder request) {
        try (GatewayClient client = address.connect()) {
            return ArrowSchema.fromIpc(
                    client.describeTable(
                                    DescribeTableRequest.newBuilder()
                                            .setTable(request.getTable())
                                            .setVersion(request.getVersion())
                                            .build())
                            .getSchema()
                            .asReadOnlyByteBuffer());
        } catch (LanceGatewayException | IllegalArgumentException failed) {
            throw new ValidationException(failed.getMessage(), failed);
        }
    }

    private static Projection projection(List<ArrowField> fields) {
        Projection.Builder projection = Projection.newBuilder();
        fields.forEach(field -> projection.addColumns(Column.newBuilder().addPath(field.name())));
        return projection.build();
    }

    private static RowType rowType(Form form, List<ArrowField> fields) {
        List<RowType.RowField> all =
                new ArrayList<>(FlinkTypes.rowType(ArrowSchema.of(fields)).getFields());
        form.ranks().forEach(rank -> all.add(new RowType.RowField(rank, new DoubleType())));
        return new RowType(false, all);
    }

    private Search search() {
        Search.Builder search = Search.newBuilder();
        switch (call.form()) {
            case VECTOR:
                return search.setVector(
                                vectors().setOffset(options.notNegative("offset").orElse(0)))
                        .build();
            case TEXT:
                return search.setText(texts().setOffset(options.notNegative("offset").orElse(0)))
                        .build();
            default:
                return search.setHybrid(both()).build();
        }
    }

    private VectorQuery.Builder vectors() {
        return vectors(columns.vectors(call.vectorColumn()), call.metric(), options);
    }

    /** What options say of a search for vectors. */
    static VectorQuery.Builder vectors(
            Column column, @Nullable Metric metric, SearchOptions options) {
        VectorQuery.Builder query =
                VectorQuery.newBuilder()
                        .setColumn(column)
                        .setExact(options.flag("exact"))
                        .setPostfilter(options.flag("postfilter"))
                        .setMinNprobes(DEFAULT_NPROBES);
        if (metric != null) {
            query.setMetric(WireMetric.of(metric));
        }
        options.positive("nprobes")
                .ifPresent(probes -> query.setMinNprobes(probes).setMaxNprobes(probes));
        options.positive("ef").ifPresent(query::setEf);
        options.positive("refine-factor").ifPresent(query::setRefineFactor);
        options.number("lower-bound").ifPresent(query::setLowerBound);
        options.number("upper-bound").ifPresent(query::setUpperBound);
        return query;
    }

    private FullTextQuery.Builder texts() {
        List<String> names = call.textColumns();
        List<Float> boosts = options.numbers("boost");
        if (!boosts.isEmpty() && boosts.size() != names.size()) {
            throw SearchOptions.wrong(
                    "boost",
                    options.text("boost").orElseThrow(),
                    "a number for each of the " + names.size() + " columns");
        }
        BooleanQuery.Builder any = BooleanQuery.newBuilder();
        for (int i = 0; i < names.size(); i++) {
            Column column = columns.texts(names.get(i));
            any.addShould(
                    options.flag("phrase")
                            ? phrase(column)
                            : match(
                                    column,
                                    boosts.isEmpty()
                                            ? Optional.empty()
                                            : Optional.of(boosts.get(i))));
        }
        TextQuery query =
                names.size() == 1
                        ? any.getShould(0)
                        : TextQuery.newBuilder().setBoolean(any).build();
        return FullTextQuery.newBuilder().setQuery(query).setPostfilter(options.flag("postfilter"));
    }

    private TextQuery phrase(Column column) {
        for (String unused : List.of("operator", "fuzziness", "boost")) {
            refuse(unused, "without 'phrase'");
        }
        return TextQuery.newBuilder()
                .setPhrase(
                        PhraseQuery.newBuilder()
                                .setColumn(column)
                                .setSlop(options.notNegative("slop").orElse(0)))
                .build();
    }

    private TextQuery match(Column column, Optional<Float> boost) {
        refuse("slop", "with 'phrase'");
        MatchQuery.Builder match =
                MatchQuery.newBuilder()
                        .setColumn(column)
                        .setAllWords(allWords())
                        .setFuzziness(options.notNegative("fuzziness").orElse(0));
        boost.ifPresent(match::setBoost);
        return TextQuery.newBuilder().setMatch(match).build();
    }

    private boolean allWords() {
        String operator = options.text("operator").orElse("any");
        if (operator.equalsIgnoreCase("all")) {
            return true;
        }
        if (operator.equalsIgnoreCase("any")) {
            return false;
        }
        throw SearchOptions.wrong("operator", operator, "any or all, of the words");
    }

    private void refuse(String option, String place) {
        if (options.text(option).isPresent()) {
            throw new ValidationException(
                    String.format("option '%s' has a meaning only %s", option, place));
        }
    }

    private HybridQuery.Builder both() {
        VectorQuery.Builder vectors = vectors();
        FullTextQuery.Builder texts = texts();
        options.positive("candidates")
                .ifPresent(
                        rows -> {
                            vectors.setK(rows);
                            texts.setK(rows);
                        });
        HybridQuery.Builder query =
                HybridQuery.newBuilder()
                        .setVector(vectors)
                        .setText(texts)
                        .setOffset(options.notNegative("offset").orElse(0));
        options.notNegative("rrf-k").ifPresent(query::setRrfK);
        options.number("vector-weight").ifPresent(query::setVectorWeight);
        options.number("text-weight").ifPresent(query::setTextWeight);
        return query;
    }
}
