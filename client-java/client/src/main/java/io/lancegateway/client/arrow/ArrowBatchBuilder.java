package io.lancegateway.client.arrow;

/**
 * Collects rows column by column, to be sent as one message. Reused: its arrays stay when it is
 * emptied. For one thread.
 *
 * <p>The builders of columns, by type:
 *
 * <ul>
 *   <li>{@link FixedWidthBuilder}: integers, floats, decimals, dates, times, timestamps, durations,
 *       intervals, fixed size binary
 *   <li>{@link BooleanBuilder}, {@link BinaryBuilder} (strings and binary, with their large and
 *       view forms), {@link NullBuilder}
 *   <li>{@link ListBuilder} (list, large list, map), {@link FixedSizeListBuilder}, {@link
 *       StructBuilder}
 * </ul>
 *
 * <p>A row is one value in each column, and then {@link #endRow()}.
 */
public final class ArrowBatchBuilder {

    private final ArrowSchema schema;
    private final ColumnBuilder[] columns;
    private final ColumnBuilder.SizeCounter size = new ColumnBuilder.SizeCounter();
    private final BodyWriter body = new BodyWriter();
    private final long bitsPerRow;
    private int rows;

    public ArrowBatchBuilder(ArrowSchema schema) {
        this.schema = schema;
        this.columns = new ColumnBuilder[schema.size()];
        long bits = 0;
        for (int i = 0; i < columns.length; i++) {
            columns[i] = ColumnBuilder.of(schema.field(i), size);
            bits += columns[i].bitsPerValue;
        }
        this.bitsPerRow = bits;
    }

    public ArrowSchema schema() {
        return schema;
    }

    /** The builder of a column; the same one for the life of this builder. */
    public ColumnBuilder column(int index) {
        return columns[index];
    }

    /** Counts a row, after its values were appended. */
    public void endRow() {
        rows++;
    }

    /** Counts rows, after their values were appended. */
    public void endRows(int count) {
        rows += count;
    }

    public int rows() {
        return rows;
    }

    public boolean isEmpty() {
        return rows == 0;
    }

    /** Bytes of the finished rows as they will be sent, without padding and headers. */
    public long sizeInBytes() {
        return (rows * bitsPerRow + size.bits + 7) >>> 3;
    }

    /**
     * The rows as a message. It shares the arrays of this builder: it is valid until rows are
     * appended or the builder is reset.
     *
     * @throws IllegalStateException if a column has not one value for each row
     */
    public EncodedBatch encode() {
        body.reset();
        for (ColumnBuilder column : columns) {
            if (column.length() != rows) {
                throw new IllegalStateException(
                        String.format(
                                "column '%s' has %d values for %d rows",
                                column.field.name(), column.length(), rows));
            }
            column.encode(body);
        }
        return body.finish(rows);
    }

    /** Forgets all rows. */
    public void reset() {
        for (ColumnBuilder column : columns) {
            column.reset();
        }
        size.bits = 0;
        rows = 0;
    }
}
