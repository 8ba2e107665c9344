package io.lancegateway.flink.source;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.types.ColumnReader;
import io.lancegateway.flink.types.ColumnReaders;
import io.lancegateway.flink.types.TypeMismatchException;
import io.lancegateway.proto.v1.Column;
import io.lancegateway.proto.v1.Projection;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.table.types.logical.RowType;

/** What is read, and as which row. */
public final class ScanSpec implements Serializable {

    private static final long serialVersionUID = 1L;

    /** A ScanRequest; bytes, because state and job graphs outlive classes. */
    private final byte[] request;

    private final RowType rowType;

    /** For each field of the row the column it comes from, names from the top down; empty: null. */
    private final List<List<String>> paths;

    private final boolean counting;

    private ScanSpec(byte[] request, RowType rowType, List<List<String>> paths, boolean counting) {
        this.request = request;
        this.rowType = rowType;
        this.paths = paths;
        this.counting = counting;
    }

    /**
     * A scan of columns.
     *
     * @param request without projection
     * @param rowType the rows that come out
     * @param paths for each field the column it comes from; an empty path gives nulls
     */
    public static ScanSpec rows(ScanRequest request, RowType rowType, List<List<String>> paths) {
        Projection.Builder projection = Projection.newBuilder();
        for (List<String> path : paths) {
            if (!path.isEmpty()) {
                projection.addColumns(Column.newBuilder().addAllPath(path));
            }
        }
        byte[] bytes = request.toBuilder().setProjection(projection).build().toByteArray();
        List<List<String>> copy = new ArrayList<>();
        paths.forEach(path -> copy.add(new ArrayList<>(path)));
        return new ScanSpec(bytes, rowType, copy, false);
    }

    /** The number of rows, as one row of one BIGINT. */
    public static ScanSpec count(ScanRequest request, RowType rowType) {
        return new ScanSpec(request.toByteArray(), rowType, new ArrayList<>(), true);
    }

    public ScanRequest request() {
        try {
            return ScanRequest.parseFrom(request);
        } catch (InvalidProtocolBufferException corrupt) {
            throw new IllegalStateException("the scan in the job graph is no ScanRequest", corrupt);
        }
    }

    public RowType rowType() {
        return rowType;
    }

    boolean counting() {
        return counting;
    }

    /**
     * How each field of the row is read from batches of this schema.
     *
     * @throws TypeMismatchException if one cannot
     */
    RowReader reader(ArrowSchema schema) {
        int fields = rowType.getFieldCount();
        int[][] positions = new int[fields][];
        ColumnReader[] readers = new ColumnReader[fields];
        for (int i = 0; i < fields; i++) {
            List<String> path = paths.get(i);
            if (path.isEmpty()) {
                continue;
            }
            positions[i] = new int[path.size()];
            ArrowField field = descend(schema, path, positions[i]);
            readers[i] =
                    ColumnReaders.of(field.withName(String.join(".", path)), rowType.getTypeAt(i));
        }
        return new RowReader(rowType, positions, readers);
    }

    private static ArrowField descend(ArrowSchema schema, List<String> path, int[] positions) {
        List<ArrowField> fields = schema.fields();
        ArrowField field = null;
        for (int depth = 0; depth < positions.length; depth++) {
            positions[depth] = position(fields, path.get(depth));
            if (positions[depth] < 0) {
                throw new TypeMismatchException(
                        String.format("column '%s' does not exist", String.join(".", path)));
            }
            field = fields.get(positions[depth]);
            fields = field.children();
        }
        return field;
    }

    private static int position(List<ArrowField> fields, String name) {
        for (int i = 0; i < fields.size(); i++) {
            if (fields.get(i).name().equals(name)) {
                return i;
            }
        }
        return -1;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ScanSpec)) {
            return false;
        }
        ScanSpec that = (ScanSpec) other;
        return Arrays.equals(request, that.request)
                && rowType.equals(that.rowType)
                && paths.equals(that.paths)
                && counting == that.counting;
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(request) + rowType.hashCode();
    }
}
