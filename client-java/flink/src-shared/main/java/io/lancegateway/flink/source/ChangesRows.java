package io.lancegateway.flink.source;

import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.FixedWidthVector;
import io.lancegateway.flink.types.ColumnReaders;
import java.util.List;
import org.apache.flink.table.data.columnar.vector.ColumnVector;
import org.apache.flink.table.data.columnar.vector.LongColumnVector;

/** Shows the batches of one stream of changes as rows. */
final class ChangesRows {

    /** Columns behind those of the table: kind, version, time. */
    private static final int ABOUT_THE_CHANGE = 3;

    private final RowReader rows;
    private final List<ChangeMetadata> metadata;
    private final int kind;

    /**
     * @param columns of a batch
     */
    ChangesRows(RowReader rows, List<ChangeMetadata> metadata, int columns) {
        this.rows = rows;
        this.metadata = metadata;
        this.kind = columns - ABOUT_THE_CHANGE;
    }

    ChangesChunk read(ArrowBatch batch) {
        FixedWidthVector kinds = (FixedWidthVector) batch.column(kind);
        FixedWidthVector versions = (FixedWidthVector) batch.column(kind + 1);
        FixedWidthVector times = (FixedWidthVector) batch.column(kind + 2);
        ColumnVector[] table = rows.columns(batch);
        ColumnVector[] columns = new ColumnVector[table.length + metadata.size()];
        System.arraycopy(table, 0, columns, 0, table.length);
        for (int i = 0; i < metadata.size(); i++) {
            columns[table.length + i] =
                    metadata.get(i) == ChangeMetadata.VERSION
                            ? new Versions(versions)
                            : ColumnReaders.of(
                                            times.field(), ChangeMetadata.TIMESTAMP.logicalType())
                                    .read(times);
        }
        return ChangesChunk.of(
                RowBatch.columnar(columns, batch.rows(), batch.sizeInBytes()), kinds, versions);
    }

    /** Versions stay far below what a BIGINT holds. */
    private static final class Versions implements LongColumnVector {

        private final FixedWidthVector versions;

        Versions(FixedWidthVector versions) {
            this.versions = versions;
        }

        @Override
        public long getLong(int index) {
            return versions.getLong(index);
        }

        @Override
        public boolean isNullAt(int index) {
            return false;
        }
    }
}
