"""A real Flink cluster writes and reads through a real gateway, and its TaskManager dies in between."""

import re
from contextlib import suppress
from pathlib import Path

import grpc
import lance
import numpy as np
import pyarrow as pa
import pytest

from harness import flink, paths
from harness.gateway import Gateway
from harness.inbox import COLUMNS, Inbox, rows_in, until_rows
from harness.process import eventually
from harness.rows import numbers


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def declare(session, gateway, name):
    """Declares the test's Lance table in Flink, or that of another path."""

    def declare(
        columns: str = COLUMNS, alias: str = "t", at: Gateway = gateway, path: str | Path = name, **options: str
    ) -> str:
        more = "".join(f", '{k.replace('__', '.').replace('_', '-')}' = '{v}'" for k, v in options.items())
        session.execute(
            f"CREATE TABLE {alias} ({columns}) "
            f"WITH ('connector' = 'lance', 'path' = '{path}', 'gateway.uri' = '{at.uri}'{more})"
        )
        return alias

    return declare


@pytest.fixture
def streaming(session):
    """Checkpoints come when the test says so; a job that fails starts again at once."""
    session.set("execution.runtime-mode", "streaming")
    session.set("execution.checkpointing.interval", "1 h")
    session.set("restart-strategy.type", "fixed-delay")
    session.set("restart-strategy.fixed-delay.attempts", "1000")
    session.set("restart-strategy.fixed-delay.delay", "200 ms")


@pytest.fixture
def batch(session):
    session.set("execution.runtime-mode", "batch")


@pytest.fixture
def submit(cluster, session):
    """Starts jobs, and ends them with the test."""
    jobs = []

    def submit(sql: str, running: bool = True) -> str:
        jobs.append(session.submit(sql))
        if running:
            cluster.wait(jobs[-1], state="RUNNING")
        return jobs[-1]

    yield submit
    for job in jobs:
        if cluster.job(job)["state"] not in ("FINISHED", "FAILED", "CANCELED"):
            with suppress(flink.FlinkError):
                cluster.cancel(job)


def operations(client, name: str) -> list[str]:
    """What made each version, oldest first."""
    return [v.operation for v in reversed(client.versions(name))]


@pytest.mark.parametrize("warehouse", [None, "memory://tables"], ids=["local", "object-store"])
def test_a_table_that_is_absent_is_created_once_and_grows_over_a_restart(
    cluster, session, start_gateway, connect, declare, streaming, submit, inbox, name, warehouse
):
    gateway = start_gateway(warehouse=warehouse)
    client = connect(gateway)
    session.set("parallelism.default", "2")
    inbox.declare(session, "src")
    declare(at=gateway)
    inbox.drop(0, 3)
    inbox.drop(3, 6)
    job = submit("INSERT INTO t SELECT * FROM src")
    until_rows(cluster, client, job, name, 6)
    savepoint = cluster.stop_with_savepoint(job)

    session.set("execution.state-recovery.path", savepoint)
    inbox.drop(6, 9)
    job = submit("INSERT INTO t SELECT * FROM src")
    until_rows(cluster, client, job, name, 9)
    cluster.cancel(job)
    assert client.scan(name).sort_by("id") == numbers(0, 9)
    assert "Overwrite" not in operations(client, name)[1:]


def test_an_empty_checkpoint_and_a_killed_taskmanager_leave_rows_once_and_no_empty_version(
    cluster, session, client, declare, streaming, submit, inbox, name
):
    session.set("parallelism.default", "1")
    inbox.declare(session, "src")
    declare()
    job = submit("INSERT INTO t SELECT * FROM src")
    inbox.drop(0, 5)
    until_rows(cluster, client, job, name, 5)
    cluster.checkpoint(job)

    cluster.kill_taskmanager()
    cluster.start_taskmanager()
    eventually(lambda: cluster.get(f"/jobs/{job}/checkpoints")["counts"]["restored"], 60, "the restore")
    cluster.wait(job, state="RUNNING")
    inbox.drop(5, 10)
    until_rows(cluster, client, job, name, 10)
    assert client.scan(name).sort_by("id") == numbers(0, 10)
    # Flink may cut a file between two checkpoints; each version has rows that the one before has not.
    rows = [v.num_rows for v in reversed(client.versions(name))]
    assert rows == sorted(set(rows))


