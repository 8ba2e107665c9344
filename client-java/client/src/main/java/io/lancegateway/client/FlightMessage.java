package io.lancegateway.client;

import io.grpc.MethodDescriptor.Marshaller;
import io.lancegateway.client.arrow.ArrowFormatException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/**
 * A {@code FlightData} as it came. Its body was copied once, from the buffers of the network into
 * the array that its batch keeps.
 */
final class FlightMessage {

    static final Marshaller<FlightMessage> MARSHALLER = new MessageMarshaller();

    private static final byte[] EMPTY = new byte[0];

    /** An Arrow IPC message; empty if there is none. */
    final ByteBuffer header;

    /** What the gateway says of the rows; empty if nothing. */
    final byte[] about;

    final byte[] body;

    private FlightMessage(byte[] header, byte[] about, byte[] body) {
        this.header = ByteBuffer.wrap(header);
        this.about = about;
        this.body = body;
    }

    private static final class MessageMarshaller implements Marshaller<FlightMessage> {

        @Override
        public InputStream stream(FlightMessage message) {
            throw new UnsupportedOperationException("only received");
        }

        @Override
        public FlightMessage parse(InputStream in) {
            try {
                return read(in);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private static FlightMessage read(InputStream in) throws IOException {
            byte[] header = EMPTY;
            byte[] about = EMPTY;
            byte[] body = EMPTY;
            int first;
            while ((first = in.read()) >= 0) {
                int tag = (int) varint(in, first);
                if (tag == Wire.DATA_HEADER) {
                    header = bytes(in);
                } else if (tag == Wire.APP_METADATA) {
                    about = bytes(in);
                } else if (tag == Wire.DATA_BODY) {
                    body = bytes(in);
                } else {
                    skip(in, tag & 7);
                }
            }
            return new FlightMessage(header, about, body);
        }

        private static byte[] bytes(InputStream in) throws IOException {
            byte[] bytes = new byte[length(in)];
            if (in.readNBytes(bytes, 0, bytes.length) < bytes.length) {
                throw new EOFException("a FlightData ends early");
            }
            return bytes;
        }

        /** A length, which is not believed if the message is shorter. */
        private static int length(InputStream in) throws IOException {
            long length = varint(in, in.read());
            if (length < 0 || length > in.available()) {
                throw new ArrowFormatException(
                        "a FlightData has a part of " + length + " bytes beyond its end");
            }
            return (int) length;
        }

        private static void skip(InputStream in, int wireType) throws IOException {
            switch (wireType) {
                case 0:
                    varint(in, in.read());
                    return;
                case 1:
                    drop(in, 8);
                    return;
                case 2:
                    drop(in, length(in));
                    return;
                case 5:
                    drop(in, 4);
                    return;
                default:
                    throw new ArrowFormatException("the bytes are no FlightData");
            }
        }

        private static void drop(InputStream in, long count) throws IOException {
            long left = count;
            while (left > 0) {
                long skipped = in.skip(left);
                if (skipped <= 0) {
                    throw new EOFException("a FlightData ends early");
                }
                left -= skipped;
            }
        }

        private static long varint(InputStream in, int first) throws IOException {
            long value = 0;
            int next = first;
            for (int shift = 0; shift < 64; shift += 7) {
                if (next < 0) {
                    throw new EOFException("a FlightData ends early");
                }
                value |= (long) (next & 0x7f) << shift;
                if (next < 0x80) {
                    return value;
                }
                next = in.read();
            }
            throw new ArrowFormatException("the bytes are no FlightData");
        }
    }

    /** The tags of a FlightData's fields, all of them bytes. */
    static final class Wire {
        static final int DESCRIPTOR = 1 << 3 | 2;
        static final int DATA_HEADER = 2 << 3 | 2;
        static final int APP_METADATA = 3 << 3 | 2;
        static final int DATA_BODY = 1000 << 3 | 2;

        private Wire() {}
    }
}
