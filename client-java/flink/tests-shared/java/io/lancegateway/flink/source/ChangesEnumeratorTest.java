package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.ChangeFeed;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.ScanRequest;
import java.io.IOException;
import java.util.List;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.Test;

/** Each part is with the one reader whose it is, whatever fails. There is no gateway here. */
class ChangesEnumeratorTest {

    private static final ChangesPart A = part(0);
    private static final ChangesPart B = part(1);
    private static final ChangesPart C = part(2);

    private final Coordinator<ChangesPart> job = new Coordinator<>(2);

    @Test
    void partsGoRoundTheReadersAsTheyCome() {
        ChangesEnumerator enumerator = enumerator(ChangeFeed.builder().build(), A, B, C);

        register(enumerator, 1);
        assertThat(job.assigned).containsOnlyKeys(1);
        register(enumerator, 0);

        assertThat(job.assigned.get(0)).containsExactly(A, C);
        assertThat(job.assigned.get(1)).containsExactly(B);
        assertThat(job.finished).isEmpty();
        assertThat(enumerator.snapshotState(1).pending()).isEmpty();
    }

    @Test
    void partsOfAReaderThatFailedWaitForItsSuccessor() {
        ChangesEnumerator enumerator = enumerator(ChangeFeed.builder().build(), A, B, C);
        register(enumerator, 0);
        register(enumerator, 1);

        enumerator.addSplitsBack(job.fail(0), 0);
        assertThat(enumerator.snapshotState(1).pending()).containsExactly(A, C);
        register(enumerator, 0);

        assertThat(job.assigned.get(0)).containsExactly(A, C);
        assertThat(job.assigned.get(1)).containsExactly(B);
    }

    @Test
    void readersOfChangesThatEndAreToldSo() {
        ChangesEnumerator enumerator = enumerator(ChangeFeed.builder().untilVersion(9).build(), A);

        register(enumerator, 0);
        register(enumerator, 1);

        assertThat(job.assigned).containsOnlyKeys(0);
        assertThat(job.finished).containsExactly(0, 1);
    }

    @Test
    void aRestoredEnumeratorHandsOutTheRestUnderTheSameName() throws IOException {
        ChangesEnumerator before = enumerator(ChangeFeed.builder().build(), A, B);
        register(before, 0);
        ChangesStateSerializer serializer = new ChangesStateSerializer();
        byte[] checkpoint = serializer.serialize(before.snapshotState(1));
        job.assigned.clear();

        ChangesEnumerator after =
                enumerator(ChangeFeed.builder().build(), serializer.deserialize(1, checkpoint));
        register(after, 1);

        assertThat(job.assigned.get(1)).containsExactly(B);
        assertThat(after.snapshotState(2).consumer()).isEqualTo("drawn-before");
    }

    @Test
    void changesAreNotPlannedTwice() {
        ChangesEnumerator before = enumerator(ChangeFeed.builder().build());
        ChangesState notPlanned = before.snapshotState(1);
        assertThat(notPlanned.parts()).isZero();
        // To plan, and to renew a hold.
        assertThat(job.calls()).hasSize(2);
        job.calls().clear();

        enumerator(ChangeFeed.builder().build(), A);

        assertThat(job.calls()).hasSize(1);
    }

    private void register(ChangesEnumerator enumerator, int subtask) {
        job.register(subtask);
        enumerator.addReader(subtask);
    }

    private static ChangesPart part(int number) {
        return new ChangesPart(number, new byte[0], 0, 5, false, 0);
    }

    private ChangesEnumerator enumerator(ChangeFeed feed, ChangesPart... pending) {
        return enumerator(feed, new ChangesState("drawn-before", pending.length, List.of(pending)));
    }

    private ChangesEnumerator enumerator(ChangeFeed feed, ChangesState state) {
        RowType rowType = RowType.of(DataTypes.BIGINT().getLogicalType());
        ScanSpec rows = ScanSpec.rows(ScanRequest.getDefaultInstance(), rowType, List.of());
        ChangesEnumerator enumerator =
                new ChangesEnumerator(
                        job,
                        new GatewayAddress("grpc://localhost:1"),
                        new ChangesSpec(rows, List.of(), feed),
                        state);
        enumerator.start();
        return enumerator;
    }
}
