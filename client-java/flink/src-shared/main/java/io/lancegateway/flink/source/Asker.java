package io.lancegateway.flink.source;

import io.lancegateway.client.Exchange;
import io.lancegateway.client.FoundRows;
import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.arrow.ArrowBatch;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.client.arrow.ArrowSchema;
import io.lancegateway.flink.types.RowAppender;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.ExchangeCommand;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.annotation.Nullable;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.RowType;

/** Asks the gateway for the rows of keys or queries, over one stream, in one task. */
public final class Asker implements AutoCloseable {

    private final RowType rowType;
    private final List<List<String>> paths;
    private final RowType queryType;
    private final GatewayClient client;
    private final Exchange exchange;

    /** Copies rows, so that one that is kept does not keep all that came with it. */
    @Nullable private final RowDataSerializer copies;

    // Of the thread that asks: one at a time, see Exchange.Query.
    @Nullable private RowAppender appender;

    // Of the threads that get answers.
    @Nullable private ArrowSchema schema;
    @Nullable private RowReader reader;

    /**
     * @param queryType the rows that are asked with, as the columns of {@code queries}
     * @param rowType the rows that come out
     * @param paths for each of their fields the column of the answer; an empty path gives nulls
     * @param keeps whether rows are kept for long
     */
    public Asker(
            GatewayAddress address,
            ExchangeCommand command,
            ArrowSchema queries,
            RowType queryType,
            RowType rowType,
            List<List<String>> paths,
            boolean keeps) {
        this.rowType = rowType;
        this.paths = paths;
        this.queryType = queryType;
        this.copies = keeps ? new RowDataSerializer(rowType) : null;
        this.client = address.connect();
        this.exchange = client.exchange(command, queries);
    }

    public CompletableFuture<Collection<RowData>> ask(RowData query) {
        try {
            return exchange.ask(batch -> append(query, batch)).thenApply(this::toRows);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return CompletableFuture.failedFuture(interrupted);
        }
    }

    public Collection<RowData> find(RowData query) throws IOException {
        try {
            return toRows(exchange.find(batch -> append(query, batch)));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw (IOException)
                    new InterruptedIOException("interrupted while waiting for the gateway")
                            .initCause(interrupted);
        } catch (LanceGatewayException failed) {
            throw new IOException(failed.getMessage(), failed);
        }
    }

    private void append(RowData query, ArrowBatchBuilder batch) {
        if (appender == null) {
            appender = new RowAppender(queryType, batch);
        }
        appender.append(query);
    }

    private synchronized Collection<RowData> toRows(FoundRows found) {
        List<RowData> result = new ArrayList<>(found.size());
        ArrowBatch batch = null;
        RowBatch shown = null;
        for (int i = 0; i < found.size(); i++) {
            if (found.batch(i) != batch) {
                batch = found.batch(i);
                shown = reader(batch.schema()).read(batch);
            }
            RowData row = shown.rowToKeep(found.row(i));
            result.add(copies == null ? row : copies.copy(row));
        }
        return result;
    }

    private RowReader reader(ArrowSchema found) {
        if (found != schema) {
            reader = RowReader.of(found, rowType, paths);
            schema = found;
        }
        return reader;
    }

    @Override
    public void close() {
        exchange.close();
        client.close();
    }
}
