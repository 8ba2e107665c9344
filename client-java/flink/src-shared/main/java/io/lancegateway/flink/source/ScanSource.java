package io.lancegateway.flink.source;

import io.lancegateway.flink.util.GatewayAddress;
import java.util.List;
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

/**
 * A scan of one version of a table. The JobManager plans it; the version is pinned then, and stays
 * over restarts.
 */
public final class ScanSource
        implements Source<RowData, LanceSplit, ScanState>, ResultTypeQueryable<RowData> {

    private static final long serialVersionUID = 1L;

    private final GatewayAddress address;
    private final ScanSpec spec;

    public ScanSource(GatewayAddress address, ScanSpec spec) {
        this.address = address;
        this.spec = spec;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.BOUNDED;
    }

    @Override
    public SplitEnumerator<LanceSplit, ScanState> createEnumerator(
            SplitEnumeratorContext<LanceSplit> context) {
        return restoreEnumerator(context, new ScanState(false, List.of()));
    }

    @Override
    public SplitEnumerator<LanceSplit, ScanState> restoreEnumerator(
            SplitEnumeratorContext<LanceSplit> context, ScanState state) {
        return new LanceEnumerator(context, address, spec, state);
    }

    @Override
    public SourceReader<RowData, LanceSplit> createReader(SourceReaderContext context) {
        return LanceSourceReader.create(() -> new LanceSplitReader(address, spec), context);
    }

    @Override
    public SimpleVersionedSerializer<LanceSplit> getSplitSerializer() {
        return new LanceSplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<ScanState> getEnumeratorCheckpointSerializer() {
        return new ScanStateSerializer();
    }

    @Override
    public TypeInformation<RowData> getProducedType() {
        return InternalTypeInfo.of(spec.rowType());
    }
}
