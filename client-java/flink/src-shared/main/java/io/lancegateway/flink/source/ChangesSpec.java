package io.lancegateway.flink.source;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.types.TypeMismatchException;
import io.lancegateway.proto.v1.Changes;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Table;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.apache.flink.table.types.logical.RowType;

/** Which changes are read, and as which rows. */
public final class ChangesSpec implements Serializable {

    private static final long serialVersionUID = 1L;

    private static final String METADATA_PREFIX = "$metadata$";

    private final ScanSpec rows;
    private final List<ChangeMetadata> metadata;
    private final ChangeFeed feed;

    /**
     * @param rows the columns of the table; its request has no version, filter and limit
     * @param metadata what comes behind them
     */
    public ChangesSpec(ScanSpec rows, List<ChangeMetadata> metadata, ChangeFeed feed) {
        this.rows = rows;
        this.metadata = new ArrayList<>(metadata);
        this.feed = feed;
    }

    ChangeFeed feed() {
        return feed;
    }

    Table table() {
        return rows.request().getTable();
    }

    /** How messages name the table. */
    String tableName() {
        Table table = table();
        return table.hasName() ? String.join(".", table.getName().getPartsList()) : table.getUri();
    }

    /** Asks for all changes, for so many readers. */
    ScanRequest request(int parts) {
        return request(start().toBuilder().setParts(parts).build());
    }

    /** Asks how far changes go that begin elsewhere. */
    ScanRequest request(Changes changes) {
        return rows.request().toBuilder().setChanges(changes).build();
    }

    /** The version after which changes begin, if they begin after one that is named. */
    OptionalLong startVersion() {
        Changes start = start();
        return start.getAfter().hasVersion()
                ? OptionalLong.of(start.getAfter().getVersion())
                : OptionalLong.empty();
    }

    private Changes start() {
        try {
            return Changes.parseFrom(feed.start());
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the change feed in the job graph is none", corrupt);
        }
    }

    /** The rows that come out. A column of the table may have the name of a metadata key. */
    RowType rowType() {
        List<RowType.RowField> fields = new ArrayList<>(rows.rowType().getFields());
        metadata.forEach(
                column ->
                        fields.add(
                                new RowType.RowField(
                                        METADATA_PREFIX + column.key(), column.logicalType())));
        return new RowType(rows.rowType().isNullable(), fields);
    }

    /**
     * How changes are read from batches of this schema.
     *
     * @throws TypeMismatchException if a column does not fit its field
     */
    ChangesRows reader(ArrowSchema schema) {
        return new ChangesRows(rows.reader(schema), metadata, schema.size());
    }
}