def test_a_taskmanager_killed_again_and_again_in_full_flow_loses_and_doubles_nothing(
    cluster, session, client, declare, streaming, submit, inbox, name
):
    session.set("parallelism.default", "2")
    session.set("execution.checkpointing.interval", "300 ms")
    inbox.declare(session, "src")
    declare()
    job = submit("INSERT INTO t SELECT * FROM src")
    total = 0
    for kill in (True, True, False):
        for _ in range(5):
            inbox.drop(total, total + 2000)
            total += 2000
        eventually(lambda: rows_in(client, name) >= total - 8000, 60, "rows in the table")  # noqa: B023
        if kill:
            cluster.kill_taskmanager()
            cluster.start_taskmanager()
    eventually(lambda: rows_in(client, name) >= total, 90, "all rows in the table")
    assert client.scan(name).sort_by("id") == numbers(0, total)
    completed = cluster.get(f"/jobs/{job}/checkpoints")["counts"]["completed"]
    assert sum(1 for v in client.versions(name) if v.num_rows) <= completed + 2


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_taskmanager_killed_in_mid_read_reads_each_row_once(
    cluster, session, client, gateway, declare, streaming, submit, name, mode
):
    session.set("execution.runtime-mode", mode)
    session.set("parallelism.default", "2")
    session.set("execution.checkpointing.interval", "200 ms")
    total = 1_000_000
    noise = np.random.default_rng(5).integers(0, 1 << 62, total)
    rows = pa.table({"id": np.arange(total, dtype=np.int64), "noise": noise})
    client.put(name, rows, chunk=100_000)
    # So many batches that the job is still reading when it is hit.
    declare("id BIGINT, noise BIGINT", read__batch_size="20")
    target = f"{name}_copy"
    declare("id BIGINT, noise BIGINT", alias="copy", path=target, write__max_rows_per_file="20000")
    job = submit("INSERT INTO copy SELECT * FROM t", running=False)
    # In streaming mode it goes on from a checkpoint, in batch mode it begins again.
    staged = gateway.warehouse / f"{target}.lance" / "data"
    begun = {"streaming": lambda: rows_in(client, target), "batch": lambda: [*staged.glob("*.lance")]}
    eventually(begun[mode], 60, "a first part of the copy")
    cluster.kill_taskmanager()
    assert rows_in(client, target) < total
    cluster.start_taskmanager()
    cluster.wait(job)
    assert "TaskManager" in cluster.job_error(job)
    if mode == "streaming":
        assert cluster.get(f"/jobs/{job}/checkpoints")["counts"]["restored"] >= 1
    assert client.scan(target).sort_by("id") == rows


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_job_that_ends_before_its_first_checkpoint_writes_all_rows(session, client, declare, name, mode):
    session.set("execution.runtime-mode", mode)
    session.set("execution.checkpointing.interval", "1 h")
    declare()
    values = ", ".join(f"({i}, 'w{i}')" for i in range(10))
    session.insert(f"INSERT INTO t SELECT CAST(a AS BIGINT), b FROM (VALUES {values}) AS v(a, b)")
    assert client.scan(name).sort_by("id") == numbers(0, 10)
    versions = len(client.versions(name))

    session.insert(
        f"INSERT INTO t SELECT CAST(a AS BIGINT), b FROM (VALUES {values}) AS v(a, b) WHERE CHAR_LENGTH(b) > 9"
    )
    assert len(client.versions(name)) == versions


