package io.lancegateway.client.arrow;

import com.google.flatbuffers.FlatBufferBuilder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.flatbuf.Date;
import org.apache.arrow.flatbuf.DateUnit;
import org.apache.arrow.flatbuf.Decimal;
import org.apache.arrow.flatbuf.DictionaryEncoding;
import org.apache.arrow.flatbuf.DictionaryKind;
import org.apache.arrow.flatbuf.Duration;
import org.apache.arrow.flatbuf.Endianness;
import org.apache.arrow.flatbuf.Field;
import org.apache.arrow.flatbuf.FixedSizeBinary;
import org.apache.arrow.flatbuf.FixedSizeList;
import org.apache.arrow.flatbuf.FloatingPoint;
import org.apache.arrow.flatbuf.Int;
import org.apache.arrow.flatbuf.Interval;
import org.apache.arrow.flatbuf.IntervalUnit;
import org.apache.arrow.flatbuf.KeyValue;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.MetadataVersion;
import org.apache.arrow.flatbuf.Precision;
import org.apache.arrow.flatbuf.Schema;
import org.apache.arrow.flatbuf.Time;
import org.apache.arrow.flatbuf.Timestamp;
import org.apache.arrow.flatbuf.Type;

/** Schemas as IPC messages. */
final class SchemaCodec {

    private static final int CONTINUATION = -1;

    private SchemaCodec() {}

    /** Ends a message of this kind and gives its bytes. */
    static byte[] finish(FlatBufferBuilder builder, byte kind, int headerAt, long bodySize) {
        Message.startMessage(builder);
        Message.addVersion(builder, MetadataVersion.V5);
        Message.addHeaderType(builder, kind);
        Message.addHeader(builder, headerAt);
        Message.addBodyLength(builder, bodySize);
        builder.finish(Message.endMessage(builder));
        return builder.sizedByteArray();
    }

    static byte[] encodeEncapsulated(ArrowSchema schema) {
        byte[] message = encode(schema);
        int padded = message.length + (-message.length & 7);
        ByteBuffer out = ByteBuffer.allocate(8 + padded).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(CONTINUATION).putInt(padded).put(message);
        return out.array();
    }

    static ArrowSchema decodeEncapsulated(ByteBuffer bytes) {
        ByteBuffer in = bytes.slice().order(ByteOrder.LITTLE_ENDIAN);
        try {
            int size = in.getInt();
            // Streams from before Arrow 0.15 lack the mark.
            if (size == CONTINUATION) {
                size = in.getInt();
            }
            if (size <= 0 || size > in.remaining()) {
                throw new ArrowFormatException(
                        "an Arrow schema of " + bytes.remaining() + " bytes has a wrong length");
            }
            in.limit(in.position() + size);
            return decode(Message.getRootAsMessage(in.slice()));
        } catch (IndexOutOfBoundsException | java.nio.BufferUnderflowException e) {
            throw new ArrowFormatException("the bytes are no Arrow schema", e);
        }
    }

    static ArrowSchema decode(Message message) {
        if (message.headerType() != MessageHeader.Schema) {
            throw new ArrowFormatException(
                    "expected an Arrow schema, not a message of kind " + message.headerType());
        }
        Schema schema = (Schema) message.header(new Schema());
        if (schema.endianness() != Endianness.Little) {
            throw new ArrowFormatException("big-endian Arrow data cannot be read");
        }
        List<ArrowField> fields = new ArrayList<>(schema.fieldsLength());
        for (int i = 0; i < schema.fieldsLength(); i++) {
            fields.add(decodeField(schema.fields(i)));
        }
        Map<String, String> metadata = new LinkedHashMap<>();
        for (int i = 0; i < schema.customMetadataLength(); i++) {
            put(metadata, schema.customMetadata(i));
        }
        return ArrowSchema.of(fields, metadata);
    }

    private static ArrowField decodeField(Field field) {
        String name = field.name() == null ? "" : field.name();
        List<ArrowField> children = new ArrayList<>(field.childrenLength());
        for (int i = 0; i < field.childrenLength(); i++) {
            children.add(decodeField(field.children(i)));
        }
        Map<String, String> metadata = new LinkedHashMap<>();
        for (int i = 0; i < field.customMetadataLength(); i++) {
            put(metadata, field.customMetadata(i));
        }
        ArrowField.Dictionary dictionary = null;
        DictionaryEncoding encoding = field.dictionary();
        if (encoding != null) {
            if (encoding.dictionaryKind() != DictionaryKind.DenseArray) {
                throw new ArrowFormatException("field '" + name + "' has an unknown dictionary");
            }
            Int index = encoding.indexType();
            ArrowType indexType = index == null ? ArrowType.INT32 : decodeInt(name, index);
            dictionary = new ArrowField.Dictionary(encoding.id(), indexType, encoding.isOrdered());
        }
        ArrowType type = decodeType(name, field);
        try {
            return ArrowField.of(name, type, field.nullable(), children, metadata, dictionary);
        } catch (ArrowFormatException e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw new ArrowFormatException(e.getMessage(), e);
        }
    }

