package io.lancegateway.client.arrow;

/** Bytes are no Arrow data, or Arrow data of a kind that this client cannot hold. */
public final class ArrowFormatException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    public ArrowFormatException(String message) {
        super(message);
    }

    public ArrowFormatException(String message, Throwable cause) {
        super(message, cause);
    }
}
