package io.lancegateway.client.arrow;

/** A column that holds nothing but nulls. */
public final class NullVector extends ArrowVector {

    NullVector(ArrowField field, int length) {
        super(field, length, length, new byte[0], ALL_NULLS);
    }
}
