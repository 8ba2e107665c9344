package io.lancegateway.flink.source;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.connector.source.SourceEvent;

/** A reader tells the enumerator after which version changes of its parts may be read again. */
final class ReadPositions implements SourceEvent {

    private static final long serialVersionUID = 1L;

    /** Of a part that is read to its end. */
    static final long DONE = Long.MAX_VALUE;

    private final HashMap<Integer, Long> afterOfPart;

    ReadPositions(Map<Integer, Long> afterOfPart) {
        this.afterOfPart = new HashMap<>(afterOfPart);
    }

    Map<Integer, Long> afterOfPart() {
        return afterOfPart;
    }

    @Override
    public String toString() {
        return "read up to " + afterOfPart;
    }
}
