package io.lancegateway.flink.types;

import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowField;
import io.lancegateway.client.arrow.ArrowType;
import io.lancegateway.client.arrow.ArrowType.Kind;

/** Ids of rows: UInt64 in Arrow, and BIGINT in Flink, since no table has 2^63 rows. */
public final class RowIds {

    private RowIds() {}

    /** The column as Flink has it, whose 64 bits are the same. */
    public static ArrowField shown(ArrowField column) {
        return is(column) ? ArrowField.required(column.name(), ArrowType.INT64) : column;
    }

    private static boolean is(ArrowField column) {
        return column.name().equals(WriteHandle.ROW_ID) && column.type().kind() == Kind.UINT64;
    }
}
