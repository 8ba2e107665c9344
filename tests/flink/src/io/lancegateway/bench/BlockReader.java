package io.lancegateway.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.Collector;

/** The number of a block in, the rows of that block out. Column files are little-endian. */
final class BlockReader extends RichFlatMapFunction<Long, RowData> {
  private static final long serialVersionUID = 1L;

  /** Files are mapped in pieces of 256 MiB; values have 4 or 8 bytes, so that none is cut. */
  private static final int PIECE_BITS = 28;

  private final String dir;
  private final long rows;
  private final int blockRows;
  private final String[] names;
  private final LogicalTypeRoot[] types;

  private transient Column[] columns;

  BlockReader(String dir, RowType type, long rows, int blockRows) {
    this.dir = dir;
    this.rows = rows;
    this.blockRows = blockRows;
    this.names = type.getFieldNames().toArray(new String[0]);
    this.types =
        type.getChildren().stream().map(t -> t.getTypeRoot()).toArray(LogicalTypeRoot[]::new);
  }

  private interface Column {
    Object get(long row);
  }

  @Override
  public void flatMap(Long block, Collector<RowData> out) throws IOException {
    if (columns == null) {
      columns = new Column[names.length];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = open(names[i], types[i]);
      }
    }
    long from = block * blockRows;
    long to = Math.min(rows, from + blockRows);
    for (long r = from; r < to; r++) {
      GenericRowData row = new GenericRowData(columns.length);
      for (int i = 0; i < columns.length; i++) {
        row.setField(i, columns[i].get(r));
      }
      out.collect(row);
    }
  }

  private Column open(String name, LogicalTypeRoot type) throws IOException {
    Column values = values(name, type);
    Path nulls = Path.of(dir, name + ".null");
    if (!Files.exists(nulls)) {
      return values;
    }
    byte[] isNull = Files.readAllBytes(nulls);
    return r -> isNull[(int) r] != 0 ? null : values.get(r);
  }

  private Column values(String name, LogicalTypeRoot type) throws IOException {
    Path file = Path.of(dir, name + ".bin");
    if (type == LogicalTypeRoot.VARCHAR) {
      Mapped offsets = new Mapped(Path.of(dir, name + ".off"));
      byte[] text = Files.readAllBytes(file);
      return r -> {
        int from = offsets.getInt(r * 4);
        byte[] bytes = new byte[offsets.getInt(r * 4 + 4) - from];
        System.arraycopy(text, from, bytes, 0, bytes.length);
        return StringData.fromBytes(bytes);
      };
    }
    Mapped data = new Mapped(file);
    switch (type) {
      case INTEGER:
        return r -> data.getInt(r * 4);
      case BIGINT:
        return r -> data.getLong(r * 8);
      case DOUBLE:
        return r -> Double.longBitsToDouble(data.getLong(r * 8));
      case TIMESTAMP_WITHOUT_TIME_ZONE:
        return r -> {
          long micros = data.getLong(r * 8);
          int nanos = (int) Math.floorMod(micros, 1000L) * 1000;
          return TimestampData.fromEpochMillis(Math.floorDiv(micros, 1000L), nanos);
        };
      case ARRAY:
        int length = Integer.parseInt(Files.readString(Path.of(dir, name + ".dim")).trim());
        return r -> {
          float[] vector = new float[length];
          for (int i = 0; i < length; i++) {
            vector[i] = Float.intBitsToFloat(data.getInt((r * length + i) * 4));
          }
          return new GenericArrayData(vector);
        };
      default:
        throw new IOException("the bench source cannot read " + type + " of column " + name);
    }
  }

  private static final class Mapped {
    private final ByteBuffer[] pieces;

    Mapped(Path file) throws IOException {
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
        long size = channel.size();
        pieces = new ByteBuffer[(int) ((size >> PIECE_BITS) + 1)];
        for (int i = 0; i < pieces.length; i++) {
          long from = (long) i << PIECE_BITS;
          long length = Math.min(1L << PIECE_BITS, size - from);
          pieces[i] =
              channel.map(FileChannel.MapMode.READ_ONLY, from, length).order(ByteOrder.LITTLE_ENDIAN);
        }
      }
    }

    int getInt(long at) {
      return pieces[(int) (at >> PIECE_BITS)].getInt((int) (at & ((1 << PIECE_BITS) - 1)));
    }

    long getLong(long at) {
      return pieces[(int) (at >> PIECE_BITS)].getLong((int) (at & ((1 << PIECE_BITS) - 1)));
    }
  }
}
