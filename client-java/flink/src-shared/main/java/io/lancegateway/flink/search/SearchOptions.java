package io.lancegateway.flink.search;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.table.api.ValidationException;

/** What may follow the arguments of a search function: names and values, all literals. */
final class SearchOptions {

    static final Set<String> COMMON =
            Set.of("columns", "filter", "postfilter", "version", "offset", "gateway.uri");

    static final Set<String> OF_VECTORS =
            Set.of(
                    "metric",
                    "nprobes",
                    "ef",
                    "refine-factor",
                    "exact",
                    "lower-bound",
                    "upper-bound");

    static final Set<String> OF_TEXTS = Set.of("operator", "fuzziness", "phrase", "slop", "boost");

    static final Set<String> OF_BOTH =
            Set.of("candidates", "rrf-k", "vector-weight", "text-weight");

    /** Of the table options of other connectors, {@code vector.nprobes} for example. */
    private static final String PREFIX = "vector.";

    private final Map<String, String> given;

    private SearchOptions(Map<String, String> given) {
        this.given = given;
    }

    /**
     * @param pairs name, value, name, value
     */
    static SearchOptions of(Form form, List<String> pairs) {
        Set<String> known = form.options();
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i < pairs.size(); i += 2) {
            String name = known(pairs.get(i), known);
            if (given.put(name, pairs.get(i + 1)) != null) {
                throw new ValidationException(String.format("option '%s' is given twice", name));
            }
        }
        return new SearchOptions(given);
    }

    /**
     * @param given by name; those that are not known are refused
     */
    static SearchOptions of(Set<String> known, Map<String, String> given) {
        Map<String, String> options = new HashMap<>();
        given.forEach((name, value) -> options.put(known(name, known), value));
        return new SearchOptions(options);
    }

    static SearchOptions of(Form form, Map<String, String> given) {
        List<String> pairs = new ArrayList<>();
        given.forEach((name, value) -> pairs.addAll(List.of(name, value)));
        return of(form, pairs);
    }

    private static String known(String name, Set<String> known) {
        if (known.contains(name)) {
            return name;
        }
        if (name.startsWith(PREFIX)) {
            String bare = name.substring(PREFIX.length());
            if (OF_VECTORS.contains(bare) && known.contains(bare)) {
                return bare;
            }
        }
        if (name.startsWith("s3-")) {
            throw new ValidationException(
                    String.format(
                            "option '%s': the arguments of a function are shown in plans, so keys"
                                    + " do not belong there; the gateway has those of its stores"
                                    + " (storage.stores)",
                            name));
        }
        throw new ValidationException(
                String.format(
                        "there is no option '%s'; there are %s", name, String.join(", ", known)));
    }

    Optional<String> text(String name) {
        return Optional.ofNullable(given.get(name));
    }

    /** The parts between commas. */
    Optional<List<String>> list(String name) {
        return text(name).map(SearchOptions::split);
    }

    static List<String> split(String list) {
        return Arrays.stream(list.split(",", -1)).map(String::trim).collect(Collectors.toList());
    }

    boolean flag(String name) {
        String value = given.getOrDefault(name, "false");
        if (value.equalsIgnoreCase("true")) {
            return true;
        }
        if (value.equalsIgnoreCase("false")) {
            return false;
        }
        throw wrong(name, value, "true or false");
    }

    Optional<Integer> positive(String name) {
        return whole(name, 1, Integer.MAX_VALUE).map(Long::intValue);
    }

    Optional<Integer> notNegative(String name) {
        return whole(name, 0, Integer.MAX_VALUE).map(Long::intValue);
    }

    Optional<Long> whole(String name, long least, long most) {
        String value = given.get(name);
        if (value == null) {
            return Optional.empty();
        }
        try {
            long number = Long.parseLong(value.trim());
            if (number >= least && number <= most) {
                return Optional.of(number);
            }
        } catch (NumberFormatException none) {
            // Told below.
        }
        throw wrong(name, value, String.format("a whole number of %d to %d", least, most));
    }

    Optional<Float> number(String name) {
        return text(name).map(value -> number(name, value));
    }

    /** Numbers between commas. */
    List<Float> numbers(String name) {
        List<Float> numbers = new ArrayList<>();
        list(name).ifPresent(list -> list.forEach(value -> numbers.add(number(name, value))));
        return numbers;
    }

    private static float number(String name, String value) {
        try {
            return Float.parseFloat(value.trim());
        } catch (NumberFormatException none) {
            throw wrong(name, value, "a number");
        }
    }

    static ValidationException wrong(String name, String value, String wanted) {
        return new ValidationException(
                String.format("option '%s' is '%s'; it must be %s", name, value, wanted));
    }
}
