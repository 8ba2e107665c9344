package io.lancegateway.flink.types;

import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.ColumnBuilder;
import io.lancegateway.client.arrow.FixedWidthBuilder;
import java.util.List;
import java.util.function.Predicate;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;

/**
 * Appends changes of rows to batches of a table, with their kind in the last column. Of a row that
 * is deleted only the key counts: the rest may not even be there, and becomes null.
 */
public final class ChangeAppender implements Appender {

    private final ArrowBatchBuilder batch;
    private final FixedWidthBuilder kinds;
    private final int[] positions;
    private final Cell<?>[] cells;

    /** Of each column, whether a deleted row has none. */
    private final boolean[] onlyOfRows;

    /**
     * @param sets which columns of the row type the batch must have
     * @throws TypeMismatchException if a column cannot be written without loss, or is missing in
     *     the table
     */
    public ChangeAppender(
            RowType rowType, Predicate<String> sets, List<String> key, ArrowBatchBuilder batch) {
        this.batch = batch;
        ArrowSchema schema = batch.schema();
        for (String name : rowType.getFieldNames()) {
            if (sets.test(name) && schema.indexOf(name) < 0) {
                throw RowAppender.missing(name);
            }
        }
        int columns = schema.size() - 1;
        if (!schema.field(columns).name().equals(WriteHandle.CHANGE_KIND)) {
            throw new TypeMismatchException("the gateway takes no changes for this table");
        }
        this.kinds = (FixedWidthBuilder) batch.column(columns);
        ColumnBuilder[] builders = new ColumnBuilder[columns];
        this.onlyOfRows = new boolean[columns];
        for (int i = 0; i < columns; i++) {
            ArrowField field = schema.field(i);
            builders[i] = batch.column(i);
            onlyOfRows[i] = field.isNullable() && !key.contains(field.name());
        }
        RowAppender.Fields fields =
                RowAppender.Fields.of("", schema.fields().subList(0, columns), builders, rowType);
        this.positions = fields.positions;
        this.cells = fields.cells;
    }

    /** Whether the row of the key is no more after such a change. */
    public static boolean deletes(RowKind change) {
        return change == RowKind.DELETE || change == RowKind.UPDATE_BEFORE;
    }

    @Override
    public void append(RowData row) {
        boolean deleted = deletes(row.getRowKind());
        int column = 0;
        try {
            for (; column < cells.length; column++) {
                if (deleted && onlyOfRows[column]) {
                    batch.column(column).appendNull();
                } else {
                    cells[column].append(row, positions[column]);
                }
            }
        } catch (IllegalArgumentException | ArithmeticException unfit) {
            throw RowAppender.unfit(batch.schema().field(column), unfit);
        }
        kinds.appendByte(row.getRowKind().toByteValue());
        batch.endRow();
    }
}
