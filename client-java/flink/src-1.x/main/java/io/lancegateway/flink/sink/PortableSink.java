package io.lancegateway.flink.sink;

import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;

/** What a sink must be in this version of Flink. */
interface PortableSink<T> extends Sink<T> {

    /** Abstract in Flink 1.20, which calls only the form with a {@code WriterInitContext}. */
    @Override
    @Deprecated
    default SinkWriter<T> createWriter(InitContext context) {
        throw new UnsupportedOperationException("needs Flink 1.20.1 or newer");
    }
}
