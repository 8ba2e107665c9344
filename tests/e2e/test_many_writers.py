"""Many sinks, many gateways, writers that know of neither, all on one table."""

import itertools
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pyarrow as pa

from harness import foreign
from harness.process import eventually
from harness.rows import numbers
from harness.wire import Client, reason, retry_delay

SINKS, COMMITS = 8, 100
APPENDERS, APPENDS = 4, 50


def sealed(client: Client, name: str, rows: pa.Table, epoch: str | None = None, seq: int = 1) -> bytes:
    """A committable of these rows."""
    begun = client.begin(name, rows.schema)
    return client.prepare(epoch or str(uuid.uuid4()), seq, begun.write, client.stage(begun.write, rows))


def files(warehouse: Path, name: str) -> set[Path]:
    return set((warehouse / f"{name}.lance" / "data").iterdir())


def test_eight_sinks_and_four_foreign_appenders_make_1000_commits_and_every_row_is_there_once(
    start_gateway, connect, name, tmp_path
):
    one = start_gateway()
    two = start_gateway(warehouse=one.warehouse)
    clients = [connect(gateway) for gateway in (one, two) * (SINKS // 2)]
    clients[0].begin(name, numbers(0, 1).schema)

    def sink(nth: int) -> list[int]:
        epoch, versions = str(uuid.uuid4()), []
        for n in range(COMMITS):
            id = nth * COMMITS + n
            committed = clients[nth].commit(sealed(clients[nth], name, numbers(id, id + 1), epoch, n + 1))
            assert not committed.already_committed
            versions.append(committed.version)
        return versions

    first, table = SINKS * COMMITS, one.warehouse / f"{name}.lance"
    appenders = [
        foreign.start("append", table, first + n * APPENDS, APPENDS, tmp_path / f"appender-{n}.log")
        for n in range(APPENDERS)
    ]
    with ThreadPoolExecutor(SINKS) as pool:
        versions = list(itertools.chain(*pool.map(sink, range(SINKS))))
    for appender in appenders:
        assert appender.popen.wait(120) == 0, appender.tail()

    rows = first + APPENDERS * APPENDS
    assert clients[0].scan(name).sort_by("id") == numbers(0, rows)
    assert len(clients[0].versions(name)) == 1 + rows, "one version each, after the one that made the table"
    assert len(set(versions)) == SINKS * COMMITS, "no two commits share one"


def test_a_commit_that_loses_more_races_than_it_may_is_refused_for_now_and_lands_when_it_is_repeated(
    start_gateway, connect, name, tmp_path
):
    gateway = start_gateway(config={"commit": {"max-attempts": 1}})
    client = connect(gateway)
    sealed(client, name, numbers(0, 1))
    table = gateway.warehouse / f"{name}.lance"
    overwriters = [foreign.start("overwrite", table, 0, 10**6, tmp_path / f"overwriter-{n}.log") for n in range(2)]

    def refused() -> tuple[bytes, grpc.RpcError] | None:
        """a commit that lost its only attempt to a writer that overwrites"""
        committable = sealed(client, name, numbers(7, 10))
        try:
            client.commit(committable)
        except grpc.RpcError as error:
            return committable, error
        return None

    committable, error = eventually(refused, 60, every=0)
    for overwriter in overwriters:
        overwriter.kill()
    assert (error.code(), reason(error)) == (grpc.StatusCode.ABORTED, "CONCURRENT_MODIFICATION")
    assert retry_delay(error) > 0

    before, history = client.count(name, "id >= 7 AND id < 10"), len(client.versions(name))
    kept = files(gateway.warehouse, name)
    assert not client.commit(committable).already_committed
    assert client.count(name, "id >= 7 AND id < 10") == before + 3
    assert len(client.versions(name)) == history + 1
    assert files(gateway.warehouse, name) == kept, "the repeat took the file that was staged"


def test_one_commit_sent_100_times_at_once_to_two_gateways_is_one_version_and_all_hear_of_it(
    start_gateway, connect, name
):
    one = start_gateway()
    two = start_gateway(warehouse=one.warehouse)
    clients = [connect(one), connect(two)]
    committable = sealed(clients[0], name, numbers(0, 10))
    history = len(clients[0].versions(name))
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda client: client.commit(committable), clients * 50))
    assert len({answer.version for answer in answers}) == 1
    assert sum(not answer.already_committed for answer in answers) == 1
    assert len(clients[0].versions(name)) == history + 1
    assert clients[0].scan(name) == numbers(0, 10)
