package io.lancegateway.client.arrow;

import com.google.flatbuffers.FlatBufferBuilder;
import java.util.Arrays;
import org.apache.arrow.flatbuf.Buffer;
import org.apache.arrow.flatbuf.FieldNode;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.RecordBatch;

/** Lists the nodes and buffers of a batch, and writes the header that describes them. */
final class BodyWriter {

    /** Where buffers begin, so that a reader with wide registers needs no copy. */
    static final int ALIGNMENT = 64;

    private int[] nodes = new int[32];
    private int nodeCount;
    private byte[][] buffers = new byte[16][];
    private int[] sizes = new int[16];
    private int bufferCount;
    private int viewColumns;

    static int padding(long size) {
        return (int) (-size & (ALIGNMENT - 1));
    }

    void reset() {
        nodeCount = 0;
        bufferCount = 0;
        viewColumns = 0;
    }

    void node(int length, int nulls) {
        if (nodeCount + 2 > nodes.length) {
            nodes = Arrays.copyOf(nodes, nodes.length * 2);
        }
        nodes[nodeCount++] = length;
        nodes[nodeCount++] = nulls;
    }

    void buffer(byte[] bytes, int size) {
        if (bufferCount == buffers.length) {
            buffers = Arrays.copyOf(buffers, bufferCount * 2);
            sizes = Arrays.copyOf(sizes, bufferCount * 2);
        }
        buffers[bufferCount] = bytes;
        sizes[bufferCount++] = size;
    }

    /** The column that was just written has views with one data buffer. */
    void viewColumn() {
        viewColumns++;
    }

    EncodedBatch finish(int rows) {
        FlatBufferBuilder builder = new FlatBufferBuilder(256 + 24 * (nodeCount + bufferCount));
        RecordBatch.startNodesVector(builder, nodeCount / 2);
        for (int i = nodeCount - 2; i >= 0; i -= 2) {
            FieldNode.createFieldNode(builder, nodes[i], nodes[i + 1]);
        }
        int nodesAt = builder.endVector();

        long bodySize = 0;
        for (int i = 0; i < bufferCount; i++) {
            bodySize += sizes[i] + padding(sizes[i]);
        }
        RecordBatch.startBuffersVector(builder, bufferCount);
        long offset = bodySize;
        for (int i = bufferCount - 1; i >= 0; i--) {
            offset -= sizes[i] + padding(sizes[i]);
            Buffer.createBuffer(builder, offset, sizes[i]);
        }
        int buffersAt = builder.endVector();

        int variadicAt = 0;
        if (viewColumns > 0) {
            long[] counts = new long[viewColumns];
            Arrays.fill(counts, 1);
            variadicAt = RecordBatch.createVariadicBufferCountsVector(builder, counts);
        }
        RecordBatch.startRecordBatch(builder);
        RecordBatch.addLength(builder, rows);
        RecordBatch.addNodes(builder, nodesAt);
        RecordBatch.addBuffers(builder, buffersAt);
        if (variadicAt != 0) {
            RecordBatch.addVariadicBufferCounts(builder, variadicAt);
        }
        int batchAt = RecordBatch.endRecordBatch(builder);
        byte[] header = SchemaCodec.finish(builder, MessageHeader.RecordBatch, batchAt, bodySize);
        return new EncodedBatch(
                rows,
                header,
                Arrays.copyOf(buffers, bufferCount),
                Arrays.copyOf(sizes, bufferCount),
                bodySize);
    }
}
