package io.lancegateway.client;

import com.google.protobuf.ByteString;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowFormatException;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.client.arrow.IpcStream;
import io.lancegateway.proto.v1.SearchInfo;
import java.util.List;

/** What a search found, the best rows first, and how. */
public final class SearchResult {

    private final SearchInfo info;
    private final IpcStream rows;

    private SearchResult(SearchInfo info, IpcStream rows) {
        this.info = info;
        this.rows = rows;
    }

    static SearchResult of(SearchInfo info, ByteString rows, String doing) {
        try {
            return new SearchResult(info, IpcStream.read(rows.asReadOnlyByteBuffer()));
        } catch (ArrowFormatException e) {
            throw Failure.local(Reason.CORRUPT_DATA, e.getMessage(), e).toException(doing);
        }
    }

    /** Version, metric, the indexes that were used, and the rows that were searched without one. */
    public SearchInfo info() {
        return info;
    }

    /** The projected columns, the metadata columns, and the scores. */
    public ArrowSchema schema() {
        return rows.schema();
    }

    public List<ArrowBatch> batches() {
        return rows.batches();
    }
}
