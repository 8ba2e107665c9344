package io.lancegateway.client.arrow;

import java.util.Arrays;
import java.util.List;

/** Makes plain vectors from values that came as indices into a dictionary. */
final class Gather {

    /** A pick that stands for a null. */
    private static final long NULL = -1;

    private final ArrowVector[] parts;

    /** The index of the first value of each part. */
    private final int[] starts;

    private final int size;

    /** The values of the dictionary, in the order in which they came. */
    Gather(List<ArrowVector> parts) {
        this.parts = parts.toArray(new ArrowVector[0]);
        this.starts = new int[this.parts.length];
        int total = 0;
        for (int i = 0; i < starts.length; i++) {
            starts[i] = total;
            total += this.parts[i].length();
        }
        this.size = total;
    }

    ArrowVector byIndices(ArrowField field, FixedWidthVector indices, ArrowType.Kind kind) {
        long[] picks = new long[indices.length()];
        for (int i = 0; i < picks.length; i++) {
            picks[i] = indices.isNull(i) ? NULL : pick(field, index(indices, i, kind));
        }
        return gather(field, parts, picks);
    }

    private static long index(FixedWidthVector indices, int i, ArrowType.Kind kind) {
        switch (kind) {
            case INT8:
                return indices.getByte(i);
            case UINT8:
                return indices.getByte(i) & 0xff;
            case INT16:
                return indices.getShort(i);
            case UINT16:
                return indices.getShort(i) & 0xffff;
            case INT32:
                return indices.getInt(i);
            case UINT32:
                return indices.getInt(i) & 0xffffffffL;
            default:
                return indices.getLong(i);
        }
    }

    /** The part in the high half, the index in the part in the low half. */
    private long pick(ArrowField field, long index) {
        if (index < 0 || index >= size) {
            throw new ArrowFormatException(
                    String.format(
                            "field '%s' has the index %d into a dictionary of %d values",
                            field.name(), index, size));
        }
        int part = Arrays.binarySearch(starts, (int) index);
        if (part < 0) {
            part = -part - 2;
        }
        // Of several parts with one start all but the last are empty.
        while (parts[part].length() == 0) {
            part++;
        }
        return (long) part << 32 | (index - starts[part]);
    }

    private static ArrowVector gather(ArrowField field, ArrowVector[] parts, long[] picks) {
        int n = picks.length;
        byte[] validity = new byte[(n + 7) >>> 3];
        int nulls = 0;
        for (int i = 0; i < n; i++) {
            if (picks[i] == NULL || part(parts, picks[i]).isNull((int) picks[i])) {
                picks[i] = NULL;
                nulls++;
            } else {
                validity[i >>> 3] |= (byte) (1 << (i & 7));
            }
        }
        switch (field.type().kind()) {
            case NULL:
                return new NullVector(field, n);
            case BOOL:
                return booleans(field, parts, picks, nulls, validity);
            case UTF8:
            case LARGE_UTF8:
            case UTF8_VIEW:
            case BINARY:
            case LARGE_BINARY:
            case BINARY_VIEW:
                return binaries(field, parts, picks, nulls, validity);
            case LIST:
            case LARGE_LIST:
            case MAP:
            case FIXED_SIZE_LIST:
                return lists(field, parts, picks, nulls, validity);
            case STRUCT:
                return structs(field, parts, picks, nulls, validity);
            default:
                return fixedWidths(field, parts, picks, nulls, validity);
        }
    }

    private static ArrowVector part(ArrowVector[] parts, long pick) {
        return parts[(int) (pick >>> 32)];
    }

    private static ArrowVector booleans(
            ArrowField field, ArrowVector[] parts, long[] picks, int nulls, byte[] validity) {
        byte[] bytes = Arrays.copyOf(validity, validity.length * 2);
        for (int i = 0; i < picks.length; i++) {
            if (picks[i] != NULL && ((BooleanVector) part(parts, picks[i])).get((int) picks[i])) {
                bytes[validity.length + (i >>> 3)] |= (byte) (1 << (i & 7));
            }
        }
        return new BooleanVector(field, picks.length, nulls, bytes, 0, validity.length);
    }

