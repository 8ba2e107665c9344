package io.lancegateway.client.arrow;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The columns of a table or of a stream of batches. Immutable. */
public final class ArrowSchema {

    private final List<ArrowField> fields;
    private final Map<String, String> metadata;

    private ArrowSchema(List<ArrowField> fields, Map<String, String> metadata) {
        this.fields = List.copyOf(fields);
        this.metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
    }

    public static ArrowSchema of(ArrowField... fields) {
        return new ArrowSchema(List.of(fields), Map.of());
    }

    public static ArrowSchema of(List<ArrowField> fields) {
        return new ArrowSchema(fields, Map.of());
    }

    public static ArrowSchema of(List<ArrowField> fields, Map<String, String> metadata) {
        return new ArrowSchema(fields, metadata);
    }

    /**
     * Reads an encapsulated Arrow IPC schema message, as it stands in a `FlightInfo` and in the
     * gateway's messages.
     *
     * @throws IllegalArgumentException if it is none, or has a type that this client cannot hold
     */
    public static ArrowSchema fromIpc(byte[] message) {
        return fromIpc(ByteBuffer.wrap(message));
    }

    /** The same from a buffer, whose position does not move. */
    public static ArrowSchema fromIpc(ByteBuffer message) {
        return SchemaCodec.decodeEncapsulated(message);
    }

    /**
     * An encapsulated Arrow IPC schema message. Fields are not marked as dictionaries, since this
     * client sends plain values.
     */
    public byte[] toIpc() {
        return SchemaCodec.encodeEncapsulated(this);
    }

    /** The same message without its length, as it stands in a `FlightData`. */
    public byte[] toMessage() {
        return SchemaCodec.encode(this);
    }

    public List<ArrowField> fields() {
        return fields;
    }

    public ArrowField field(int index) {
        return fields.get(index);
    }

    /** Number of columns. */
    public int size() {
        return fields.size();
    }

    /** Position of the first column of this name, or -1. */
    public int indexOf(String name) {
        for (int i = 0; i < fields.size(); i++) {
            if (fields.get(i).name().equals(name)) {
                return i;
            }
        }
        return -1;
    }

    public Map<String, String> metadata() {
        return metadata;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ArrowSchema
                && fields.equals(((ArrowSchema) other).fields)
                && metadata.equals(((ArrowSchema) other).metadata);
    }

    @Override
    public int hashCode() {
        return 31 * fields.hashCode() + metadata.hashCode();
    }

    @Override
    public String toString() {
        return fields.toString();
    }
}
