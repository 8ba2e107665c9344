package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.Test;

class LanceSinkTest {

    @Test
    void mapsNeedTheStorageVersionThatHoldsThem() {
        RowType maps =
                (RowType)
                        DataTypes.ROW(
                                        DataTypes.FIELD(
                                                "m",
                                                DataTypes.MAP(DataTypes.INT(), DataTypes.INT())))
                                .getLogicalType();
        LanceSink.Builder sink = LanceSink.builder().path("t").rowType(maps);

        assertThatCode(sink::build).doesNotThrowAnyException();
        assertThatCode(sink.dataStorageVersion("2.2")::build).doesNotThrowAnyException();
        assertThatThrownBy(sink.dataStorageVersion("2.1")::build)
                .hasMessage("column 'm': MAP<INT, INT> needs data storage version 2.2, not 2.1");
    }
}
