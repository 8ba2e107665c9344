package io.lancegateway.flink.table;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ReadableConfig;

/** What the {@code vector.*} options of a table say of searches in it. */
final class VectorOptions {

    private static final String PREFIX = "vector.";

    private final Optional<String> column;
    private final Map<String, String> given;

    private VectorOptions(Optional<String> column, Map<String, String> given) {
        this.column = column;
        this.given = given;
    }

    static VectorOptions of(ReadableConfig options) {
        Map<String, String> given = new HashMap<>();
        for (ConfigOption<?> option : LanceOptions.VECTOR) {
            options.getOptional(option)
                    .ifPresent(
                            value ->
                                    given.put(
                                            option.key().substring(PREFIX.length()),
                                            value.toString()));
        }
        return new VectorOptions(options.getOptional(LanceOptions.VECTOR_COLUMN), given);
    }

    /** Those that are about a column: all, unless they name another. */
    Map<String, String> of(String name) {
        return column.map(name::equals).orElse(true) ? given : Map.of();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof VectorOptions
                && column.equals(((VectorOptions) other).column)
                && given.equals(((VectorOptions) other).given);
    }

    @Override
    public int hashCode() {
        return 31 * column.hashCode() + given.hashCode();
    }
}
