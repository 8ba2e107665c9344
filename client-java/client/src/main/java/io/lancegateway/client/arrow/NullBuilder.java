package io.lancegateway.client.arrow;

/** Counts the nulls of a column that holds nothing else. */
public final class NullBuilder extends ColumnBuilder {

    NullBuilder(ArrowField field) {
        super(field, 0);
    }

    @Override
    void appendEmpty() {
        length++;
    }

    @Override
    void encode(BodyWriter body) {
        encodeOnlyNode(body, length);
    }
}
