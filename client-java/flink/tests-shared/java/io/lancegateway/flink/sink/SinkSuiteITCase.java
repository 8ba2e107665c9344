package io.lancegateway.flink.sink;

import io.lancegateway.flink.testing.GatewayResource;
import io.lancegateway.flink.testing.NeedsGateway;
import java.net.URL;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.connector.testframe.environment.MiniClusterTestEnvironment;
import org.apache.flink.connector.testframe.external.ExternalContextFactory;
import org.apache.flink.connector.testframe.external.ExternalSystemDataReader;
import org.apache.flink.connector.testframe.external.sink.DataStreamSinkV2ExternalContext;
import org.apache.flink.connector.testframe.external.sink.TestingSinkSettings;
import org.apache.flink.connector.testframe.junit.annotations.TestContext;
import org.apache.flink.connector.testframe.junit.annotations.TestEnv;
import org.apache.flink.connector.testframe.junit.annotations.TestExternalSystem;
import org.apache.flink.connector.testframe.junit.annotations.TestSemantics;
import org.apache.flink.connector.testframe.testsuites.SinkTestSuiteBase;
import org.apache.flink.core.execution.CheckpointingMode;

/** Flink's own suite for sinks: each mode of checkpoints, savepoints, scaling, metrics. */
@NeedsGateway
class SinkSuiteITCase extends SinkTestSuiteBase<Long> {

    @TestSemantics
    final CheckpointingMode[] modes = {
        CheckpointingMode.EXACTLY_ONCE, CheckpointingMode.AT_LEAST_ONCE
    };

    @TestEnv final MiniClusterTestEnvironment flink = new MiniClusterTestEnvironment();

    @TestExternalSystem final GatewayResource gateway = new GatewayResource();

    @TestContext final ExternalContextFactory<NewTable> tables = test -> new NewTable(gateway);

    /** The table of one test. */
    private static final class NewTable implements DataStreamSinkV2ExternalContext<Long> {

        private static final int ROWS = 200;

        private final GatewayResource gateway;
        private final String table = GatewayResource.newTable();

        NewTable(GatewayResource gateway) {
            this.gateway = gateway;
        }

        @Override
        public Sink<Long> createSink(TestingSinkSettings settings) {
            return new NumberSink(gateway.uri(), table);
        }

        @Override
        public ExternalSystemDataReader<Long> createSinkDataReader(TestingSinkSettings settings) {
            return new NewRows(gateway, table);
        }

        @Override
        public List<Long> generateTestData(TestingSinkSettings settings, long seed) {
            List<Long> numbers = new ArrayList<>();
            new Random(seed).longs(ROWS).forEach(numbers::add);
            return numbers;
        }

        @Override
        public TypeInformation<Long> getProducedType() {
            return Types.LONG;
        }

        @Override
        public List<URL> getConnectorJarPaths() {
            return List.of();
        }

        @Override
        public void close() {
            // The gateway takes its warehouse along.
        }
    }

    /** What was committed since it was last asked. */
    private static final class NewRows implements ExternalSystemDataReader<Long> {

        private final GatewayResource gateway;
        private final String table;
        private int seen;

        NewRows(GatewayResource gateway, String table) {
            this.gateway = gateway;
            this.table = table;
        }

        @Override
        public List<Long> poll(Duration timeout) {
            List<Long> all = gateway.numbers(table);
            List<Long> more = all.subList(seen, all.size());
            seen = all.size();
            return more;
        }

        @Override
        public void close() {
            // The client is the gateway's.
        }
    }
}
