package io.lancegateway.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import org.junit.jupiter.api.Test;

/** What the sink keeps in state survives a restart. */
class SinkSerializersTest {

    @Test
    void stagedRowsStayWhatTheyAre() throws IOException {
        StagedRowsSerializer serializer = new StagedRowsSerializer();
        StagedRows rows = new StagedRows(new byte[] {1}, new byte[] {2, 3}, new byte[0], 77);

        assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(rows)))
                .isEqualTo(rows);
    }

    @Test
    void aCommittableStaysWhatItIs() throws IOException {
        CommittableSerializer serializer = new CommittableSerializer();
        Committable committable = new Committable(new byte[] {1, 2, 3}, 5, 1 << 20);

        assertThat(
                        serializer.deserialize(
                                serializer.getVersion(), serializer.serialize(committable)))
                .isEqualTo(committable);
    }

    @Test
    void stateOfAnotherSinkIsRecognised() {
        CommittableSerializer serializer = new CommittableSerializer();

        assertThatThrownBy(() -> serializer.deserialize(1, new byte[] {1, 2, 3, 4, 5, 6, 7, 8}))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("no committable of this sink");
    }

    @Test
    void aRunStaysWhatItIs() throws IOException {
        RunState restored = RunState.deserialize(new RunState("r", false).withCommit().serialize());

        assertThat(restored.runId()).isEqualTo("r");
        assertThat(restored.committed()).isTrue();
    }
}
