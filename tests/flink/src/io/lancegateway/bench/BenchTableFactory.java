package io.lancegateway.bench;

import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;

/**
 * {@code 'connector' = 'bench'}: rows out of memory-mapped column files (`harness.data.column_files`), the floor that sinks are
 * measured against. It can be replayed: blocks of rows follow one another, numbered by a FLIP-27 source.
 */
public final class BenchTableFactory implements DynamicTableSourceFactory {
  private static final ConfigOption<String> DIR = ConfigOptions.key("dir").stringType().noDefaultValue();
  private static final ConfigOption<Long> ROWS = ConfigOptions.key("rows").longType().noDefaultValue();
  private static final ConfigOption<Integer> BLOCK_ROWS =
      ConfigOptions.key("block-rows").intType().defaultValue(1000);

  @Override
  public String factoryIdentifier() {
    return "bench";
  }

  @Override
  public Set<ConfigOption<?>> requiredOptions() {
    return Set.of(DIR, ROWS);
  }

  @Override
  public Set<ConfigOption<?>> optionalOptions() {
    return Set.of(BLOCK_ROWS);
  }

  @Override
  public DynamicTableSource createDynamicTableSource(Context context) {
    FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
    helper.validate();
    return new Source(
        context.getPhysicalRowDataType(),
        helper.getOptions().get(DIR),
        helper.getOptions().get(ROWS),
        helper.getOptions().get(BLOCK_ROWS));
  }

  private static final class Source implements ScanTableSource {
    private final DataType type;
    private final String dir;
    private final long rows;
    private final int blockRows;

    Source(DataType type, String dir, long rows, int blockRows) {
      this.type = type;
      this.dir = dir;
      this.rows = rows;
      this.blockRows = blockRows;
    }

    @Override
    public ChangelogMode getChangelogMode() {
      return ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
      TypeInformation<RowData> info = context.createTypeInformation(type);
      BlockReader reader = new BlockReader(dir, (RowType) type.getLogicalType(), rows, blockRows);
      long blocks = (rows + blockRows - 1) / blockRows;
      return new DataStreamScanProvider() {
        @Override
        public DataStream<RowData> produceDataStream(
            ProviderContext provider, StreamExecutionEnvironment env) {
          return env.fromSource(
                  new NumberSequenceSource(0, blocks - 1), WatermarkStrategy.noWatermarks(), "blocks")
              .flatMap(reader)
              .returns(info)
              .name("rows");
        }

        @Override
        public boolean isBounded() {
          return true;
        }
      };
    }

    @Override
    public DynamicTableSource copy() {
      return new Source(type, dir, rows, blockRows);
    }

    @Override
    public String asSummaryString() {
      return "bench";
    }
  }
}
