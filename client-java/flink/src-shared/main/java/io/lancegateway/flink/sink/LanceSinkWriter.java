package io.lancegateway.flink.sink;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.client.LanceGatewayException;
import io.lancegateway.client.StageOptions;
import io.lancegateway.client.StageStream;
import io.lancegateway.client.StagedWrite;
import io.lancegateway.client.WriteHandle;
import io.lancegateway.client.arrow.ArrowBatchBuilder;
import io.lancegateway.flink.types.Appender;
import io.lancegateway.flink.types.ChangeAppender;
import io.lancegateway.flink.types.RowAppender;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import javax.annotation.Nullable;
import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.groups.SinkWriterMetricGroup;
import org.apache.flink.table.data.RowData;
import org.apache.flink.types.RowKind;

/**
 * Stages rows at the gateway. Rows wait in one batch until it is full; a stream is opened for the
 * first full batch of a checkpoint, and ended at the checkpoint. A writer without rows calls
 * nobody.
 */
final class LanceSinkWriter implements CommittingSinkWriter<RowData, StagedRows> {

    /** A stream without new rows is ended after this, well before the gateway gives it up. */
    private static final Duration IDLE_STREAM = Duration.ofSeconds(10);

    private final SinkSpec spec;
    private final ProcessingTimeService clock;
    private final Counter rowsSent;
    private final Counter bytesSent;
    private final Counter failedRows;
    private final StageOptions stageOptions;
    private final List<StagedRows> staged = new ArrayList<>();

    @Nullable private GatewayClient client;
    @Nullable private WriteHandle write;
    @Nullable private ArrowBatchBuilder batch;
    @Nullable private Appender appender;
    @Nullable private StageStream stream;
    private boolean tableIsAbsent;
    private long rowsWritten;
    private long lastSend;
    private long lastSendMillis;

    LanceSinkWriter(SinkSpec spec, WriterInitContext context) {
        this.spec = spec;
        this.clock = context.getProcessingTimeService();
        SinkWriterMetricGroup metrics = context.metricGroup();
        this.rowsSent = metrics.getNumRecordsSendCounter();
        this.bytesSent = metrics.getNumBytesSendCounter();
        this.failedRows = metrics.getNumRecordsSendErrorsCounter();
        metrics.setCurrentSendTimeGauge(() -> lastSendMillis);
        this.stageOptions = StageOptions.defaults().withMaxRowsPerFile(spec.maxRowsPerFile());
    }

    @Override
    public void write(RowData row, Context context) throws IOException, InterruptedException {
        if (row.getRowKind() != RowKind.INSERT && !spec.merges()) {
            throw new IOException(
                    String.format(
                            "without a primary key a table takes inserts only, but row %d is"
                                    + " %s",
                            rowsWritten, row.getRowKind()));
        }
        if (appender == null && !open(row)) {
            return;
        }
        try {
            appender.append(row);
        } catch (IllegalArgumentException unfit) {
            failedRows.inc();
            throw new IOException(
                    String.format("row %d of this writer, %s", rowsWritten, unfit.getMessage()),
                    unfit);
        }
        rowsWritten++;
        if (batch.sizeInBytes() >= spec.maxBytesPerBatch()
                || batch.rows() >= spec.maxRowsPerBatch()) {
            send();
        }
    }

    /** False if the table is absent, and the row is to be deleted from it. */
    private boolean open(RowData firstRow) {
        if (client == null) {
            client = spec.address().connect();
        }
        TableOpener opener = new TableOpener(client, spec);
        if (spec.chosenIn().isPresent()) {
            write = opener.openChosen();
        } else if (ChangeAppender.deletes(firstRow.getRowKind())) {
            // It may be a key alone, and tell nothing of how a table is to be made.
            Optional<WriteHandle> present = tableIsAbsent ? Optional.empty() : opener.openPresent();
            tableIsAbsent = present.isEmpty();
            if (tableIsAbsent) {
                return false;
            }
            write = present.get();
        } else {
            write = opener.open(firstRow);
        }
        batch = new ArrowBatchBuilder(write.schema());
        appender =
                spec.merges()
                        ? new ChangeAppender(spec.rowType(), spec::sets, spec.key(), batch)
                        : new RowAppender(spec.rowType(), batch);
        return true;
    }

    /** Sends the rows that wait. Blocks the task while the gateway does not keep up. */
    private void send() throws IOException, InterruptedException {
        int rows = batch.rows();
        long bytes = batch.sizeInBytes();
        long start = System.nanoTime();
        try {
            if (stream == null) {
                stream = client.stage(write, stageOptions);
                watchStream();
            }
            stream.write(batch);
        } catch (LanceGatewayException failed) {
            failedRows.inc(rows);
            throw new IOException("cannot stage rows: " + failed.getMessage(), failed);
        }
        lastSend = clock.getCurrentProcessingTime();
        lastSendMillis = (System.nanoTime() - start) / 1_000_000;
        rowsSent.inc(rows);
        bytesSent.inc(bytes);
    }

    /** Ends the stream once no rows have come for a while. */
    private void watchStream() {
        StageStream watched = stream;
        lastSend = clock.getCurrentProcessingTime();
        clock.registerTimer(lastSend + IDLE_STREAM.toMillis(), now -> endIfIdle(watched));
    }

    private void endIfIdle(StageStream watched) throws IOException, InterruptedException {
        if (stream != watched) {
            return;
        }
        long idleAt = lastSend + IDLE_STREAM.toMillis();
        if (clock.getCurrentProcessingTime() >= idleAt) {
            endStream();
        } else {
            clock.registerTimer(idleAt, now -> endIfIdle(watched));
        }
    }

    private void endStream() throws IOException, InterruptedException {
        StagedWrite finished;
        try {
            finished = stream.finish();
        } catch (LanceGatewayException failed) {
            throw new IOException("cannot stage rows: " + failed.getMessage(), failed);
        }
        stream = null;
        staged.add(
                new StagedRows(
                        write.bytes(), write.schema().toIpc(), finished.bytes(), finished.rows()));
    }

    @Override
    public void flush(boolean endOfInput) throws IOException, InterruptedException {
        if (batch != null && !batch.isEmpty()) {
            send();
        }
    }

    @Override
    public Collection<StagedRows> prepareCommit() throws IOException, InterruptedException {
        flush(false);
        if (stream != null) {
            endStream();
        }
        // Whoever made it since has rows in it.
        tableIsAbsent = false;
        List<StagedRows> result = List.copyOf(staged);
        staged.clear();
        return result;
    }

    @Override
    public void close() {
        if (stream != null) {
            stream.close();
        }
        if (client != null) {
            client.close();
        }
    }
}
