"""Stage, prepare, commit by gRPC: every checkpoint becomes visible once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.rows import numbers, refused
from harness.wire import denied, epoch, schema_message, table, tables_pb2, write_pb2


def test_nothing_is_visible_before_the_commit_and_everything_after(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    assert begun.created
    staged = client.stage(begun.write, numbers(0, 50))
    committable = client.prepare(epoch(), 1, begun.write, staged)
    assert client.count(name) == 0
    committed = client.commit(committable)
    assert not committed.already_committed
    assert client.count(name) == 50
    assert client.versions(name)[0].version == committed.version


def test_two_committables_of_one_checkpoint_land_once_however_often_they_are_committed(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    run = epoch()
    first = client.prepare(run, 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    second = client.prepare(run, 2, begun.write, client.stage(begun.write, numbers(10, 20)))
    answers = [client.commit(c) for c in (first, second)]
    history = len(client.versions(name))
    assert client.scan(name).sort_by("id") == numbers(0, 20)

    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(client.commit, [first, second] * 20))
    assert all(a.already_committed for a in again)
    assert {a.version for a in again} == {a.version for a in answers}
    assert client.count(name) == 20
    assert len(client.versions(name)) == history


def test_commits_of_one_epoch_may_overtake_each_other(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    run = epoch()
    sealed = [
        client.prepare(run, seq, begun.write, client.stage(begun.write, numbers(seq * 10, seq * 10 + 10)))
        for seq in (1, 2, 3)
    ]
    for committable in reversed(sealed):
        assert not client.commit(committable).already_committed
    assert client.count(name) == 30


def test_the_same_commit_from_many_at_once_is_one_version_with_one_answer(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    committable = client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    history = len(client.versions(name))
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(client.commit, [committable] * 40))
    assert sum(not a.already_committed for a in answers) == 1
    assert len({a.version for a in answers}) == 1
    assert len(client.versions(name)) == history + 1
    assert client.count(name) == 10


def test_the_same_id_gives_the_same_committable(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    staged = client.stage(begun.write, numbers(0, 10))
    run = epoch()
    assert client.commit(client.prepare(run, 1, begun.write, staged)).version
    assert client.commit(client.prepare(run, 1, begun.write, staged)).already_committed
    assert client.count(name) == 10


def test_an_aborted_commit_stays_out_and_its_files_go(client, gateway, name):
    begun = client.begin(name, numbers(0, 1).schema)
    committable = client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    data = gateway.warehouse / f"{name}.lance" / "data"
    assert len(list(data.iterdir())) == 1
    assert client.writes.Abort(write_pb2.AbortRequest(committable=committable)).num_files == 1
    assert list(data.iterdir()) == []
    assert denied(client.commit, committable) == "COMMIT_ABORTED"
    assert client.count(name) == 0


def test_what_is_committed_cannot_be_aborted(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    committable = client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    client.commit(committable)
    assert denied(client.writes.Abort, write_pb2.AbortRequest(committable=committable)) == "COMMIT_CONFLICT"
    assert client.count(name) == 10


def test_the_table_tells_what_it_knows_of_a_commit(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    run = epoch()
    committable = client.prepare(run, 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    ask = write_pb2.GetCommitRequest(table=table(name), id=write_pb2.CommitId(epoch=run, seq=1))
    assert client.writes.GetCommit(ask).state == write_pb2.COMMIT_STATE_UNSPECIFIED
    version = client.commit(committable).version
    known = client.writes.GetCommit(ask)
    assert (known.state, known.version) == (write_pb2.COMMIT_STATE_COMMITTED, version)
    (listed,) = client.writes.ListCommits(write_pb2.ListCommitsRequest(table=table(name))).epochs
    assert (listed.epoch, listed.contiguous_seq) == (run, 1)


def test_whoever_races_the_table_is_created_once(client, name):
    gate = threading.Barrier(10)

    def begin(_):
        gate.wait()
        return client.begin(name, numbers(0, 1).schema)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(begin, range(10)))
    assert sum(a.created for a in answers) == 1
    assert len(client.versions(name)) == 1
    run = epoch()
    for seq, answer in enumerate(answers, 1):
        staged = client.stage(answer.write, numbers(seq, seq + 1))
        client.commit(client.prepare(run, seq, answer.write, staged))
    assert client.count(name) == 10


def test_a_second_gateway_on_the_warehouse_commits_the_same_things(start_gateway, connect, name):
    one = start_gateway()
    two = start_gateway(warehouse=one.warehouse)
    a, b = connect(one), connect(two)
    begun = a.begin(name, numbers(0, 1).schema)
    committable = a.prepare(epoch(), 1, begun.write, a.stage(begun.write, numbers(0, 10)))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda c: c.commit(committable), [a, b] * 8))
    assert sum(not x.already_committed for x in answers) == 1
    assert a.count(name) == b.count(name) == 10


@pytest.mark.parametrize("harm", ["cut", "flipped", "swapped", "empty"])
def test_a_damaged_committable_is_refused(client, name, harm):
    begun = client.begin(name, numbers(0, 1).schema)
    staged = client.stage(begun.write, numbers(0, 10))
    good = client.prepare(epoch(), 1, begun.write, staged)
    bad = {
        "cut": good[:-1],
        "flipped": good[:20] + bytes([good[20] ^ 1]) + good[21:],
        "swapped": staged,
        "empty": b"",
    }[harm]
    assert denied(client.commit, bad) in ("CORRUPT_DATA", "INVALID_ARGUMENT")
    assert client.count(name) == 0
    assert not client.commit(good).already_committed


def test_a_committable_of_a_table_that_was_dropped_and_made_again_is_refused(client, name):
    begun = client.begin(name, numbers(0, 1).schema)
    committable = client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(0, 10)))
    client.tables.DropTable(tables_pb2.DropTableRequest(request_id=epoch(), table=table(name)))
    client.put(name, numbers(0, 3))
    assert denied(client.commit, committable) in ("TABLE_REPLACED", "STAGED_FILE_MISSING")
    assert client.count(name) == 3


def test_bytes_that_are_no_arrow_are_refused_with_a_reason(client, name):
    request = tables_pb2.CreateTableRequest(request_id=epoch(), table=table(name), schema=b"\x00no arrow" * 10)
    assert denied(client.tables.CreateTable, request) in ("INVALID_ARGUMENT", "CORRUPT_DATA")
    cut = schema_message(numbers(0, 1).schema)[:-20]
    request = tables_pb2.CreateTableRequest(request_id=epoch(), table=table(name), schema=cut)
    assert denied(client.tables.CreateTable, request) in ("INVALID_ARGUMENT", "CORRUPT_DATA")
    assert refused(client.plan, name)[0] == "TABLE_NOT_FOUND"


def test_overwrite_replaces_once_for_each_run(client, name):
    client.put(name, numbers(0, 100))

    def commit(run: str, epoch_: str, seq: int, start: int, stop: int) -> bytes:
        begun = client.begin(name, mode=write_pb2.WRITE_MODE_OVERWRITE, run_id=run)
        committable = client.prepare(epoch_, seq, begun.write, client.stage(begun.write, numbers(start, stop)))
        client.commit(committable)
        return committable

    run, first = epoch(), epoch()
    committable = commit(run, first, 1, 100, 110)
    assert client.scan(name) == numbers(100, 110)
    commit(run, first, 2, 110, 120)
    commit(run, epoch(), 1, 120, 130)  # the same run, restored
    assert client.commit(committable).already_committed
    assert client.scan(name).sort_by("id") == numbers(100, 130)
    commit(epoch(), epoch(), 1, 7, 8)
    assert client.scan(name) == numbers(7, 8)
