package io.lancegateway.flink;

import static org.apache.flink.runtime.testutils.CommonTestUtils.waitUntilCondition;
import static org.assertj.core.api.Assertions.assertThat;

import io.lancegateway.flink.testing.FlinkAndGateway;
import io.lancegateway.flink.testing.GatewayProcess;
import io.lancegateway.proto.v1.TableVersion;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
import org.junit.jupiter.api.Test;

/** What a job that writes tells about itself. */
class MetricsITCase extends FlinkAndGateway {

    private static final RowType ROW_TYPE =
            (RowType) DataTypes.ROW(DataTypes.FIELD("id", DataTypes.BIGINT())).getLogicalType();

    @Test
    void rowsAndCommitsAreCounted() throws Exception {
        String table = newTable();
        JobClient client = write(gateway(), table, 60);
        client.getJobExecutionResult().get();
        JobID job = client.getJobID();

        assertThat(sum(job, "Writer", "numRecordsSend")).isEqualTo(60);
        // A number and whether it is null.
        assertThat(sum(job, "Writer", "numBytesSend")).isGreaterThanOrEqualTo(60 * Long.BYTES);
        assertThat(sum(job, "Writer", "numRecordsSendErrors")).isZero();
        assertThat(metrics(job, "Writer", "currentSendTime"))
                .hasSize(2)
                .allMatch(time -> value(time) >= 0);
        List<TableVersion> versions = versions(table);
        long commits = versions.size() - 1;
        assertThat(sum(job, "Committer", "totalCommittables")).isEqualTo(commits);
        assertThat(sum(job, "Committer", "successfulCommittables")).isEqualTo(commits);
        assertThat(sum(job, "Committer", "failedCommittables")).isZero();
        assertThat(sum(job, "Committer", "retriedCommittables")).isZero();
        assertThat(sum(job, "Committer", "pendingCommittables")).isZero();
        assertThat(sum(job, "Committer", "lastCommitVersion"))
                .isEqualTo(versions.get(versions.size() - 1).getVersion());
    }

    @Test
    void aJobWhoseCommitsDoNotEndShowsIt() throws Exception {
        GatewayProcess gateway = GatewayProcess.start("--faults");
        JobClient client = write(gateway, newTable(), Long.MAX_VALUE);
        JobID job = client.getJobID();
        waitUntilCondition(() -> sum(job, "Committer", "successfulCommittables") > 1);

        gateway.hold("put.manifest");
        waitUntilCondition(
                () ->
                        sum(job, "Committer", "pendingCommittables") == 1
                                && sum(job, "Committer", "secondsSinceLastCommit") >= 1);

        gateway.release("put.manifest");
        waitUntilCondition(() -> sum(job, "Committer", "secondsSinceLastCommit") == 0);
        client.cancel().get();
        gateway.close();
    }

    @Test
    void whatBecameOfTheKeysOfACommitIsCounted() throws Exception {
        String table = newTable();
        StreamTableEnvironment env = batch(2);
        declare(env, table, "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED");
        insert(env, "INSERT INTO " + table + " VALUES (1, 1), (2, 1), (3, 1)");

        JobID job =
                env.executeSql("INSERT INTO " + table + " VALUES (2, 2), (3, 2), (4, 2)")
                        .getJobClient()
                        .get()
                        .getJobExecutionResult()
                        .get()
                        .getJobID();

        assertThat(sum(job, "Committer", "lastCommitInserted")).isEqualTo(1);
        assertThat(sum(job, "Committer", "lastCommitUpdated")).isEqualTo(2);
        assertThat(sum(job, "Committer", "lastCommitDeleted")).isZero();
    }

    /** Five rows for each checkpoint. */
    private static JobClient write(GatewayProcess gateway, String table, long rows)
            throws Exception {
        StreamExecutionEnvironment env = restarting();
        env.enableCheckpointing(50);
        env.fromSource(
                        new DataGeneratorSource<>(
                                i -> i, rows, RateLimiterStrategy.perCheckpoint(5), Types.LONG),
                        WatermarkStrategy.noWatermarks(),
                        "numbers")
                .map(id -> (RowData) GenericRowData.of(id))
                .returns(RowData.class)
                .sinkTo(
                        LanceSink.builder()
                                .path(table)
                                .gatewayUri(gateway.uri())
                                .rowType(ROW_TYPE)
                                .build());
        return env.executeAsync();
    }
}
