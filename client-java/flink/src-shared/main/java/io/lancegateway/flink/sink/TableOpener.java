package io.lancegateway.flink.sink;

import com.google.protobuf.ByteString;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.Reason;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.flink.types.ArrowTypes;
import io.lancegateway.flink.types.RowAppender;
import io.lancegateway.flink.types.TypeMismatchException;
import io.lancegateway.proto.v1.BeginWriteRequest;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.WriteMode;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;

/**
 * Opens the table for a writer, with the schema that its rows are staged in: the table's if the
 * rows fit it, else, when the table is new or overwritten, one made from the row type. Changes of
 * rows are staged with the columns alone that they set.
 */
final class TableOpener {

    private final GatewayClient client;
    private final SinkSpec spec;

    TableOpener(GatewayClient client, SinkSpec spec) {
        this.client = client;
        this.spec = spec;
    }

    /** Opens the table, and creates it if it is absent: once, whoever races. */
    WriteHandle open(RowData firstRow) {
        WriteHandle table = openOrCreate(firstRow);
        return spec.merges() ? forChanges(table) : table;
    }

    /** Opens the table for changes if it is there. */
    Optional<WriteHandle> openPresent() {
        return begin().map(this::forChanges);
    }

    /** Opens the table, which is there, for changes of rows that were chosen in it. */
    WriteHandle openChosen() {
        return forChanges(client.beginWrite(request().build()));
    }

    private WriteHandle openOrCreate(RowData firstRow) {
        Optional<WriteHandle> present = begin();
        if (present.isPresent() && (!spec.overwrite() || fits(present.get().schema(), firstRow))) {
            return present.get();
        }
        try {
            return client.beginWrite(
                    request()
                            .setSchema(ipc(newSchema(firstRow)))
                            .setCreate(spec.newTable().options())
                            .build());
        } catch (LanceGatewayException refused) {
            if (refused.reason() == Reason.SCHEMA_MISMATCH && !spec.overwrite()) {
                // Another writer created it meanwhile, after a first row with a vector of another
                // length. What this writer's rows are worth is seen when they are appended.
                return begin().orElseThrow(() -> refused);
            }
            throw refused;
        }
    }

    private Optional<WriteHandle> begin() {
        try {
            return Optional.of(client.beginWrite(request().build()));
        } catch (LanceGatewayException failed) {
            if (failed.reason() == Reason.TABLE_NOT_FOUND) {
                return Optional.empty();
            }
            throw failed;
        }
    }

    private BeginWriteRequest.Builder request() {
        BeginWriteRequest.Builder request =
                BeginWriteRequest.newBuilder().setTable(spec.table()).setMode(mode(spec));
        if (spec.merges()) {
            request.addAllKey(spec.key());
        }
        spec.chosenIn().ifPresent(version -> request.setReadVersion(version).setByRowId(true));
        if (spec.overwrite()) {
            // Only stages: the run that decides about overwriting is named when the rows are
            // prepared for commit.
            request.setRunId(UUID.randomUUID().toString());
        }
        return request;
    }

    static WriteMode mode(SinkSpec spec) {
        if (spec.merges()) {
            return WriteMode.WRITE_MODE_MERGE;
        }
        return spec.overwrite() ? WriteMode.WRITE_MODE_OVERWRITE : WriteMode.WRITE_MODE_APPEND;
    }

    /** Leaves out the columns that the changes do not set: they stay as they are. */
    private WriteHandle forChanges(WriteHandle all) {
        checkKey();
        // The first one may be the id of the row.
        int first = spec.chosenIn().isPresent() ? 1 : 0;
        List<ArrowField> columns =
                all.schema().fields().subList(first, all.schema().size() - 1).stream()
                        .filter(column -> spec.sets(column.name()))
                        .collect(Collectors.toList());
        return columns.size() == all.schema().size() - 1 - first
                ? all
                : client.beginWrite(request().setSchema(ipc(ArrowSchema.of(columns))).build());
    }

    private void checkKey() {
        List<String> key =
                client.describeTable(
                                DescribeTableRequest.newBuilder().setTable(spec.table()).build())
                        .getPrimaryKeyList();
        if (spec.chosenIn().isPresent()) {
            key.stream().filter(spec::sets).forEach(SinkSpec::refuseToSet);
            return;
        }
        if (!key.isEmpty() && !Set.copyOf(key).equals(Set.copyOf(spec.key()))) {
            throw new ValidationException(
                    String.format(
                            "the table has the primary key %s, but %s was declared",
                            key, spec.key()));
        }
    }

    private ArrowSchema newSchema(RowData firstRow) {
        return ArrowSchema.of(
                List.of(
                        ArrowTypes.columns(
                                spec.rowType(),
                                spec.newTable().largeStrings(),
                                name -> vectorLength(firstRow, name))));
    }

    private static ByteString ipc(ArrowSchema schema) {
        return ByteString.copyFrom(schema.toIpc());
    }

    /** Length of the vectors of a column: as asked for, else as in the row; 0 if that is null. */
    private int vectorLength(RowData row, String name) {
        Integer asked = spec.newTable().vectorDimensions().get(name);
        if (asked != null) {
            return asked;
        }
        int index = spec.rowType().getFieldIndex(name);
        return row.isNullAt(index) ? 0 : row.getArray(index).size();
    }

    /** Whether a table that is overwritten can keep its schema: same columns, and they fit. */
    private boolean fits(ArrowSchema table, RowData firstRow) {
        RowType rowType = spec.rowType();
        if (table.size() != rowType.getFieldCount()) {
            return false;
        }
        try {
            new RowAppender(rowType, new ArrowBatchBuilder(table));
        } catch (TypeMismatchException other) {
            return false;
        }
        for (ArrowField field : table.fields()) {
            if (field.type().kind() != ArrowType.Kind.FIXED_SIZE_LIST) {
                if (spec.newTable().vectorDimensions().containsKey(field.name())) {
                    return false;
                }
                continue;
            }
            int length = vectorLength(firstRow, field.name());
            if (length != 0 && length != field.type().size()) {
                return false;
            }
        }
        return true;
    }
}
