package io.lancegateway.flink.table;

import io.lancegateway.client.GatewayClient;
import io.lancegateway.flink.util.GatewayAddress;
import io.lancegateway.proto.v1.DescribeTableRequest;
import io.lancegateway.proto.v1.ScanRequest;
import io.lancegateway.proto.v1.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import javax.annotation.Nullable;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.RowLevelModificationScanContext;

/** Which versions a row-level statement reads of its tables. */
final class PinnedVersions implements RowLevelModificationScanContext {

    private final List<Pin> pins = new ArrayList<>();

    /** What a statement is known to read so far. */
    static PinnedVersions of(@Nullable RowLevelModificationScanContext context) {
        return context instanceof PinnedVersions ? (PinnedVersions) context : new PinnedVersions();
    }

    /** The version that a scan reads: the one of its options, else one for the whole statement. */
    long pin(GatewayAddress address, ScanRequest scan) {
        boolean latest = !scan.hasVersion();
        for (Pin pin : pins) {
            if (latest && pin.latest && pin.isOf(address, scan.getTable())) {
                return pin.version;
            }
        }
        long version;
        try (GatewayClient client = address.connect()) {
            DescribeTableRequest.Builder request =
                    DescribeTableRequest.newBuilder().setTable(scan.getTable());
            if (!latest) {
                request.setVersion(scan.getVersion());
            }
            version = client.describeTable(request.build()).getVersion();
        }
        pins.add(new Pin(address, scan.getTable(), version, latest));
        return version;
    }

    /** The version whose rows are changed. */
    long of(GatewayAddress address, Table table) {
        Set<Long> versions =
                pins.stream()
                        .filter(pin -> pin.isOf(address, table))
                        .map(pin -> pin.version)
                        .collect(Collectors.toSet());
        if (versions.isEmpty()) {
            throw new ValidationException(
                    "UPDATE and DELETE read the rows of their table, but this statement reads its"
                            + " changes: leave out 'scan.mode' and 'source.mode'");
        }
        if (versions.size() != 1) {
            throw new ValidationException(
                    String.format(
                            "UPDATE and DELETE change the rows of the one version that they read,"
                                    + " but this statement reads versions %s of its table: leave"
                                    + " out 'read.version' and 'read.as-of-timestamp'",
                            versions));
        }
        return versions.iterator().next();
    }

    private static final class Pin {
        private final GatewayAddress address;
        private final Table table;
        private final long version;
        private final boolean latest;

        Pin(GatewayAddress address, Table table, long version, boolean latest) {
            this.address = address;
            this.table = table;
            this.version = version;
            this.latest = latest;
        }

        boolean isOf(GatewayAddress address, Table table) {
            return this.address.equals(address) && Objects.equals(this.table, table);
        }
    }
}