    private static void put(Map<String, String> metadata, KeyValue entry) {
        metadata.put(
                entry.key() == null ? "" : entry.key(), entry.value() == null ? "" : entry.value());
    }

    private static ArrowType decodeType(String name, Field field) {
        switch (field.typeType()) {
            case Type.Null:
                return ArrowType.NULL;
            case Type.Bool:
                return ArrowType.BOOL;
            case Type.Int:
                return decodeInt(name, (Int) field.type(new Int()));
            case Type.FloatingPoint:
                switch (((FloatingPoint) field.type(new FloatingPoint())).precision()) {
                    case Precision.HALF:
                        return ArrowType.FLOAT16;
                    case Precision.SINGLE:
                        return ArrowType.FLOAT32;
                    default:
                        return ArrowType.FLOAT64;
                }
            case Type.Decimal:
                return decodeDecimal(name, (Decimal) field.type(new Decimal()));
            case Type.Date:
                return ((Date) field.type(new Date())).unit() == DateUnit.DAY
                        ? ArrowType.DATE32
                        : ArrowType.DATE64;
            case Type.Time:
                Time time = (Time) field.type(new Time());
                return time.bitWidth() == 32
                        ? ArrowType.time32(unit(name, time.unit()))
                        : ArrowType.time64(unit(name, time.unit()));
            case Type.Timestamp:
                Timestamp timestamp = (Timestamp) field.type(new Timestamp());
                return ArrowType.timestamp(unit(name, timestamp.unit()), timestamp.timezone());
            case Type.Duration:
                return ArrowType.duration(
                        unit(name, ((Duration) field.type(new Duration())).unit()));
            case Type.Interval:
                switch (((Interval) field.type(new Interval())).unit()) {
                    case IntervalUnit.YEAR_MONTH:
                        return ArrowType.INTERVAL_YEAR_MONTH;
                    case IntervalUnit.DAY_TIME:
                        return ArrowType.INTERVAL_DAY_TIME;
                    default:
                        return ArrowType.INTERVAL_MONTH_DAY_NANO;
                }
            case Type.Utf8:
                return ArrowType.UTF8;
            case Type.LargeUtf8:
                return ArrowType.LARGE_UTF8;
            case Type.Utf8View:
                return ArrowType.UTF8_VIEW;
            case Type.Binary:
                return ArrowType.BINARY;
            case Type.LargeBinary:
                return ArrowType.LARGE_BINARY;
            case Type.BinaryView:
                return ArrowType.BINARY_VIEW;
            case Type.FixedSizeBinary:
                return ArrowType.fixedSizeBinary(
                        ((FixedSizeBinary) field.type(new FixedSizeBinary())).byteWidth());
            case Type.List:
                return ArrowType.LIST;
            case Type.LargeList:
                return ArrowType.LARGE_LIST;
            case Type.FixedSizeList:
                return ArrowType.fixedSizeList(
                        ((FixedSizeList) field.type(new FixedSizeList())).listSize());
            case Type.Struct_:
                return ArrowType.STRUCT;
            case Type.Map:
                return ArrowType.map(
                        ((org.apache.arrow.flatbuf.Map)
                                        field.type(new org.apache.arrow.flatbuf.Map()))
                                .keysSorted());
            default:
                String type =
                        field.typeType() < Type.names.length
                                ? Type.name(field.typeType())
                                : String.valueOf(field.typeType());
                throw new ArrowFormatException(
                        "field '"
                                + name
                                + "' has the Arrow type "
                                + type
                                + ", which is not supported");
        }
    }

    private static ArrowType decodeInt(String name, Int type) {
        switch (type.bitWidth()) {
            case 8:
                return type.isSigned() ? ArrowType.INT8 : ArrowType.UINT8;
            case 16:
                return type.isSigned() ? ArrowType.INT16 : ArrowType.UINT16;
            case 32:
                return type.isSigned() ? ArrowType.INT32 : ArrowType.UINT32;
            case 64:
                return type.isSigned() ? ArrowType.INT64 : ArrowType.UINT64;
            default:
                throw new ArrowFormatException(
                        "field '" + name + "' has integers of " + type.bitWidth() + " bits");
        }
    }

    private static ArrowType decodeDecimal(String name, Decimal type) {
        switch (type.bitWidth()) {
            case 32:
                return ArrowType.decimal32(type.precision(), type.scale());
            case 64:
                return ArrowType.decimal64(type.precision(), type.scale());
            case 128:
                return ArrowType.decimal128(type.precision(), type.scale());
            case 256:
                return ArrowType.decimal256(type.precision(), type.scale());
            default:
                throw new ArrowFormatException(
                        "field '" + name + "' has decimals of " + type.bitWidth() + " bits");
        }
    }

    private static ArrowType.Unit unit(String name, short unit) {
        ArrowType.Unit[] units = ArrowType.Unit.values();
        if (unit < 0 || unit >= units.length) {
            throw new ArrowFormatException("field '" + name + "' has an unknown unit of time");
        }
        return units[unit];
    }

