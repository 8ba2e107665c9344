package io.lancegateway.flink.sink;

import org.apache.flink.api.connector.sink2.Sink;

/** What a sink must be in this version of Flink. */
interface PortableSink<T> extends Sink<T> {}
