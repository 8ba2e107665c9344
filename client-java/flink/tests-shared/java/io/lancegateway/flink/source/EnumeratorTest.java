package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.IOException;
import java.util.List;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Each split is with one reader, or waits for one, whatever fails. There is no gateway here. */
class EnumeratorTest {

    private static final LanceSplit A = new LanceSplit("0", new byte[] {1}, 10, 0);
    private static final LanceSplit B = new LanceSplit("1", new byte[] {2}, 10, 0);
    private static final LanceSplit C = new LanceSplit("2", new byte[] {3}, 10, 0);
    private static final LanceSplit D = new LanceSplit("3", new byte[] {4}, 10, 0);

    private final Coordinator<LanceSplit> job = new Coordinator<>(2);

    @BeforeEach
    void startReaders() {
        job.register(0);
        job.register(1);
    }

    @Test
    void splitsOfAReaderThatFailedAreHandedOutOnceMore() {
        LanceEnumerator enumerator = enumerator(A, B, C, D);
        ask(enumerator, 0, 2);
        ask(enumerator, 1, 1);

        enumerator.addSplitsBack(job.fail(0), 0);
        ask(enumerator, 1, 4);

        assertThat(job.assigned).containsOnlyKeys(1);
        assertThat(job.assigned.get(1)).containsExactlyInAnyOrder(A, B, C, D);
        assertThat(job.finished).containsExactly(1);
    }

    @Test
    void aSplitThatIsGivenBackKeepsItsPlace() {
        LanceEnumerator enumerator = enumerator();

        enumerator.addSplitsBack(List.of(A.at(7)), 0);
        ask(enumerator, 1, 2);

        assertThat(job.assigned.get(1)).containsExactly(A.at(7));
    }

    @Test
    void aCheckpointHoldsWhatIsWithNoReader() {
        LanceEnumerator enumerator = enumerator(A, B, C, D);
        ask(enumerator, 0, 1);
        ask(enumerator, 1, 1);
        assertThat(enumerator.snapshotState(1).pending()).containsExactly(C, D);

        enumerator.addSplitsBack(job.fail(0), 0);

        assertThat(enumerator.snapshotState(2).pending()).containsExactlyInAnyOrder(A, C, D);
    }

    @Test
    void aRestoredEnumeratorHandsOutTheRestAndPlansNothing() throws IOException {
        LanceEnumerator before = enumerator(A, B, C);
        ask(before, 0, 1);
        ScanStateSerializer serializer = new ScanStateSerializer();
        byte[] checkpoint = serializer.serialize(before.snapshotState(1));
        ask(before, 1, 1);
        job.assigned.clear();

        LanceEnumerator after = enumerator(serializer.deserialize(1, checkpoint));
        ask(after, 1, 3);

        assertThat(job.calls()).isEmpty();
        assertThat(job.assigned.get(1)).containsExactlyInAnyOrder(B, C);
        assertThat(job.finished).containsExactly(1);
    }

    @Test
    void aScanThatWasNotPlannedBeforeTheCheckpointIsPlannedAfterIt() {
        LanceEnumerator before = enumerator(new ScanState(false, List.of()));
        ask(before, 0, 1);
        assertThat(job.calls()).hasSize(1);

        enumerator(before.snapshotState(1));

        assertThat(job.calls()).hasSize(2);
        assertThat(job.finished).isEmpty();
    }

    @Test
    void aReaderThatIsGoneTakesNoSplit() {
        LanceEnumerator enumerator = enumerator(A);
        job.fail(0);

        ask(enumerator, 0, 1);
        ask(enumerator, 1, 1);

        assertThat(job.assigned).containsOnlyKeys(1);
    }

    private LanceEnumerator enumerator(LanceSplit... pending) {
        return enumerator(new ScanState(true, List.of(pending)));
    }

    private LanceEnumerator enumerator(ScanState state) {
        RowType rowType = RowType.of(DataTypes.BIGINT().getLogicalType());
        ScanSpec spec = ScanSpec.rows(ScanRequest.getDefaultInstance(), rowType, List.of());
        LanceEnumerator enumerator =
                new LanceEnumerator(job, new GatewayAddress("grpc://localhost:1"), spec, state);
        enumerator.start();
        return enumerator;
    }

    private static void ask(LanceEnumerator enumerator, int subtask, int times) {
        for (int i = 0; i < times; i++) {
            enumerator.handleSplitRequest(subtask, null);
        }
    }
}
