package io.lancegateway.flink.types;

import org.apache.flink.table.api.ValidationException;

/**
 * A column whose type Flink and the table cannot share. The message names the column and both
 * types.
 */
public final class TypeMismatchException extends ValidationException {

    private static final long serialVersionUID = 1L;

    public TypeMismatchException(String message) {
        super(message);
    }
}
