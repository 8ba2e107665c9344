package io.lancegateway.flink.types;

import io.lancegateway.client.arrow.ArrowVector;
import org.apache.flink.table.data.columnar.vector.ColumnVector;

/** Shows a column of a batch to Flink. Made once for a column, used for each batch. */
@FunctionalInterface
public interface ColumnReader {

    ColumnVector read(ArrowVector vector);
}
