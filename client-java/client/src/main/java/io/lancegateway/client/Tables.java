package io.lancegateway.client;

import io.lancegateway.proto.v1.Table;
import io.lancegateway.proto.v1.TableName;
import java.util.List;

/** Ways to name a table. */
public final class Tables {

    private Tables() {}

    /**
     * By name below the gateway's warehouse: the namespaces from the outside in, then the table.
     */
    public static Table named(String... parts) {
        return named(List.of(parts));
    }

    /**
     * By name below the gateway's warehouse: the namespaces from the outside in, then the table.
     */
    public static Table named(List<String> parts) {
        return Table.newBuilder().setName(TableName.newBuilder().addAllParts(parts)).build();
    }

    /** By URI or absolute path of the dataset, where the operator allows it. */
    public static Table at(String uri) {
        return Table.newBuilder().setUri(uri).build();
    }
}
