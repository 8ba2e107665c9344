package io.lancegateway.flink.source;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Where a reader goes on that was stopped between two rows. */
class ChangesPositionTest {

    private static final ChangesPart PART = new ChangesPart(0, new byte[0], 0, 5, true, 0);

    private final ChangesPosition position = new ChangesPosition(PART);

    @Test
    void theRowsOfTheFirstVersionAreCountedByThemselves() {
        emit(5, 5, 5);

        assertThat(position.toPart()).isEqualTo(PART.at(5, true, 3));
    }

    @Test
    void changesAreCountedFromTheVersionBeforeTheirsOn() {
        emit(5, 5, 6, 6, 9, 9, 9);

        assertThat(position.toPart()).isEqualTo(PART.at(8, false, 3));
    }

    @Test
    void aVersionThatWasReadToItsEndIsCountedNoMore() {
        emit(5, 6, 7);
        position.reached(12);
        assertThat(position.toPart()).isEqualTo(PART.at(12, false, 0));

        emit(13);

        assertThat(position.toPart()).isEqualTo(PART.at(12, false, 1));
    }

    @Test
    void countingGoesOnAfterARestore() {
        emit(5, 7, 7);

        ChangesPosition restored = new ChangesPosition(position.toPart());
        restored.emitted(7);

        assertThat(restored.toPart()).isEqualTo(PART.at(6, false, 3));
    }

    private void emit(long... versions) {
        for (long version : versions) {
            position.emitted(version);
        }
    }
}
