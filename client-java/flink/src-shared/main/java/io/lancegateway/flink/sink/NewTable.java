package io.lancegateway.flink.sink;

import io.lancegateway.proto.v1.CreateOptions;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a table is made with, if it is not there yet. */
public final class NewTable implements Serializable {

    private static final long serialVersionUID = 1L;

    private final Set<String> largeStrings;
    private final Map<String, Integer> vectorDimensions;
    private final String storageVersion;
    private final Map<String, String> properties;
    private final List<String> primaryKey;

    /**
     * @param largeStrings columns of strings with wide offsets
     * @param vectorDimensions lengths of vectors, by column; the first row tells the others
     * @param storageVersion Lance's file format; empty: the gateway decides
     * @param properties kept with the table
     * @param primaryKey columns that tell its rows apart; empty: none
     */
    public NewTable(
            Set<String> largeStrings,
            Map<String, Integer> vectorDimensions,
            String storageVersion,
            Map<String, String> properties,
            List<String> primaryKey) {
        this.largeStrings = Set.copyOf(largeStrings);
        this.vectorDimensions = Map.copyOf(vectorDimensions);
        this.storageVersion = storageVersion;
        this.properties = Map.copyOf(properties);
        this.primaryKey = List.copyOf(primaryKey);
    }

    /** As the gateway makes it, with lengths of vectors from the first row. */
    public static NewTable byDefault() {
        return new NewTable(Set.of(), Map.of(), "", Map.of(), List.of());
    }

    Set<String> largeStrings() {
        return largeStrings;
    }

    Map<String, Integer> vectorDimensions() {
        return vectorDimensions;
    }

    String storageVersion() {
        return storageVersion;
    }

    List<String> primaryKey() {
        return primaryKey;
    }

    CreateOptions options() {
        return CreateOptions.newBuilder()
                .setDataStorageVersion(storageVersion)
                .putAllProperties(properties)
                .addAllPrimaryKey(primaryKey)
                .build();
    }
}
