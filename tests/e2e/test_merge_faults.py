"""Merges, deletes and updates that are broken off, overtaken, or whose answers are lost."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import lance
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness.rows import FLIGHT_ERRORS, numbers, refused
from harness.wire import denied, epoch, jobs_pb2, write_pb2

MERGE = write_pb2.WRITE_MODE_MERGE
IN_A_COMMIT = ("merge.marked", "put.manifest", "put.manifest.done", "commit.reply")
BROKEN = (grpc.RpcError, *FLIGHT_ERRORS)


@pytest.fixture
def gateway(start_gateway):
    return start_gateway(faults=True)


@pytest.fixture
def client(gateway, connect):
    return connect(gateway)


@pytest.fixture
def calls():
    """Calls that are under way while the test goes on."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def doubled(start: int, stop: int) -> pa.Table:
    """The same keys with other words."""
    rows = numbers(start, stop)
    return rows.set_column(1, "word", pa.array([f"new{id}" for id in range(start, stop)]))


def checkpoint(client, name: str, rows: pa.Table, id: str | None = None, seq: int = 1) -> bytes:
    begun = client.begin(name, mode=MERGE, key=["id"])
    kinds = pa.array([2] * rows.num_rows, pa.int8())
    staged = client.stage(begun.write, rows.append_column(pa.field("_change_kind", pa.int8(), nullable=False), kinds))
    return client.prepare(id or epoch(), seq, begun.write, staged)


def words(client, name: str) -> dict[int, str]:
    found = client.scan(name)
    words = dict(zip(found["id"].to_pylist(), found["word"].to_pylist(), strict=True))
    assert len(words) == found.num_rows, "a key is there twice"
    return words


def expected(old: range, new: range) -> dict[int, str]:
    return {**{id: f"w{id}" for id in old}, **{id: f"new{id}" for id in new}}


@pytest.mark.parametrize("point", IN_A_COMMIT)
def test_a_gateway_killed_in_a_merge_leaves_each_key_once(gateway, client, connect, calls, name, point):
    client.put(name, numbers(0, 10))
    committable = checkpoint(client, name, doubled(5, 15))
    history = len(client.versions(name))
    gateway.hold(point)
    call = calls.submit(client.commit, committable)
    gateway.reached(point)
    if point in ("merge.marked", "put.manifest"):
        assert words(client, name) == expected(range(10), range(0))
    gateway.kill()
    with pytest.raises(grpc.RpcError):
        call.result(60)

    client = connect(gateway.restart())
    again = client.commit(committable)
    landed = point in ("put.manifest.done", "commit.reply")
    assert again.already_committed == landed
    assert (again.merged.num_updated, again.merged.num_inserted) == (5, 5)
    assert client.commit(committable).merged == again.merged
    assert len(client.versions(name)) == history + 1
    assert words(client, name) == expected(range(10), range(5, 15))
    lance.dataset(gateway.warehouse / f"{name}.lance").validate()


@pytest.mark.parametrize("point", IN_A_COMMIT)
@pytest.mark.parametrize("what", ["merge", "delete", "update"])
def test_a_call_that_is_cut_off_and_repeated_happens_once(gateway, client, connect, calls, name, what, point):
    client.put(name, numbers(0, 10))
    history = len(client.versions(name))
    request = epoch()

    def change(client):
        if what == "merge":
            return client.merge(name, doubled(5, 15), on=["id"], request_id=request)
        if what == "delete":
            return client.delete(name, "id < 5", request_id=request)
        return client.update(name, "id < 5", word="concat('new', CAST(id AS STRING))", request_id=request)

    gateway.hold(point)
    call = calls.submit(change, client)
    gateway.reached(point)
    gateway.kill()
    with pytest.raises(BROKEN):
        call.result(60)

    client = connect(gateway.restart())
    first, second = change(client), change(client)
    outcome = {
        "merge": expected(range(10), range(5, 15)),
        "delete": expected(range(5, 10), range(0)),
        "update": expected(range(10), range(5)),
    }
    assert words(client, name) == outcome[what]
    assert len(client.versions(name)) == history + 1
    if what == "merge":
        assert first == second and (first["merged"]["num_inserted"], first["merged"]["num_updated"]) == (5, 5)
    else:
        assert second.already_committed and (first.version, first.num_rows) == (second.version, second.num_rows)
        assert first.num_rows == 5


def test_a_merge_that_fails_after_its_marks_leaves_the_table_as_it_was(gateway, client, name):
    client.put(name, numbers(0, 10))
    committable = checkpoint(client, name, doubled(5, 15))
    version = client.describe(name).version
    gateway.fail("put.manifest", times=100)
    assert denied(client.commit, committable) in ("STORE_UNAVAILABLE", "COMMIT_STATE_UNKNOWN")
    assert words(client, name) == expected(range(10), range(0))
    assert client.describe(name).version == version
    gateway.release("put.manifest")
    client.commit(committable)
    assert words(client, name) == expected(range(10), range(5, 15))


