package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import java.util.Set;
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
        LanceSink.Builder sink = sink(maps);

        assertThatCode(sink::build).doesNotThrowAnyException();
        assertThatCode(sink.dataStorageVersion("2.2")::build).doesNotThrowAnyException();
        assertThatThrownBy(sink.dataStorageVersion("2.1")::build)
                .hasMessage("column 'm': MAP<INT, INT> needs data storage version 2.2, not 2.1");
    }

    @Test
    void optionsOfColumnsNameColumnsOfTheirKind() {
        RowType row =
                (RowType)
                        DataTypes.ROW(
                                        DataTypes.FIELD("id", DataTypes.BIGINT()),
                                        DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())))
                                .getLogicalType();

        assertThatThrownBy(sink(row).vectorDimensions(Map.of("id", 3))::build)
                .hasMessageContaining("names 'id', which is no ARRAY<FLOAT> column");
        assertThatThrownBy(sink(row).vectorDimensions(Map.of("v", 0))::build)
                .hasMessageContaining("gives column 'v' the length '0', which is no number");
        assertThatThrownBy(sink(row).largeStringColumns(Set.of("v"))::build)
                .hasMessageContaining("names 'v', which is no STRING column");
        assertThatCode(sink(row).vectorDimensions(Map.of("v", 3))::build)
                .doesNotThrowAnyException();
    }

    @Test
    void aPrimaryKeyNamesScalarColumnsOnce() {
        RowType row =
                (RowType)
                        DataTypes.ROW(
                                        DataTypes.FIELD("id", DataTypes.BIGINT()),
                                        DataTypes.FIELD("v", DataTypes.ARRAY(DataTypes.FLOAT())))
                                .getLogicalType();

        assertThatCode(sink(row).primaryKey(List.of("id"))::build).doesNotThrowAnyException();
        assertThatThrownBy(sink(row).primaryKey(List.of("ID"))::build)
                .hasMessage("primary key column 'ID' is no column of the table: [id, v]");
        assertThatThrownBy(sink(row).primaryKey(List.of("v"))::build)
                .hasMessage("primary key column 'v': ARRAY<FLOAT> is no scalar type");
        assertThatThrownBy(sink(row).primaryKey(List.of("id", "id"))::build)
                .hasMessage("the primary key [id, id] names a column twice");
        assertThatThrownBy(
                        sink(row).primaryKey(List.of("id")).writeMode(WriteMode.OVERWRITE)::build)
                .hasMessageContaining("cannot overwrite it");
    }

    private static LanceSink.Builder sink(RowType rowType) {
        return LanceSink.builder().path("t").rowType(rowType);
    }
}
