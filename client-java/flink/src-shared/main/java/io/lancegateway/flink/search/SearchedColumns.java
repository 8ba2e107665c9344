package io.lancegateway.flink.search;

import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowType.Kind;
import io.lancegateway.proto.v1.Column;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.table.api.ValidationException;

/** Finds the columns that a search names in a table. */
final class SearchedColumns {

    private static final Set<Kind> ELEMENTS =
            EnumSet.of(Kind.FLOAT16, Kind.FLOAT32, Kind.FLOAT64, Kind.INT8, Kind.UINT8);
    private static final Set<Kind> TEXTS = EnumSet.of(Kind.UTF8, Kind.LARGE_UTF8, Kind.UTF8_VIEW);

    private final String path;
    private final ArrowSchema schema;

    SearchedColumns(String path, ArrowSchema schema) {
        this.path = path;
        this.schema = schema;
    }

    /** A column of vectors. */
    Column vectors(String name) {
        Found found = find(name);
        ArrowField field = found.field;
        boolean several = field.type().kind() == Kind.LIST && isVector(field.child(0));
        if (!isVector(field) && !several) {
            throw new ValidationException(
                    String.format(
                            "column '%s' of '%s' is %s: the nearest are found in columns of"
                                    + " vectors, which are lists of numbers with one length for all"
                                    + " rows",
                            name, path, field.type()));
        }
        return found.column;
    }

    /** A column of texts. */
    Column texts(String name) {
        Found found = find(name);
        Kind kind = found.field.type().kind();
        boolean list =
                (kind == Kind.LIST || kind == Kind.LARGE_LIST)
                        && TEXTS.contains(found.field.child(0).type().kind());
        if (!TEXTS.contains(kind) && !list) {
            throw new ValidationException(
                    String.format(
                            "column '%s' of '%s' is %s: texts are found in columns of strings",
                            name, path, found.field.type()));
        }
        return found.column;
    }

    /** The columns of the result with these names, in this order. */
    List<ArrowField> projected(List<String> names) {
        return names.stream()
                .map(
                        name -> {
                            int index = schema.indexOf(name);
                            if (index < 0) {
                                throw missing(name);
                            }
                            return schema.field(index);
                        })
                .collect(Collectors.toList());
    }

    private static boolean isVector(ArrowField field) {
        return field.type().kind() == Kind.FIXED_SIZE_LIST
                && ELEMENTS.contains(field.child(0).type().kind());
    }

    /** A column of exactly this name; else the name has dots, and goes down into structs. */
    private Found find(String name) {
        int index = schema.indexOf(name);
        if (index >= 0) {
            return new Found(Column.newBuilder().addPath(name).build(), schema.field(index));
        }
        Column.Builder column = Column.newBuilder();
        List<ArrowField> fields = schema.fields();
        ArrowField field = null;
        for (String part : name.split("\\.", -1)) {
            field =
                    fields.stream()
                            .filter(candidate -> candidate.name().equals(part))
                            .findFirst()
                            .orElseThrow(() -> missing(name));
            fields = field.type().kind() == Kind.STRUCT ? field.children() : List.of();
            column.addPath(part);
        }
        return new Found(column.build(), field);
    }

    private ValidationException missing(String name) {
        return new ValidationException(
                String.format(
                        "'%s' has no column '%s'; it has %s",
                        path,
                        name,
                        schema.fields().stream()
                                .map(ArrowField::name)
                                .collect(Collectors.joining(", "))));
    }

    private static final class Found {
        final Column column;
        final ArrowField field;

        Found(Column column, ArrowField field) {
            this.column = column;
            this.field = field;
        }
    }
}
