package io.lancegateway.client.arrow;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** A column, or a part of one: its name, type and children. Immutable. */
public final class ArrowField {

    private final String name;
    private final ArrowType type;
    private final boolean nullable;
    private final List<ArrowField> children;
    private final Map<String, String> metadata;
    private final Dictionary dictionary;

    private ArrowField(
            String name,
            ArrowType type,
            boolean nullable,
            List<ArrowField> children,
            Map<String, String> metadata,
            Dictionary dictionary) {
        this.name = Objects.requireNonNull(name, "name");
        this.type = Objects.requireNonNull(type, "type");
        this.nullable = nullable;
        this.children = List.copyOf(children);
        this.metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
        this.dictionary = dictionary;
        checkChildren();
    }

    /** A field that may hold nulls. */
    public static ArrowField nullable(String name, ArrowType type, ArrowField... children) {
        return new ArrowField(name, type, true, List.of(children), Map.of(), null);
    }

    /** A field without nulls. */
    public static ArrowField required(String name, ArrowType type, ArrowField... children) {
        return new ArrowField(name, type, false, List.of(children), Map.of(), null);
    }

    static ArrowField of(
            String name,
            ArrowType type,
            boolean nullable,
            List<ArrowField> children,
            Map<String, String> metadata,
            Dictionary dictionary) {
        return new ArrowField(name, type, nullable, children, metadata, dictionary);
    }

    /** The same field with other metadata. */
    public ArrowField withMetadata(Map<String, String> metadata) {
        return new ArrowField(name, type, nullable, children, metadata, dictionary);
    }

    /** The same field with another name. */
    public ArrowField withName(String name) {
        return new ArrowField(name, type, nullable, children, metadata, dictionary);
    }

    ArrowField withoutDictionary() {
        return new ArrowField(name, type, nullable, children, metadata, null);
    }

    public String name() {
        return name;
    }

    /** The type of the values, also if a batch carries them as indices into a dictionary. */
    public ArrowType type() {
        return type;
    }

    public boolean isNullable() {
        return nullable;
    }

    public List<ArrowField> children() {
        return children;
    }

    public ArrowField child(int index) {
        return children.get(index);
    }

    public Map<String, String> metadata() {
        return metadata;
    }

    /** How batches carry the values, if as indices into a dictionary, else null. */
    Dictionary dictionary() {
        return dictionary;
    }

    private void checkChildren() {
        switch (type.kind()) {
            case STRUCT:
                return;
            case LIST:
            case LARGE_LIST:
            case FIXED_SIZE_LIST:
                expectChildren(1);
                return;
            case MAP:
                expectChildren(1);
                ArrowField entries = children.get(0);
                if (entries.type().kind() != ArrowType.Kind.STRUCT
                        || entries.children().size() != 2) {
                    throw new IllegalArgumentException(
                            "field '" + name + "': a map holds structs of key and value");
                }
                return;
            default:
                expectChildren(0);
        }
    }

    private void expectChildren(int expected) {
        if (children.size() != expected) {
            throw new IllegalArgumentException(
                    String.format(
                            "field '%s': %s has %d children, not %d",
                            name, type, expected, children.size()));
        }
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ArrowField)) {
            return false;
        }
        ArrowField that = (ArrowField) other;
        return name.equals(that.name)
                && type.equals(that.type)
                && nullable == that.nullable
                && children.equals(that.children)
                && metadata.equals(that.metadata)
                && Objects.equals(dictionary, that.dictionary);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, type, nullable, children, metadata, dictionary);
    }

    @Override
    public String toString() {
        return name
                + ": "
                + type
                + (children.isEmpty() ? "" : children.toString())
                + (nullable ? "" : " not null");
    }

    /** How the values of a field are carried as indices. */
    static final class Dictionary {
        final long id;
        final ArrowType indexType;
        final boolean ordered;

        Dictionary(long id, ArrowType indexType, boolean ordered) {
            this.id = id;
            this.indexType = indexType;
            this.ordered = ordered;
        }

        @Override
        public boolean equals(Object other) {
            if (!(other instanceof Dictionary)) {
                return false;
            }
            Dictionary that = (Dictionary) other;
            return id == that.id && indexType.equals(that.indexType) && ordered == that.ordered;
        }

        @Override
        public int hashCode() {
            return Objects.hash(id, indexType, ordered);
        }
    }
}
