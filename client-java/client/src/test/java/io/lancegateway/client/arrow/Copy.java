package io.lancegateway.client.arrow;

/** Appends what a vector holds to a builder, value by value, through the public face of both. */
public final class Copy {

    private Copy() {}

    public static EncodedBatch encode(ArrowBatch batch) {
        ArrowBatchBuilder builder = new ArrowBatchBuilder(batch.schema());
        into(batch, builder);
        return builder.encode();
    }

    public static void into(ArrowBatch batch, ArrowBatchBuilder builder) {
        for (int column = 0; column < batch.schema().size(); column++) {
            for (int row = 0; row < batch.rows(); row++) {
                value(batch.column(column), row, builder.column(column));
            }
        }
        builder.endRows(batch.rows());
    }

    private static void value(ArrowVector from, int i, ColumnBuilder to) {
        if (from.isNull(i)) {
            to.appendNull();
        } else if (from instanceof FixedWidthVector) {
            FixedWidthVector v = (FixedWidthVector) from;
            ((FixedWidthBuilder) to).appendBytes(v.bytes(), v.position(i), v.width());
        } else if (from instanceof BooleanVector) {
            ((BooleanBuilder) to).append(((BooleanVector) from).get(i));
        } else if (from instanceof BinaryVector) {
            BinaryVector v = (BinaryVector) from;
            ((BinaryBuilder) to).append(v.bytes(), v.position(i), v.size(i));
        } else if (from instanceof ListVector) {
            ListVector v = (ListVector) from;
            ColumnBuilder elements;
            if (to instanceof ListBuilder) {
                ((ListBuilder) to).append(v.size(i));
                elements = ((ListBuilder) to).child();
            } else {
                ((FixedSizeListBuilder) to).append();
                elements = ((FixedSizeListBuilder) to).child();
            }
            for (int e = 0; e < v.size(i); e++) {
                value(v.child(), v.start(i) + e, elements);
            }
        } else if (from instanceof StructVector) {
            StructVector v = (StructVector) from;
            StructBuilder builder = (StructBuilder) to;
            builder.append();
            for (int c = 0; c < v.size(); c++) {
                value(v.child(c), i, builder.child(c));
            }
        } else {
            throw new AssertionError(from.getClass());
        }
    }
}
