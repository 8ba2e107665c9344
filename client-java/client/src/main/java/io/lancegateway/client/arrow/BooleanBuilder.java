package io.lancegateway.client.arrow;

import java.util.Arrays;

/** Collects booleans. */
public final class BooleanBuilder extends ColumnBuilder {

    private byte[] data = new byte[0];

    BooleanBuilder(ArrowField field) {
        super(field, 1);
    }

    public void append(boolean value) {
        int at = length >>> 3;
        if (at >= data.length) {
            data = grow(data, at + 1L);
        }
        if (value) {
            data[at] |= (byte) (1 << (length & 7));
        }
        length++;
    }

    @Override
    void appendEmpty() {
        append(false);
    }

    @Override
    void encode(BodyWriter body) {
        encodeNode(body);
        body.buffer(data, (length + 7) >>> 3);
    }

    @Override
    void reset() {
        Arrays.fill(data, 0, (length + 7) >>> 3, (byte) 0);
        super.reset();
    }
}