def test_an_empty_source_is_no_error_and_no_version(session, client, declare, batch, inbox, name):
    declare()
    (inbox.folder / "empty.csv").touch()
    inbox.declare(session, "src", watched=False)
    session.insert("INSERT INTO t SELECT * FROM src")
    with pytest.raises(grpc.RpcError, match=f"there is no table {name}"):
        client.count(name)

    client.put(name, numbers(0, 3))
    versions = client.versions(name)
    session.insert("INSERT INTO t SELECT * FROM src")
    assert client.versions(name) == versions
    assert sorted(session.query("SELECT id FROM t")) == [(0,), (1,), (2,)]


def test_overwrite_replaces_the_rows_once_at_any_parallelism(cluster, session, client, declare, batch, inbox, name):
    session.set("parallelism.default", "2")
    declare()
    client.put(name, numbers(0, 1000))
    for start in range(0, 40, 10):
        inbox.drop(start, start + 10)
    inbox.declare(session, "src", watched=False)
    session.insert("INSERT OVERWRITE t SELECT * FROM src")
    assert client.scan(name).sort_by("id") == numbers(0, 40)
    declare(alias="o", write__mode="overwrite")
    session.insert("INSERT INTO o SELECT * FROM src WHERE id >= 20")
    assert client.scan(name).sort_by("id") == numbers(20, 40)


def test_flink_reads_what_others_wrote_and_pushes_projection_filter_and_limit(session, client, declare, batch, name):
    for start in range(0, 3000, 1000):
        client.put(name, numbers(start, start + 1000))
    declare()
    assert session.query("SELECT COUNT(*) FROM t") == [(3000,)]
    assert sorted(session.query("SELECT word FROM t WHERE id >= 10 AND id < 13")) == [("w10",), ("w11",), ("w12",)]
    assert len(session.query("SELECT id FROM t LIMIT 10")) == 10
    assert session.query("SELECT id FROM t LIMIT 0") == []
    plan = session.query("EXPLAIN SELECT word FROM t WHERE id >= 10 LIMIT 5")[0][0]
    optimized = plan[plan.index("== Optimized Physical Plan ==") :]
    for pushed in ("project=[word]", "filter=[", "limit=[5]"):
        assert pushed in optimized, plan


def test_or_and_and_give_the_same_rows_with_and_without_push_down(session, client, declare, batch, name):
    client.put(name, pa.table({"id": pa.array([1, 2, 3]), "status": ["active", "active", "archived"]}))
    declare("id BIGINT, status STRING")
    query = "SELECT id FROM t WHERE (status = 'active' AND id = 1) OR status = 'archived'"
    assert sorted(session.query(query)) == [(1,), (3,)]
    session.set("table.optimizer.source.predicate-pushdown-enabled", "false")
    assert sorted(session.query(query)) == [(1,), (3,)]


def test_a_limit_with_a_filter_finds_its_rows_in_the_last_fragment(session, client, declare, batch, name):
    for part in range(3):
        flags = [part == 2] * 100
        client.put(name, pa.table({"topic": ["A"] * 100, "flag": flags, "part": pa.array([part] * 100, pa.int32())}))
    declare("topic STRING, flag BOOLEAN, part INT")
    assert session.query("SELECT part FROM t WHERE topic = 'A' AND flag LIMIT 10") == [(2,)] * 10


def test_odd_names_are_columns_like_others(session, client, declare, batch, name):
    declare("`PartyAbbrev` STRING, `user-id` INT, `a.b` DOUBLE, `select` BOOLEAN")
    session.insert("INSERT INTO t VALUES ('x', 1, CAST(1.5 AS DOUBLE), TRUE), ('y', 2, CAST(2.5 AS DOUBLE), FALSE)")
    assert session.query("SELECT `a.b`, `user-id` FROM t WHERE `PartyAbbrev` = 'y'") == [(2.5, 2)]
    assert session.query("SELECT `PartyAbbrev` FROM t WHERE `a.b` > 2 AND NOT `select`") == [("y",)]
    assert session.query("SELECT `select` FROM t WHERE `user-id` = 1") == [(True,)]
    assert client.scan(name).column_names == ["PartyAbbrev", "user-id", "a.b", "select"]
    with pytest.raises(flink.FlinkError, match="nope"):
        session.query("SELECT nope FROM t")


