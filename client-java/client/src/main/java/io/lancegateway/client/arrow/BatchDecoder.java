package io.lancegateway.client.arrow;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.DictionaryBatch;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.RecordBatch;

/**
 * Turns the messages of one stream into batches. Buffers stay where they are: the vectors of a
 * batch point into the body of its message. Only values that come as indices into a dictionary are
 * copied.
 */
public final class BatchDecoder {

    private ArrowSchema schema;

    /** The columns and parts of columns that come as indices, by the id of their dictionary. */
    private final Map<Long, ArrowField> dictionaryFields = new HashMap<>();

    /** What came for each dictionary: its first values, then those that were added. */
    private final Map<Long, List<ArrowVector>> dictionaries = new HashMap<>();

    /** The columns, or null before the schema has come. */
    public ArrowSchema schema() {
        return schema;
    }

    /**
     * Takes the next message.
     *
     * @param header an Arrow IPC Message, without its length
     * @param body belongs to the batch from now on
     * @return a batch, or null if the message held something else
     * @throws ArrowFormatException if it is no Arrow, does not fit what came before, or is not
     *     supported
     */
    public ArrowBatch decode(ByteBuffer header, byte[] body) {
        try {
            Message message = Message.getRootAsMessage(header);
            if (message.bodyLength() > body.length) {
                throw new ArrowFormatException(
                        String.format(
                                "a message announces a body of %d bytes and has %d",
                                message.bodyLength(), body.length));
            }
            switch (message.headerType()) {
                case MessageHeader.Schema:
                    takeSchema(SchemaCodec.decode(message));
                    return null;
                case MessageHeader.DictionaryBatch:
                    takeDictionary((DictionaryBatch) message.header(new DictionaryBatch()), body);
                    return null;
                case MessageHeader.RecordBatch:
                    return batch((RecordBatch) message.header(new RecordBatch()), body);
                default:
                    throw new ArrowFormatException(
                            "a message of kind "
                                    + message.headerType()
                                    + " in a stream of batches");
            }
        } catch (IndexOutOfBoundsException
                | BufferUnderflowException
                | NegativeArraySizeException
                | ArithmeticException e) {
            throw new ArrowFormatException("the bytes are no Arrow message", e);
        }
    }

    private void takeSchema(ArrowSchema newSchema) {
        schema = newSchema;
        dictionaries.clear();
        dictionaryFields.clear();
        newSchema.fields().forEach(this::findDictionaries);
    }

    private void findDictionaries(ArrowField field) {
        if (field.dictionary() != null) {
            dictionaryFields.put(field.dictionary().id, field.withoutDictionary());
        }
        field.children().forEach(this::findDictionaries);
    }

    private void takeDictionary(DictionaryBatch message, byte[] body) {
        ArrowField field = dictionaryFields.get(message.id());
        if (field == null) {
            throw new ArrowFormatException("a dictionary that no field has: " + message.id());
        }
        VectorReader reader = new VectorReader(message.data(), body, dictionaries);
        ArrowVector values = reader.read(field);
        // Batches that were given out keep what they were decoded with.
        List<ArrowVector> parts =
                message.isDelta()
                        ? new ArrayList<>(dictionaries.getOrDefault(message.id(), List.of()))
                        : new ArrayList<>();
        parts.add(values);
        dictionaries.put(message.id(), parts);
    }

    private ArrowBatch batch(RecordBatch message, byte[] body) {
        if (schema == null) {
            throw new ArrowFormatException("a batch came before the schema");
        }
        VectorReader reader = new VectorReader(message, body, dictionaries);
        int rows = Math.toIntExact(message.length());
        ArrowVector[] columns = new ArrowVector[schema.size()];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = reader.read(schema.field(i));
            if (columns[i].length() != rows) {
                throw new ArrowFormatException(
                        String.format(
                                "column '%s' has %d values in a batch of %d rows",
                                schema.field(i).name(), columns[i].length(), rows));
            }
        }
        return new ArrowBatch(schema, rows, columns, body.length);
    }
}
