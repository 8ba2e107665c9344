package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** State of a scan survives a restart. */
class StateSerializersTest {

    private static final LanceSplit SPLIT = new LanceSplit("3", new byte[] {1, 2, 3}, 100, 42);

    private static final ChangesPart PART =
            new ChangesPart(3, new byte[] {1, 2, 3}, 20, 5, true, 42);

    @Test
    void aSplitKeepsItsPlace() throws IOException {
        LanceSplitSerializer serializer = new LanceSplitSerializer();

        LanceSplit restored =
                serializer.deserialize(serializer.getVersion(), serializer.serialize(SPLIT));

        assertThat(restored).isEqualTo(SPLIT);
        assertThat(restored.rowOffset()).isEqualTo(42);
    }

    @Test
    void aScanKeepsItsPendingSplits() throws IOException {
        ScanStateSerializer serializer = new ScanStateSerializer();
        ScanState state = new ScanState(true, List.of(SPLIT, SPLIT.at(7)));

        assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(state)))
                .isEqualTo(state);
    }

    @Test
    void aPartOfChangesKeepsItsPlace() throws IOException {
        ChangesPartSerializer serializer = new ChangesPartSerializer();

        for (ChangesPart part : List.of(PART, PART.at(9, false, 7))) {
            assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(part)))
                    .isEqualTo(part);
        }
    }

    @Test
    void changesKeepTheirPendingPartsAndTheirName() throws IOException {
        ChangesStateSerializer serializer = new ChangesStateSerializer();
        ChangesState state = new ChangesState("copy-of-users", 4, List.of(PART));

        assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(state)))
                .isEqualTo(state);
    }

    @Test
    void stateOfANewerConnectorIsRefused() {
        assertThatThrownBy(() -> new LanceSplitSerializer().deserialize(2, new byte[0]))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("format 2: this connector reads 1 to 1");
    }
}