def test_a_column_that_the_table_does_not_have_is_an_error_that_names_it(session, client, declare, batch, name):
    client.put(name, numbers(0, 3))
    declare("id BIGINT, missing STRING")
    with pytest.raises(flink.FlinkError, match="missing"):
        session.query("SELECT missing FROM t")


TYPES = """
  b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, s STRING, bin BYTES, d DATE,
  t TIME(0), ts TIMESTAMP(6), tsl TIMESTAMP_LTZ(3), amount DECIMAL(20, 4), vec ARRAY<FLOAT>, words ARRAY<STRING>,
  r ROW<a INT, b STRING>, m MAP<STRING, INT>
"""
VALUES = """
  TRUE, CAST(-1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.5 AS FLOAT), CAST(2.5 AS DOUBLE), 'ä',
  CAST(X'00FF' AS BYTES), DATE '1969-12-31', TIME '23:59:58', TIMESTAMP '1969-12-31 23:59:59.123456',
  TO_TIMESTAMP_LTZ(-500, 3), CAST(-12345.6789 AS DECIMAL(20, 4)), ARRAY[CAST(1 AS FLOAT), CAST(2 AS FLOAT)],
  ARRAY['x', CAST(NULL AS STRING)], CAST(ROW(7, 'y') AS ROW<a INT, b STRING>), MAP['k', 1]
"""


def test_every_type_goes_in_and_comes_back(session, client, declare, batch, name):
    declare(TYPES, write__data_storage_version="2.2")
    session.insert(f"INSERT INTO t SELECT {VALUES}")
    row = client.scan(name).to_pylist()[0]
    assert (row["b"], row["i1"], row["i8"], row["f4"], row["s"], row["bin"]) == (True, -1, 4, 1.5, "ä", b"\x00\xff")
    assert str(row["d"]) == "1969-12-31" and str(row["t"]) == "23:59:58"
    assert str(row["ts"]) == "1969-12-31 23:59:59.123456"
    assert row["tsl"].timestamp() == -0.5
    assert str(row["amount"]) == "-12345.6789"
    assert (row["vec"], row["words"], row["r"]) == ([1.0, 2.0], ["x", None], {"a": 7, "b": "y"})
    assert dict(row["m"]) == {"k": 1}
    session.execute("CREATE TEMPORARY VIEW constants AS SELECT " + VALUES)
    assert str(session.query("SELECT * FROM t")) == str(session.query("SELECT * FROM constants"))

    session.insert("INSERT INTO t (i8) SELECT CAST(NULL AS BIGINT)")
    nulls = session.query("SELECT * FROM t WHERE i4 IS NULL")
    assert len(nulls) == 1 and set(nulls[0]) == {None}


def check_moments(session: flink.Session) -> None:
    """`t` holds three moments; which of them is found does not depend on the zone of the JVM."""
    session.set("table.local-time-zone", "UTC")
    late = "SELECT COUNT(*) FROM t WHERE ts >= CAST(TIMESTAMP '2024-01-01 00:00:00' AS TIMESTAMP_LTZ(6))"
    assert session.query(late) == [(1,)]
    early = "SELECT COUNT(*) FROM t WHERE ts = CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS TIMESTAMP_LTZ(6))"
    assert session.query(early) == [(1,)]
    assert session.query("SELECT COUNT(*) FROM t WHERE wall >= TIMESTAMP '2024-01-01 00:00:00'") == [(1,)]
    assert session.query("SELECT COUNT(*) FROM t WHERE wall = TIMESTAMP '1969-12-31 23:59:59.5'") == [(1,)]


def put_moments(client, name: str) -> None:
    micros = pa.array([1_704_067_199_000_000, 1_704_067_200_000_000, -500_000])
    columns = {"ts": micros.cast(pa.timestamp("us", "UTC")), "wall": micros.cast(pa.timestamp("us"))}
    client.put(name, pa.table(columns))


