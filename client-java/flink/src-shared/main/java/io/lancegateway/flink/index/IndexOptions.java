package io.lancegateway.flink.index;

import io.lancegateway.flink.util.WireMetric;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.FullTextIndex;
import io.lancegateway.proto.v1.IndexBuild;
import io.lancegateway.proto.v1.ScalarIndex;
import io.lancegateway.proto.v1.ScalarIndexType;
import io.lancegateway.proto.v1.VectorIndex;
import io.lancegateway.proto.v1.VectorIndexType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.flink.table.api.ValidationException;

/** What people write about an index, made into the message that builds it. */
public final class IndexOptions {

    private static final String FULL_TEXT = "INVERTED";

    /** As other connectors name the one of this family that they have. */
    private static final String HNSW = "IVF_HNSW";

    private static final Set<String> OF_ALL = Set.of("name", "replace");
    private static final Set<String> OF_VECTORS =
            Set.of(
                    "metric",
                    "num-partitions",
                    "max-iterations",
                    "sample-rate",
                    "num-sub-vectors",
                    "num-bits",
                    "max-level",
                    "m",
                    "ef-construction");
    private static final Set<String> OF_TEXTS =
            Set.of(
                    "tokenizer",
                    "language",
                    "with-position",
                    "lower-case",
                    "stem",
                    "remove-stop-words",
                    "ascii-folding",
                    "max-token-length",
                    "ngram-min-length",
                    "ngram-max-length");

    private final Map<String, String> given;

    private IndexOptions(Map<String, String> given) {
        this.given = given;
    }

    /**
     * An index to build.
     *
     * @param type as {@code IVF_PQ}, {@code BTREE} or {@code INVERTED}, in any case
     * @param options by name; which there are depends on the type
     * @throws ValidationException if there is no such type or option, or a value has no meaning
     */
    public static IndexBuild build(List<String> column, String type, Map<String, String> options) {
        String name = type.trim().toUpperCase(Locale.ROOT);
        IndexBuild.Builder build =
                IndexBuild.newBuilder().setColumn(Column.newBuilder().addAllPath(column));
        if (vectorTypes().containsKey(name)) {
            return of(options, OF_VECTORS, name).vector(build, vectorTypes().get(name));
        }
        if (scalarTypes().containsKey(name)) {
            IndexOptions none = of(options, Set.of(), name);
            ScalarIndex.Builder index = ScalarIndex.newBuilder().setType(scalarTypes().get(name));
            return none.named(build.setScalar(index));
        }
        if (name.equals(FULL_TEXT)) {
            return of(options, OF_TEXTS, name).fullText(build);
        }
        List<String> types = new ArrayList<>(vectorTypes().keySet());
        types.addAll(scalarTypes().keySet());
        types.add(FULL_TEXT);
        throw new ValidationException(
                String.format(
                        "'%s' is no type of index; there are %s", type, String.join(", ", types)));
    }

    private static IndexOptions of(Map<String, String> options, Set<String> more, String type) {
        Set<String> known = new TreeSet<>(OF_ALL);
        known.addAll(more);
        for (String name : options.keySet()) {
            if (!known.contains(name)) {
                throw new ValidationException(
                        String.format(
                                "an index of type %s has no option '%s'; it has %s",
                                type, name, String.join(", ", known)));
            }
        }
        return new IndexOptions(options);
    }

    private static Map<String, VectorIndexType> vectorTypes() {
        String prefix = "VECTOR_INDEX_TYPE_";
        Map<String, VectorIndexType> types =
                Arrays.stream(VectorIndexType.values())
                        .filter(type -> type != VectorIndexType.UNRECOGNIZED)
                        .filter(type -> type.getNumber() != 0)
                        .collect(
                                Collectors.toMap(
                                        type -> type.name().substring(prefix.length()),
                                        type -> type,
                                        (a, b) -> a,
                                        TreeMap::new));
        types.put(HNSW, VectorIndexType.VECTOR_INDEX_TYPE_IVF_HNSW_PQ);
        return types;
    }

    private static Map<String, ScalarIndexType> scalarTypes() {
        String prefix = "SCALAR_INDEX_TYPE_";
        return Arrays.stream(ScalarIndexType.values())
                .filter(type -> type != ScalarIndexType.UNRECOGNIZED)
                .filter(type -> type.getNumber() != 0)
                .collect(
                        Collectors.toMap(
                                type -> type.name().substring(prefix.length()),
                                type -> type,
                                (a, b) -> a,
                                TreeMap::new));
    }

    private IndexBuild vector(IndexBuild.Builder build, VectorIndexType type) {
        VectorIndex.Builder index = VectorIndex.newBuilder().setType(type);
        if (given.containsKey("metric")) {
            index.setMetric(WireMetric.of(WireMetric.parse("metric", given.get("metric"))));
        }
        positive("num-partitions", index::setNumPartitions);
        positive("max-iterations", index::setMaxIterations);
        positive("sample-rate", index::setSampleRate);
        positive("num-sub-vectors", index::setNumSubVectors);
        positive("num-bits", index::setNumBits);
        positive("max-level", index::setMaxLevel);
        positive("m", index::setM);
        positive("ef-construction", index::setEfConstruction);
        return named(build.setVector(index));
    }

    private IndexBuild fullText(IndexBuild.Builder build) {
        FullTextIndex.Builder index = FullTextIndex.newBuilder();
        text("tokenizer", index::setTokenizer);
        text("language", index::setLanguage);
        flag("with-position", index::setWithPosition);
        flag("lower-case", index::setLowerCase);
        flag("stem", index::setStem);
        flag("remove-stop-words", index::setRemoveStopWords);
        flag("ascii-folding", index::setAsciiFolding);
        positive("max-token-length", index::setMaxTokenLength);
        positive("ngram-min-length", index::setNgramMinLength);
        positive("ngram-max-length", index::setNgramMaxLength);
        return named(build.setFullText(index));
    }

    private IndexBuild named(IndexBuild.Builder build) {
        text("name", build::setName);
        flag("replace", build::setReplace);
        return build.build();
    }

    private void text(String name, Consumer<String> target) {
        if (given.containsKey(name)) {
            target.accept(given.get(name));
        }
    }

    private void positive(String name, Consumer<Integer> target) {
        text(
                name,
                value -> {
                    int number = 0;
                    try {
                        number = Integer.parseInt(value.trim());
                    } catch (NumberFormatException none) {
                        // Told below.
                    }
                    if (number <= 0) {
                        throw wrong(name, value, "a whole number of 1 or more");
                    }
                    target.accept(number);
                });
    }

    private void flag(String name, Consumer<Boolean> target) {
        text(name, value -> target.accept(flag(name, value)));
    }

    static boolean flag(String name, String value) {
        if (value.equalsIgnoreCase("true")) {
            return true;
        }
        if (value.equalsIgnoreCase("false")) {
            return false;
        }
        throw wrong(name, value, "true or false");
    }

    static ValidationException wrong(String name, String value, String wanted) {
        return new ValidationException(
                String.format("option '%s' is '%s'; it must be %s", name, value, wanted));
    }
}
