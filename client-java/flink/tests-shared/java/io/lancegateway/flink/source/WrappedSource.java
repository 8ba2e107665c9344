package io.lancegateway.flink.source;

import io.lancegateway.flink.testing.GatewayResource;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;

/** Another source, with the type of its rows: numbers, if it does not tell. */
class WrappedSource<SplitT extends SourceSplit, StateT>
        implements Source<RowData, SplitT, StateT>, ResultTypeQueryable<RowData> {

    private static final long serialVersionUID = 1L;

    private final Source<RowData, SplitT, StateT> source;

    WrappedSource(Source<RowData, SplitT, StateT> source) {
        this.source = source;
    }

    @Override
    public Boundedness getBoundedness() {
        return source.getBoundedness();
    }

    @Override
    public SplitEnumerator<SplitT, StateT> createEnumerator(SplitEnumeratorContext<SplitT> context)
            throws Exception {
        return source.createEnumerator(context);
    }

    @Override
    public SplitEnumerator<SplitT, StateT> restoreEnumerator(
            SplitEnumeratorContext<SplitT> context, StateT state) throws Exception {
        return source.restoreEnumerator(context, state);
    }

    @Override
    public SourceReader<RowData, SplitT> createReader(SourceReaderContext context)
            throws Exception {
        return source.createReader(context);
    }

    @Override
    public SimpleVersionedSerializer<SplitT> getSplitSerializer() {
        return source.getSplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<StateT> getEnumeratorCheckpointSerializer() {
        return source.getEnumeratorCheckpointSerializer();
    }

    @Override
    @SuppressWarnings("unchecked")
    public TypeInformation<RowData> getProducedType() {
        return source instanceof ResultTypeQueryable
                ? ((ResultTypeQueryable<RowData>) source).getProducedType()
                : InternalTypeInfo.of(GatewayResource.ROW_TYPE);
    }
}
