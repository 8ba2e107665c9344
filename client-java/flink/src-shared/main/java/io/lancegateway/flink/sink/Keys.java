package io.lancegateway.flink.sink;

import io.lancegateway.client.WriteHandle;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/** Primary keys: columns that are never null, and whose values are compared as a whole. */
final class Keys {

    private Keys() {}

    /**
     * The row type with its key not nullable.
     *
     * @throws ValidationException if these columns can be no key of it
     */
    static RowType check(RowType rowType, List<String> key) {
        if (key.isEmpty()) {
            return rowType;
        }
        if (new HashSet<>(key).size() < key.size()) {
            throw new ValidationException("the primary key " + key + " names a column twice");
        }
        for (String name : key) {
            int index = rowType.getFieldIndex(name);
            if (index < 0) {
                throw new ValidationException(
                        String.format(
                                "primary key column '%s' is no column of the table: %s",
                                name, rowType.getFieldNames()));
            }
            checkType(name, rowType.getTypeAt(index));
        }
        List<RowType.RowField> fields = new ArrayList<>();
        for (RowType.RowField field : rowType.getFields()) {
            if (field.getName().equals(WriteHandle.CHANGE_KIND)) {
                throw new ValidationException(
                        String.format(
                                "a table with a primary key cannot have a column '%s'",
                                WriteHandle.CHANGE_KIND));
            }
            fields.add(
                    key.contains(field.getName())
                            ? new RowType.RowField(field.getName(), field.getType().copy(false))
                            : field);
        }
        return new RowType(rowType.isNullable(), fields);
    }

    private static void checkType(String name, LogicalType type) {
        switch (type.getTypeRoot()) {
            case ARRAY:
            case MAP:
            case MULTISET:
            case ROW:
                throw new ValidationException(
                        String.format(
                                "primary key column '%s': %s is no scalar type",
                                name, type.asSummaryString()));
            default:
        }
    }
}
