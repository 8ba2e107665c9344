package io.lancegateway.flink.index;

import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.flink.util.PortableFunction;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.types.Row;

/**
 * A function of SQL that does something with the indexes of a table, and tells it as rows.
 *
 * <p>A task that runs again repeats its requests by the same ids, so that nothing is done twice.
 */
public abstract class IndexFunction extends PortableFunction<Row> {

    private static final long serialVersionUID = 1L;

    private static final String GATEWAY = "gateway.uri";

    @Nullable private transient String jobId;

    @Override
    public void open(FunctionContext context) {
        // Without one, no call is a repeat of another.
        jobId =
                context.getMetricGroup()
                        .getAllVariables()
                        .getOrDefault("<job_id>", UUID.randomUUID().toString());
    }

    /** Names and values to a map; {@code gateway.uri} may be among them everywhere. */
    protected static Map<String, String> options(String... pairs) {
        if (pairs.length % 2 == 1) {
            throw new ValidationException(
                    String.format("option '%s' has no value", pairs[pairs.length - 1]));
        }
        Map<String, String> options = new TreeMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            if (options.put(pairs[i], pairs[i + 1]) != null) {
                throw new ValidationException(
                        String.format("option '%s' is given twice", pairs[i]));
            }
        }
        return options;
    }

    /** Takes what all functions have out of the options. */
    protected static Indexes connect(String path, Map<String, String> options) {
        return new Indexes(new GatewayAddress(options.remove(GATEWAY)), path);
    }

    /** Refuses options that the function does not have. */
    protected static void check(Map<String, String> options, String... known) {
        Set<String> all = new TreeSet<>(List.of(known));
        all.add(GATEWAY);
        for (String name : options.keySet()) {
            if (!all.contains(name)) {
                throw new ValidationException(
                        String.format(
                                "there is no option '%s'; there is %s",
                                name, String.join(", ", all)));
            }
        }
    }

    /** An option that is true or false; false if it is not given. */
    protected static boolean flag(String name, Map<String, String> options) {
        return options.containsKey(name) && IndexOptions.flag(name, options.get(name));
    }

    /** The id of a call with these arguments in this job. */
    protected final String requestId(Object... arguments) {
        String call = jobId + getClass().getName() + List.of(arguments);
        return UUID.nameUUIDFromBytes(call.getBytes(StandardCharsets.UTF_8)).toString();
    }
}
