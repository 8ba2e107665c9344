package org.apache.flink.connector.lance.table;

import io.lancegateway.flink.VectorSearchFunction;

/** Another name of {@link VectorSearchFunction}. */
public class LanceVectorSearchFunction extends VectorSearchFunction {

    private static final long serialVersionUID = 1L;
}