@pytest.mark.parametrize("what", ["append", "delete", "compact", "merge"])
def test_what_others_do_while_a_merge_is_held_stays_done_and_no_key_is_there_twice(
    gateway, client, calls, name, what, start_gateway, connect
):
    for start in (0, 10):
        client.put(name, numbers(start, start + 10))
    other = connect(start_gateway(warehouse=gateway.warehouse))
    committable = checkpoint(client, name, doubled(5, 25))
    gateway.hold("merge.marked")
    call = calls.submit(client.commit, committable)
    gateway.reached("merge.marked")
    dataset = lance.dataset(gateway.warehouse / f"{name}.lance")
    if what == "append":
        other.put(name, numbers(30, 35))
        after = expected(range(35), range(5, 25))
        for id in range(25, 30):
            del after[id]
    elif what == "delete":
        dataset.delete("id < 3 OR id = 7")
        after = expected(range(3, 20), range(5, 25))
    elif what == "compact":
        dataset.optimize.compact_files()
        after = expected(range(20), range(5, 25))
    else:
        other.merge(name, doubled(0, 22), on=["id"])
        after = expected(range(0), range(25))
    gateway.release("merge.marked")
    merged = call.result(60).merged
    assert words(client, name) == after
    assert merged.num_inserted + merged.num_updated == 20


def test_a_replay_after_a_cleanup_to_one_version_and_a_compaction_is_known(client, name):
    client.put(name, numbers(0, 10))
    committable = checkpoint(client, name, doubled(5, 15))
    first = client.commit(committable)
    client.run_job(name, compaction=jobs_pb2.Compaction())
    client.run_job(name, cleanup=jobs_pb2.Cleanup(keep_versions=1))
    again = client.commit(committable)
    assert again.already_committed and again.version == first.version and again.merged == first.merged
    assert words(client, name) == expected(range(10), range(5, 15))


def test_a_bad_row_in_a_merge_leaves_table_and_version_as_they_were(client, name):
    client.put(name, numbers(0, 1))
    version = client.describe(name).version
    begun = client.begin(name, mode=MERGE, key=["id"])
    command = write_pb2.PutCommand(stage=write_pb2.StageRequest(write=begun.write))
    bad = numbers(0, 2).append_column("_change_kind", pa.array([2, 9], pa.int8()))
    descriptor = flight.FlightDescriptor.for_command(command.SerializeToString())
    why, message = refused(client.put_to, descriptor, bad)
    assert why == "INVALID_ARGUMENT" and "_change_kind is 9" in message
    assert words(client, name) == {0: "w0"} and client.describe(name).version == version


def test_what_was_staged_before_a_column_came_is_refused_until_it_is_staged_again(client, gateway, name):
    client.put(name, numbers(0, 3))
    begun = client.begin(name, mode=MERGE, key=["id"])
    rows = doubled(1, 5).append_column(
        pa.field("_change_kind", pa.int8(), nullable=False), pa.array([2] * 4, pa.int8())
    )
    staged = client.stage(begun.write, rows)
    dataset = lance.dataset(gateway.warehouse / f"{name}.lance")
    dataset.add_columns(pa.field("more", pa.string()))
    dataset.update({"more": "'kept'"})
    assert denied(client.prepare, epoch(), 1, begun.write, staged) == "SCHEMA_MISMATCH"
    begun = client.begin(name, rows.drop(["_change_kind"]).schema, mode=MERGE, key=["id"])
    client.commit(client.prepare(epoch(), 1, begun.write, client.stage(begun.write, rows)))
    found = client.scan(name).sort_by("id")
    assert found["more"].to_pylist() == ["kept", "kept", "kept", None, None]
    assert found["word"].to_pylist() == ["w0", "new1", "new2", "new3", "new4"]


def test_an_aborted_merge_stays_out_and_its_files_go(client, gateway, name):
    client.put(name, numbers(0, 3))
    committable = checkpoint(client, name, doubled(1, 5))
    changes = gateway.warehouse / f"{name}.lance/_lance_gateway/changes"
    assert len(list(changes.iterdir())) == 1
    aborted = client.writes.Abort(write_pb2.AbortRequest(committable=committable))
    assert aborted.num_files == 2, "rows and changes"
    assert list(changes.iterdir()) == []
    assert denied(client.commit, committable) == "COMMIT_ABORTED"
    assert words(client, name) == {0: "w0", 1: "w1", 2: "w2"}


def test_memory_stays_flat_over_many_upserts(start_gateway, connect, name):
    cache = {"index-bytes": "16MiB", "metadata-bytes": "16MiB"}
    upkeep = {"interval": "1s", "compact-fragments": 20, "keep-versions": 20}
    gateway = start_gateway(config={"cache": cache, "maintenance": upkeep})
    client = connect(gateway)
    client.put(name, numbers(0, 100))
    id, used = epoch(), []
    for turn in range(500):
        client.commit(checkpoint(client, name, numbers(turn % 90, turn % 90 + 10), id, turn + 1))
        used.append(gateway.rss())
    before, last = max(used[300:400]), max(used[400:])
    assert last <= 1.1 * before, f"{before} and then {last} bytes"
    assert client.count(name) == 100