    private static ArrowVector fixedWidths(
            ArrowField field, ArrowVector[] parts, long[] picks, int nulls, byte[] validity) {
        int width = field.type().byteWidth();
        int data = validity.length;
        byte[] bytes = Arrays.copyOf(validity, Math.addExact(data, picks.length * width));
        for (int i = 0; i < picks.length; i++) {
            if (picks[i] != NULL) {
                FixedWidthVector from = (FixedWidthVector) part(parts, picks[i]);
                int at = from.position((int) picks[i]);
                System.arraycopy(from.bytes, at, bytes, data + i * width, width);
            }
        }
        return new FixedWidthVector(field, picks.length, nulls, bytes, 0, data, width);
    }

    private static ArrowVector binaries(
            ArrowField field, ArrowVector[] parts, long[] picks, int nulls, byte[] validity) {
        int total = 0;
        for (long pick : picks) {
            if (pick != NULL) {
                total = Math.addExact(total, ((BinaryVector) part(parts, pick)).size((int) pick));
            }
        }
        int offsets = validity.length;
        int data = offsets + (picks.length + 1) * Integer.BYTES;
        byte[] bytes = Arrays.copyOf(validity, Math.addExact(data, total));
        int end = 0;
        for (int i = 0; i < picks.length; i++) {
            if (picks[i] != NULL) {
                BinaryVector from = (BinaryVector) part(parts, picks[i]);
                int size = from.size((int) picks[i]);
                System.arraycopy(
                        from.bytes, from.position((int) picks[i]), bytes, data + end, size);
                end += size;
            }
            LittleEndian.putInt(bytes, offsets + (i + 1) * Integer.BYTES, end);
        }
        return new BinaryVector(
                field,
                picks.length,
                nulls,
                bytes,
                0,
                BinaryVector.Layout.OFFSETS32,
                offsets,
                data,
                null);
    }

    private static ArrowVector lists(
            ArrowField field, ArrowVector[] parts, long[] picks, int nulls, byte[] validity) {
        int fixed = field.type().kind() == ArrowType.Kind.FIXED_SIZE_LIST ? field.type().size() : 0;
        int offsets = validity.length;
        byte[] bytes = Arrays.copyOf(validity, offsets + (picks.length + 1) * Integer.BYTES);
        int end = 0;
        for (int i = 0; i < picks.length; i++) {
            int size =
                    picks[i] == NULL
                            ? fixed
                            : ((ListVector) part(parts, picks[i])).size((int) picks[i]);
            end = Math.addExact(end, size);
            LittleEndian.putInt(bytes, offsets + (i + 1) * Integer.BYTES, end);
        }
        long[] elements = new long[end];
        int at = 0;
        for (long pick : picks) {
            if (pick == NULL) {
                Arrays.fill(elements, at, at + fixed, NULL);
                at += fixed;
            } else {
                ListVector from = (ListVector) part(parts, pick);
                int start = from.start((int) pick);
                int size = from.size((int) pick);
                for (int i = 0; i < size; i++) {
                    elements[at++] = pick >>> 32 << 32 | (start + i);
                }
            }
        }
        ArrowVector[] children = new ArrowVector[parts.length];
        for (int i = 0; i < parts.length; i++) {
            children[i] = ((ListVector) parts[i]).child();
        }
        return new ListVector(
                field,
                picks.length,
                nulls,
                bytes,
                0,
                ListVector.Layout.OFFSETS32,
                offsets,
                0,
                gather(field.child(0), children, elements));
    }

    private static ArrowVector structs(
            ArrowField field, ArrowVector[] parts, long[] picks, int nulls, byte[] validity) {
        ArrowVector[] children = new ArrowVector[field.children().size()];
        for (int c = 0; c < children.length; c++) {
            ArrowVector[] from = new ArrowVector[parts.length];
            for (int i = 0; i < parts.length; i++) {
                from[i] = ((StructVector) parts[i]).child(c);
            }
            children[c] = gather(field.child(c), from, picks.clone());
        }
        return new StructVector(field, picks.length, nulls, validity, 0, children);
    }
}