    /** A schema message without its length, as it stands in a `FlightData`. */
    static byte[] encode(ArrowSchema schema) {
        FlatBufferBuilder builder = new FlatBufferBuilder(1024);
        int[] fields = new int[schema.size()];
        for (int i = 0; i < fields.length; i++) {
            fields[i] = encodeField(builder, schema.field(i));
        }
        int fieldsAt = Schema.createFieldsVector(builder, fields);
        int metadataAt = 0;
        if (!schema.metadata().isEmpty()) {
            int[] entries = encodeMetadata(builder, schema.metadata());
            metadataAt = Schema.createCustomMetadataVector(builder, entries);
        }
        Schema.startSchema(builder);
        Schema.addEndianness(builder, Endianness.Little);
        Schema.addFields(builder, fieldsAt);
        if (metadataAt != 0) {
            Schema.addCustomMetadata(builder, metadataAt);
        }
        return finish(builder, MessageHeader.Schema, Schema.endSchema(builder), 0);
    }

    private static int[] encodeMetadata(FlatBufferBuilder builder, Map<String, String> metadata) {
        int[] entries = new int[metadata.size()];
        int i = 0;
        for (Map.Entry<String, String> entry : metadata.entrySet()) {
            int key = builder.createString(entry.getKey());
            int value = builder.createString(entry.getValue());
            entries[i++] = KeyValue.createKeyValue(builder, key, value);
        }
        return entries;
    }

    private static int encodeField(FlatBufferBuilder builder, ArrowField field) {
        int[] children = new int[field.children().size()];
        for (int i = 0; i < children.length; i++) {
            children[i] = encodeField(builder, field.child(i));
        }
        int childrenAt = Field.createChildrenVector(builder, children);
        int metadataAt = 0;
        if (!field.metadata().isEmpty()) {
            int[] entries = encodeMetadata(builder, field.metadata());
            metadataAt = Field.createCustomMetadataVector(builder, entries);
        }
        int nameAt = builder.createString(field.name());
        int typeAt = encodeType(builder, field.type());
        Field.startField(builder);
        Field.addName(builder, nameAt);
        Field.addNullable(builder, field.isNullable());
        Field.addTypeType(builder, field.type().kind().code);
        Field.addType(builder, typeAt);
        Field.addChildren(builder, childrenAt);
        if (metadataAt != 0) {
            Field.addCustomMetadata(builder, metadataAt);
        }
        return Field.endField(builder);
    }

    private static int encodeType(FlatBufferBuilder builder, ArrowType type) {
        short unit = type.unit() == null ? 0 : (short) type.unit().ordinal();
        switch (type.kind()) {
            case INT8:
            case INT16:
            case INT32:
            case INT64:
                return Int.createInt(builder, type.byteWidth() * 8, true);
            case UINT8:
            case UINT16:
            case UINT32:
            case UINT64:
                return Int.createInt(builder, type.byteWidth() * 8, false);
            case FLOAT16:
                return FloatingPoint.createFloatingPoint(builder, Precision.HALF);
            case FLOAT32:
                return FloatingPoint.createFloatingPoint(builder, Precision.SINGLE);
            case FLOAT64:
                return FloatingPoint.createFloatingPoint(builder, Precision.DOUBLE);
            case DECIMAL32:
            case DECIMAL64:
            case DECIMAL128:
            case DECIMAL256:
                return Decimal.createDecimal(
                        builder, type.precision(), type.scale(), type.byteWidth() * 8);
            case DATE32:
                return Date.createDate(builder, DateUnit.DAY);
            case DATE64:
                return Date.createDate(builder, DateUnit.MILLISECOND);
            case TIME32:
            case TIME64:
                return Time.createTime(builder, unit, type.byteWidth() * 8);
            case TIMESTAMP:
                int zone = type.timeZone() == null ? 0 : builder.createString(type.timeZone());
                return Timestamp.createTimestamp(builder, unit, zone);
            case DURATION:
                return Duration.createDuration(builder, unit);
            case INTERVAL_YEAR_MONTH:
                return Interval.createInterval(builder, IntervalUnit.YEAR_MONTH);
            case INTERVAL_DAY_TIME:
                return Interval.createInterval(builder, IntervalUnit.DAY_TIME);
            case INTERVAL_MONTH_DAY_NANO:
                return Interval.createInterval(builder, IntervalUnit.MONTH_DAY_NANO);
            case FIXED_SIZE_BINARY:
                return FixedSizeBinary.createFixedSizeBinary(builder, type.size());
            case FIXED_SIZE_LIST:
                return FixedSizeList.createFixedSizeList(builder, type.size());
            case MAP:
                return org.apache.arrow.flatbuf.Map.createMap(builder, type.keysSorted());
            default:
                // Types without parameters are tables without fields.
                builder.startTable(0);
                return builder.endTable();
        }
    }
}
