"""Changes of rows that were chosen in a version: a merge by row id, which is broken off, overtaken, or repeated."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import lance
import pyarrow as pa
import pytest

from harness.rows import numbers
from harness.wire import (
    denied,
    epoch,
    index_pb2,
    jobs_pb2,
    reason,
    schema_message,
    table,
    write_pb2,
)

MERGE = write_pb2.WRITE_MODE_MERGE
AFTER, DELETE = 2, 3
IN_A_COMMIT = ("merge.marked", "put.manifest", "put.manifest.done", "commit.reply")
WORD = pa.schema([pa.field("word", pa.string())])


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


def begin(client, name: str, version: int, schema: pa.Schema = WORD, **more: object) -> write_pb2.BeginWriteResponse:
    request = write_pb2.BeginWriteRequest(
        request_id=epoch(),
        table=table(name),
        schema=schema_message(schema),
        mode=MERGE,
        read_version=version,
        by_row_id=True,
        **more,
    )
    return client.writes.BeginWrite(request)


def chosen(client, name: str, ids: range) -> tuple[int, list[int]]:
    """A version, and in it the row ids of some rows."""
    version = client.describe(name).version
    found = client.scan(name, version={"version": version}, metadata={"row_id": True}).sort_by("id")
    row_ids = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
    return version, [row_ids[id] for id in ids]


def statement(client, name: str, ids: range, word: str | None) -> bytes:
    """Sets the word of rows, or deletes them; ready to be committed."""
    version, row_ids = chosen(client, name, ids)
    begun = begin(client, name, version, WORD if word else pa.schema([]))
    kinds = pa.array([AFTER if word else DELETE] * len(row_ids), pa.int8())
    fields = [pa.field("_rowid", pa.uint64(), nullable=False), pa.field("_change_kind", pa.int8(), nullable=False)]
    changes = pa.table([pa.array(row_ids, pa.uint64()), kinds], schema=pa.schema(fields))
    if word:
        changes = changes.add_column(1, "word", pa.array([f"{word}{id}" for id in ids]))
    return client.prepare(epoch(), 1, begun.write, client.stage(begun.write, changes))


def words(client, name: str) -> dict[int, str]:
    found = client.scan(name)
    words = dict(zip(found["id"].to_pylist(), found["word"].to_pylist(), strict=True))
    assert len(words) == found.num_rows, "a row is there twice"
    return words


def expected(all: range, new: range = range(0)) -> dict[int, str]:
    return {id: f"new{id}" if id in new else f"w{id}" for id in all}


def test_rows_that_were_chosen_change_and_no_others(client, name):
    client.put(name, numbers(0, 10))
    updated = client.commit(statement(client, name, range(3, 6), "new"))
    assert (updated.merged.num_updated, updated.merged.num_inserted) == (3, 0)
    deleted = client.commit(statement(client, name, range(4, 8), None))
    assert (deleted.version, deleted.merged.num_deleted) == (updated.version + 1, 4)
    assert words(client, name) == {id: word for id, word in expected(range(10), range(3, 6)).items() if not 4 <= id < 8}


def test_compactions_indexes_and_aborts_in_between_are_no_conflict(client, name):
    for start in (0, 10):
        client.put(name, numbers(start, start + 10))
    committable = statement(client, name, range(5, 15), "new")
    version = client.describe(name).version
    client.run_job(name, compaction=jobs_pb2.Compaction())
    client.index(name, "id", scalar=index_pb2.ScalarIndex(type=index_pb2.SCALAR_INDEX_TYPE_BTREE))
    client.writes.Abort(
        write_pb2.AbortRequest(
            commit=write_pb2.TableCommit(table=table(name), id=write_pb2.CommitId(epoch=epoch(), seq=1))
        )
    )
    assert client.describe(name).version >= version + 3
    assert client.commit(committable).merged.num_updated == 10
    assert words(client, name) == expected(range(20), range(5, 15))
    assert client.delete(name, "id < 5", version=client.describe(name).version).num_rows == 5


def test_other_rows_in_between_are_a_conflict_that_says_so_and_changes_nothing(client, gateway, name):
    client.put(name, numbers(0, 10))
    committable = statement(client, name, range(5), "new")
    version = client.describe(name).version
    client.put(name, numbers(10, 11))
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as refused:
            client.commit(committable)
        assert reason(refused.value) == "COMMIT_CONFLICT"
        wanted = f"chosen in version {version}, and version {version + 1} changed rows"
        assert wanted in refused.value.details()
    assert words(client, name) == expected(range(11)) and client.describe(name).version == version + 1


def test_a_version_that_was_cleaned_up_in_between_is_a_conflict_since_nobody_knows_what_it_did(client, name):
    for start in (0, 10):
        client.put(name, numbers(start, start + 10))
    committable = statement(client, name, range(5), "new")
    client.run_job(name, compaction=jobs_pb2.Compaction())
    client.put(name, numbers(20, 21))
    client.run_job(name, cleanup=jobs_pb2.Cleanup(keep_versions=1))
    assert denied(client.commit, committable) == "COMMIT_CONFLICT"
    assert words(client, name) == expected(range(21))


def test_what_cannot_be_is_refused_at_the_start(client, name):
    client.put(name, numbers(0, 3))
    version = client.describe(name).version
    assert denied(begin, client, name, version + 1) == "TABLE_VERSION_NOT_FOUND"
    assert denied(lambda: begin(client, name, version, key=["id"])) == "INVALID_ARGUMENT"
    assert denied(begin, client, name, version, pa.schema([pa.field("nope", pa.string())])) == "SCHEMA_MISMATCH"
    assert denied(lambda: client.begin(name, mode=MERGE, by_row_id=True)) == "INVALID_ARGUMENT", "no version"
    assert denied(lambda: client.begin(name, read_version=version)) == "INVALID_ARGUMENT", "an append"


@pytest.mark.parametrize("point", IN_A_COMMIT)
def test_a_gateway_killed_in_a_change_of_chosen_rows_leaves_it_done_once(gateway, client, connect, calls, name, point):
    client.put(name, numbers(0, 10))
    committable = statement(client, name, range(5), "new")
    history = len(client.versions(name))
    gateway.hold(point)
    call = calls.submit(client.commit, committable)
    gateway.reached(point)
    gateway.kill()
    with pytest.raises(grpc.RpcError):
        call.result(60)

    client = connect(gateway.restart())
    again = client.commit(committable)
    assert again.already_committed == (point in ("put.manifest.done", "commit.reply"))
    assert again.merged.num_updated == 5
    client.put(name, numbers(10, 11))
    assert client.commit(committable).version == again.version, "known, whatever rows have changed since"
    assert words(client, name) == expected(range(11), range(5))
    assert len(client.versions(name)) == history + 2


@pytest.mark.parametrize("what", ["append", "delete", "compact"])
def test_others_that_are_faster_are_a_conflict_exactly_if_they_change_rows(gateway, client, calls, name, what):
    for start in (0, 10):
        client.put(name, numbers(start, start + 10))
    committable = statement(client, name, range(5, 15), "new")
    gateway.hold("merge.marked")
    call = calls.submit(client.commit, committable)
    gateway.reached("merge.marked")
    dataset = lance.dataset(gateway.warehouse / f"{name}.lance")
    if what == "append":
        lance.write_dataset(numbers(20, 21), dataset.uri, mode="append")
    elif what == "delete":
        dataset.delete("id = 19")
    else:
        dataset.optimize.compact_files()
    gateway.release("merge.marked")
    if what == "compact":
        assert call.result(60).merged.num_updated == 10
        assert words(client, name) == expected(range(20), range(5, 15))
    else:
        assert denied(call.result, 60) == "COMMIT_CONFLICT"
        assert words(client, name) == expected(range(21 if what == "append" else 19))
