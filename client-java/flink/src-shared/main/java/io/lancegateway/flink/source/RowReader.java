package io.lancegateway.flink.source;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ArrowVector;
import io.lancegateway.client.arrow.StructVector;
import io.lancegateway.flink.types.ColumnReader;
import io.lancegateway.flink.types.ColumnReaders;
import io.lancegateway.flink.types.RowIds;
import io.lancegateway.flink.types.TypeMismatchException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.columnar.ColumnarRowData;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.VectorizedColumnBatch;
import org.apache.flink.table.types.logical.RowType;

/** Shows the batches of one stream as rows. */
public final class RowReader {

    private static final ColumnVector NULLS = index -> true;

    private final RowType rowType;

    /** For each field the way down to its column; null: the field is null. */
    private final int[][] positions;

    private final ColumnReader[] readers;

    private RowReader(RowType rowType, int[][] positions, ColumnReader[] readers) {
        this.rowType = rowType;
        this.positions = positions;
        this.readers = readers;
    }

    /**
     * How rows are read from batches of this schema, whose columns have the names of their fields.
     *
     * @throws TypeMismatchException if a column is not there, or does not fit its field
     */
    public static RowReader of(ArrowSchema schema, RowType rowType) {
        List<List<String>> paths = new ArrayList<>();
        rowType.getFieldNames().forEach(name -> paths.add(List.of(name)));
        return of(schema, rowType, paths);
    }

    /**
     * @param paths for each field the column it comes from; an empty path gives nulls
     */
    static RowReader of(ArrowSchema schema, RowType rowType, List<List<String>> paths) {
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
                    ColumnReaders.of(
                            RowIds.shown(field.withName(String.join(".", path))),
                            rowType.getTypeAt(i));
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

    /** The rows of a batch, one object that moves over them. */
    RowBatch read(ArrowBatch batch) {
        return RowBatch.columnar(columns(batch), batch.rows(), batch.sizeInBytes());
    }

    /** The rows of a batch, each an object of its own, which may be kept. */
    public List<RowData> rows(ArrowBatch batch) {
        VectorizedColumnBatch columns = new VectorizedColumnBatch(columns(batch));
        columns.setNumRows(batch.rows());
        List<RowData> rows = new ArrayList<>(batch.rows());
        for (int i = 0; i < batch.rows(); i++) {
            rows.add(new ColumnarRowData(columns, i));
        }
        return rows;
    }

    /** The fields of the row type. */
    ColumnVector[] columns(ArrowBatch batch) {
        ColumnVector[] columns = new ColumnVector[positions.length];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = positions[i] == null ? NULLS : column(batch, i);
        }
        return columns;
    }

    private ColumnVector column(ArrowBatch batch, int field) {
        int[] way = positions[field];
        ArrowVector vector = batch.column(way[0]);
        List<ArrowVector> structs = new ArrayList<>();
        for (int depth = 1; depth < way.length; depth++) {
            if (vector.hasNulls()) {
                structs.add(vector);
            }
            vector = ((StructVector) vector).child(way[depth]);
        }
        boolean nulls = vector.hasNulls() || !structs.isEmpty();
        if (nulls && !rowType.getTypeAt(field).isNullable()) {
            throw new IllegalStateException(
                    String.format(
                            "column '%s' is declared NOT NULL, but the table has nulls there",
                            rowType.getFieldNames().get(field)));
        }
        return ColumnReaders.below(structs, readers[field].read(vector));
    }
}
