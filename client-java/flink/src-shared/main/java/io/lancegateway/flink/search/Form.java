package io.lancegateway.flink.search;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** What a search function searches for, and how it is called. */
public enum Form {
    /** {@code vector_search(path, column, query [, k [, metric]] [, option, value]...)}. */
    VECTOR("vector_search", List.of("path", "column", "query"), List.of("_distance")),
    /** {@code full_text_search(path, columns, query [, k] [, option, value]...)}. */
    TEXT("full_text_search", List.of("path", "columns", "query"), List.of("_score")),
    /**
     * {@code hybrid_search(path, vector_column, vector, text_column, text [, k] [, option,
     * value]...)}.
     */
    HYBRID(
            "hybrid_search",
            List.of("path", "vector_column", "vector", "text_column", "text"),
            List.of("_distance", "_score", "_relevance_score"));

    private final String functionName;
    private final List<String> arguments;
    private final List<String> ranks;

    Form(String functionName, List<String> arguments, List<String> ranks) {
        this.functionName = functionName;
        this.arguments = arguments;
        this.ranks = ranks;
    }

    /** As users are told to register it. */
    String functionName() {
        return functionName;
    }

    /** The arguments that must be there, in order. */
    List<String> arguments() {
        return arguments;
    }

    /** Position of {@code k}. */
    int k() {
        return arguments.size();
    }

    /** The columns that stand behind those of the table, all DOUBLE. */
    List<String> ranks() {
        return ranks;
    }

    boolean vectors() {
        return this != TEXT;
    }

    boolean texts() {
        return this != VECTOR;
    }

    /** The argument that names a column of vectors. */
    int vectorColumn() {
        return 1;
    }

    /** The argument that names a column of texts. */
    int textColumn() {
        return this == HYBRID ? 3 : 1;
    }

    /** The options that may follow. */
    Set<String> options() {
        Set<String> options = new TreeSet<>(SearchOptions.COMMON);
        if (vectors()) {
            options.addAll(SearchOptions.OF_VECTORS);
        }
        if (texts()) {
            options.addAll(SearchOptions.OF_TEXTS);
        }
        if (this == HYBRID) {
            options.addAll(SearchOptions.OF_BOTH);
        }
        return options;
    }

    /** How it is called. */
    String signature() {
        List<String> shown = new ArrayList<>(arguments);
        String k = this == VECTOR ? " [, k [, metric]]" : " [, k]";
        return String.format(
                "%s(%s%s [, option, value]...)", functionName, String.join(", ", shown), k);
    }
}
