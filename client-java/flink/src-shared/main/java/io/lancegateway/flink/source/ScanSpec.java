package io.lancegateway.flink.source;

import com.google.protobuf.InvalidProtocolBufferException;
import io.lancegateway.client.arrow.ArrowSchema;
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
        return rows(request, rowType, paths, List.of());
    }

    /**
     * A scan of columns, and of metadata columns behind them.
     *
     * @param request which asks for the metadata columns
     * @param metadata what these are called in batches
     */
    public static ScanSpec rows(
            ScanRequest request, RowType rowType, List<List<String>> paths, List<String> metadata) {
        Projection.Builder projection = Projection.newBuilder();
        for (List<String> path : paths) {
            if (!path.isEmpty()) {
                projection.addColumns(Column.newBuilder().addAllPath(path));
            }
        }
        byte[] bytes = request.toBuilder().setProjection(projection).build().toByteArray();
        List<List<String>> copy = new ArrayList<>();
        paths.forEach(path -> copy.add(new ArrayList<>(path)));
        metadata.forEach(column -> copy.add(new ArrayList<>(List.of(column))));
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

    List<List<String>> paths() {
        return paths;
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
        return RowReader.of(schema, rowType, paths);
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
