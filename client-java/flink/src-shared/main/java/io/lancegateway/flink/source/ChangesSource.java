package io.lancegateway.flink.source;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.util.GatewayAddress;
import java.util.List;
import java.util.UUID;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;

/** The changes of a table, in the order of its versions. */
public final class ChangesSource
        implements Source<RowData, ChangesPart, ChangesState>, ResultTypeQueryable<RowData> {

    private static final long serialVersionUID = 1L;

    private final GatewayAddress address;
    private final ChangesSpec spec;

    /** Holds versions. Drawn here, so that a job without a checkpoint keeps it over restarts. */
    private final String consumer = UUID.randomUUID().toString();

    public ChangesSource(GatewayAddress address, ChangesSpec spec) {
        this.address = address;
        this.spec = spec;
    }

    @Override
    public Boundedness getBoundedness() {
        return spec.feed().until() == ChangeFeed.NEVER
                ? Boundedness.CONTINUOUS_UNBOUNDED
                : Boundedness.BOUNDED;
    }

    @Override
    public SplitEnumerator<ChangesPart, ChangesState> createEnumerator(
            SplitEnumeratorContext<ChangesPart> context) {
        return restoreEnumerator(context, new ChangesState(consumer, 0, List.of()));
    }

    @Override
    public SplitEnumerator<ChangesPart, ChangesState> restoreEnumerator(
            SplitEnumeratorContext<ChangesPart> context, ChangesState state) {
        return new ChangesEnumerator(context, address, spec, state);
    }

    @Override
    public SourceReader<RowData, ChangesPart> createReader(SourceReaderContext context) {
        return ChangesReader.create(address, spec, context);
    }

    @Override
    public SimpleVersionedSerializer<ChangesPart> getSplitSerializer() {
        return new ChangesPartSerializer();
    }

    @Override
    public SimpleVersionedSerializer<ChangesState> getEnumeratorCheckpointSerializer() {
        return new ChangesStateSerializer();
    }

    @Override
    public TypeInformation<RowData> getProducedType() {
        return InternalTypeInfo.of(spec.rowType());
    }
}
