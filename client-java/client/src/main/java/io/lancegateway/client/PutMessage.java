package io.lancegateway.client;

import com.google.protobuf.CodedOutputStream;
import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor.Marshaller;
import io.lancegateway.client.FlightMessage.Wire;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.EncodedBatch;
import io.lancegateway.proto.flight.FlightDescriptor;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;

/**
 * A {@code FlightData} to send. The arrays of its batch are copied once, straight into the buffers
 * of the network.
 */
final class PutMessage {

    static final Marshaller<PutMessage> MARSHALLER = new MessageMarshaller();

    /** Everything before the body. */
    private final byte[] prefix;

    /** Null if there is no body. */
    private final EncodedBatch batch;

    private final long size;

    private PutMessage(byte[] prefix, EncodedBatch batch) {
        this.prefix = prefix;
        this.batch = batch;
        this.size = prefix.length + (batch == null ? 0 : batch.bodySize());
    }

    /** The first message of a stream. */
    static PutMessage schema(FlightDescriptor descriptor, ArrowSchema schema) {
        return of(descriptor.toByteArray(), schema.toMessage(), null);
    }

    static PutMessage batch(EncodedBatch batch) {
        return of(null, batch.header(), batch);
    }

    private static PutMessage of(byte[] descriptor, byte[] header, EncodedBatch batch) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(header.length + 64);
        CodedOutputStream out = CodedOutputStream.newInstance(bytes, 0);
        try {
            if (descriptor != null) {
                out.writeUInt32NoTag(Wire.DESCRIPTOR);
                out.writeByteArrayNoTag(descriptor);
            }
            out.writeUInt32NoTag(Wire.DATA_HEADER);
            out.writeByteArrayNoTag(header);
            if (batch != null) {
                out.writeUInt32NoTag(Wire.DATA_BODY);
                out.writeUInt64NoTag(batch.bodySize());
            }
            out.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new PutMessage(bytes.toByteArray(), batch);
    }

    /** Bytes on the wire. */
    long size() {
        return size;
    }

    private void writeTo(OutputStream out) throws IOException {
        out.write(prefix);
        if (batch != null) {
            batch.writeBody(out);
        }
    }

    private static final class MessageMarshaller implements Marshaller<PutMessage> {

        @Override
        public InputStream stream(PutMessage message) {
            return new MessageStream(message);
        }

        @Override
        public PutMessage parse(InputStream in) {
            throw new UnsupportedOperationException("only sent");
        }
    }

    /** Drained by the transport. Read by nobody else, but reading it works. */
    private static final class MessageStream extends InputStream implements KnownLength, Drainable {

        private final PutMessage message;
        private ByteArrayInputStream copy;
        private boolean drained;

        MessageStream(PutMessage message) {
            this.message = message;
        }

        @Override
        public int drainTo(OutputStream target) throws IOException {
            if (copy != null || drained) {
                return (int) copy().transferTo(target);
            }
            drained = true;
            message.writeTo(target);
            return (int) message.size;
        }

        @Override
        public int available() {
            if (drained) {
                return 0;
            }
            return copy == null ? (int) message.size : copy.available();
        }

        @Override
        public int read() throws IOException {
            return copy().read();
        }

        @Override
        public int read(byte[] target, int offset, int count) throws IOException {
            return copy().read(target, offset, count);
        }

        private ByteArrayInputStream copy() throws IOException {
            if (copy == null) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream((int) message.size);
                if (!drained) {
                    message.writeTo(bytes);
                }
                copy = new ByteArrayInputStream(bytes.toByteArray());
            }
            return copy;
        }
    }
}