def test_times_are_found_with_the_jvm_far_west_of_utc(session, client, declare, batch, name):
    put_moments(client, name)
    declare("ts TIMESTAMP_LTZ(6), wall TIMESTAMP(6)")
    check_moments(session)


def test_the_jar_works_from_add_jar_and_with_the_jvm_far_east_of_utc(tmp_path, gateway, client, name):
    put_moments(client, name)
    with flink.Cluster(tmp_path / "east", timezone="Asia/Kolkata", slots=1) as cluster, cluster.session() as session:
        session.execute(f"ADD JAR '{paths.connector_jar()}'")
        session.set("execution.runtime-mode", "batch")
        path = f"{gateway.warehouse}/{name}.lance"
        session.execute(
            "CREATE TABLE t (ts TIMESTAMP_LTZ(6), wall TIMESTAMP(6)) "
            f"WITH ('connector' = 'lance', 'path' = '{path}', 'gateway.uri' = '{gateway.uri}')"
        )
        check_moments(session)
        session.insert("INSERT INTO t SELECT * FROM (SELECT ts, wall FROM t)")
        assert client.count(name) == 6


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_path_that_the_operator_allows_is_a_table_like_others(
    session, start_gateway, declare, batch, tmp_path, scheme
):
    gateway = start_gateway(config={"table.uri-prefixes": [str(tmp_path / "allowed")]})
    path = tmp_path / "allowed" / "deeper" / "t.lance"
    declare(at=gateway, path=f"{scheme}{path}")
    session.insert("INSERT INTO t VALUES (1, 'w1'), (2, 'w2')")
    assert lance.dataset(path).to_table().sort_by("id") == numbers(1, 3)
    lance.write_dataset(numbers(3, 4), path, mode="append")
    assert sorted(session.query("SELECT * FROM t")) == [(1, "w1"), (2, "w2"), (3, "w3")]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_path_that_the_operator_does_not_allow_is_refused_with_the_reason(
    session, start_gateway, declare, batch, tmp_path, scheme
):
    gateway = start_gateway(config={"table.uri-prefixes": [str(tmp_path / "allowed")]})
    path = tmp_path / "allowed-not" / "t.lance"
    lance.write_dataset(numbers(0, 1), path)
    declare(at=gateway, path=f"{scheme}{path}")
    told = f"PERMISSION_DENIED.*{re.escape(str(path))}.* nor below a prefix in table.uri-prefixes"
    with pytest.raises(flink.FlinkError, match=told):
        session.query("SELECT * FROM t")
    with pytest.raises(flink.FlinkError, match=told):
        session.insert("INSERT INTO t VALUES (1, 'w1')")
    assert lance.dataset(path).to_table() == numbers(0, 1)


def test_a_unix_socket_serves_a_job(session, start_gateway, connect, batch, tmp_path, name):
    socket = tmp_path / "gateway.sock"
    gateway = start_gateway(listen=("127.0.0.1:0", f"unix:{socket}"))
    session.execute(
        f"CREATE TABLE t ({COLUMNS}) "
        f"WITH ('connector' = 'lance', 'path' = '{name}', 'gateway.uri' = 'grpc+unix://{socket}')"
    )
    session.insert("INSERT INTO t VALUES (1, 'w1'), (2, 'w2')")
    assert connect(gateway).scan(name).sort_by("id") == numbers(1, 3)
    assert sorted(session.query("SELECT * FROM t")) == [(1, "w1"), (2, "w2")]


def test_a_gateway_that_is_not_there_is_named(session, declare, batch, name):
    session.execute(
        "CREATE TABLE t (id BIGINT) WITH ('connector' = 'lance', 'path' = '/nowhere/t.lance', "
        "'gateway.uri' = 'grpc://127.0.0.1:9')"
    )
    with pytest.raises(flink.FlinkError, match=re.escape("127.0.0.1:9")):
        session.query("SELECT * FROM t", within=60)
