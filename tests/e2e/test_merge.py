"""Changes of rows that are there: merges, deletes, updates, by gRPC, by Flight and by lgw."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import lance
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness.process import eventually
from harness.rows import numbers, refused
from harness.wire import denied, epoch, index_pb2, jobs_pb2, reason, table, table_pb2, tables_pb2, write_pb2

KIND = "_change_kind"
INSERT, BEFORE, AFTER, DELETE = range(4)
KEYED = tables_pb2.CreateOptions(primary_key=["id"])


def words(*pairs: tuple[int, str | None]) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
    return pa.table({"id": [id for id, _ in pairs], "word": [word for _, word in pairs]}, schema=schema)


def changes(*rows: tuple[int, int, str | None]) -> pa.Table:
    """Kind, id, word."""
    kinds = pa.array([kind for kind, _, _ in rows], pa.int8())
    return words(*(row[1:] for row in rows)).append_column(pa.field(KIND, pa.int8(), nullable=False), kinds)


@pytest.fixture
def keyed(client, name):
    """A table with a primary key."""
    request = tables_pb2.CreateTableRequest(
        table=table_pb2.Table(name=table_pb2.TableName(parts=[name])),
        schema=words((1, "a")).schema.serialize().to_pybytes(),
        options=KEYED,
    )
    client.tables.CreateTable(request)
    return name


def rows(client, name: str) -> dict[int, str | None]:
    found = client.scan(name)
    rows = dict(zip(found["id"].to_pylist(), found["word"].to_pylist(), strict=True))
    assert len(rows) == found.num_rows, "a key is there twice"
    return rows


def counts(ack: dict) -> tuple[int, int, int, int]:
    merged = ack["merged"]
    return tuple(merged[f"num_{what}"] for what in ("inserted", "updated", "deleted", "unchanged"))


def merge_checkpoint(client, name: str, *parts: pa.Table, id: str | None = None, seq: int = 1) -> bytes:
    """What one checkpoint staged, sealed."""
    begun = client.begin(name, mode=write_pb2.WRITE_MODE_MERGE)
    return client.prepare(id or epoch(), seq, begun.write, *(client.stage(begun.write, part) for part in parts))


# Merges by a rule.


def test_rows_replace_those_with_their_key_and_others_are_added(client, keyed):
    first = client.merge(keyed, words((1, "a"), (2, "b")))
    assert counts(first) == (2, 0, 0, 0)
    second = client.merge(keyed, words((2, "B"), (3, None)))
    assert counts(second) == (1, 1, 0, 0) and second["version"] == first["version"] + 1
    assert rows(client, keyed) == {1: "a", 2: "B", 3: None}
    assert counts(client.merge(keyed, words())) == (0, 0, 0, 0)
    assert len(client.versions(keyed)) == 3, "no version without a change"


@pytest.mark.parametrize(
    ("rule", "expected", "counted"),
    [
        ({"when_matched": "WHEN_MATCHED_DO_NOTHING"}, {1: "a", 2: "b", 3: "c", 4: "D"}, (1, 0, 0, 1)),
        ({"when_matched": "WHEN_MATCHED_DELETE"}, {1: "a", 3: "c", 4: "D"}, (1, 0, 1, 0)),
        (
            {"when_matched": "WHEN_MATCHED_DELETE", "when_not_matched": "WHEN_NOT_MATCHED_DO_NOTHING"},
            {1: "a", 3: "c"},
            (0, 0, 1, 1),
        ),
        ({"when_not_matched": "WHEN_NOT_MATCHED_DO_NOTHING"}, {1: "a", 2: "B", 3: "c"}, (0, 1, 0, 1)),
        ({"when_not_matched_by_source": "WHEN_NOT_MATCHED_BY_SOURCE_DELETE"}, {2: "B", 4: "D"}, (1, 1, 2, 0)),
        (
            {
                "when_not_matched_by_source": "WHEN_NOT_MATCHED_BY_SOURCE_DELETE_IF",
                "delete_if": {"sql": "word = 'a' OR word = 'b'"},
            },
            {2: "B", 3: "c", 4: "D"},
            (1, 1, 1, 0),
        ),
        (
            {"when_matched": "WHEN_MATCHED_UPDATE_IF", "update_if": {"sql": "source.word < target.word"}},
            {1: "a", 2: "B", 3: "c", 4: "D"},
            (1, 1, 0, 0),
        ),
        (
            {"when_matched": "WHEN_MATCHED_UPDATE_IF", "update_if": {"sql": "source.word > target.word"}},
            {1: "a", 2: "b", 3: "c", 4: "D"},
            (1, 0, 0, 1),
        ),
    ],
    ids=["keep", "delete", "delete-only", "update-only", "mirror", "delete-if", "update-if", "update-if-not"],
)
def test_a_rule_says_what_becomes_of_rows(client, keyed, rule, expected, counted):
    client.merge(keyed, words((1, "a"), (2, "b"), (3, "c")))
    ack = client.merge(keyed, words((2, "B"), (4, "D")), **rule)
    assert rows(client, keyed) == expected
    assert counts(ack) == counted


def test_a_mirror_of_nothing_empties_the_table(client, keyed):
    client.merge(keyed, words((1, "a"), (2, "b")))
    rule = {"when_not_matched_by_source": "WHEN_NOT_MATCHED_BY_SOURCE_DELETE"}
    assert counts(client.merge(keyed, words(), **rule)) == (0, 0, 2, 0)
    assert rows(client, keyed) == {}


def test_an_expression_from_a_program_compares_the_two_rows(client, keyed):
    client.merge(keyed, words((1, "a"), (2, "b")))

    def column(*path: str) -> dict:
        return {"column": {"path": list(path)}}

    condition = {
        "call": {"operator": "OPERATOR_LESS", "arguments": [column("source", "word"), column("target", "word")]}
    }
    rule = {"when_matched": "WHEN_MATCHED_UPDATE_IF", "update_if": {"expression": condition}}
    client.merge(keyed, words((1, "Z"), (2, "z")), **rule)
    assert rows(client, keyed) == {1: "Z", 2: "b"}


def test_a_key_that_comes_twice_is_named_and_nothing_is_changed(client, keyed, gateway):
    client.merge(keyed, words((1, "a")))
    why, message = refused(client.merge, keyed, words((7, "x"), (1, "b"), (7, "y")))
    assert why == "DUPLICATE_KEY" and "id = 7" in message
    why, message = refused(client.merge, keyed, words((5, "x"), (1, "b")), when_matched="WHEN_MATCHED_FAIL")
    assert why == "DUPLICATE_KEY" and "id = 1" in message
    assert rows(client, keyed) == {1: "a"} and len(client.versions(keyed)) == 2
    assert len(list((Path(gateway.warehouse) / f"{keyed}.lance/data").iterdir())) == 1, "nothing is left behind"
    ack = client.merge(keyed, words((7, "x"), (7, "y")), source_duplicates="SOURCE_DUPLICATES_LAST_WINS")
    assert counts(ack) == (1, 0, 0, 0)
    assert rows(client, keyed) == {1: "a", 7: "y"}


def test_a_repeated_merge_answers_the_same_and_writes_nothing(client, keyed):
    request = epoch()
    first = client.merge(keyed, words((1, "a"), (2, "b")), request_id=request)
    client.merge(keyed, words((1, "later")))
    again = client.merge(keyed, words((1, "a"), (2, "b")), request_id=request)
    assert again["version"] == first["version"] and counts(again) == counts(first) == (2, 0, 0, 0)
    assert rows(client, keyed) == {1: "later", 2: "b"}


def test_rows_of_some_columns_leave_the_others_as_they_are(client, name):
    """Also with an index on the key, after it was optimized, and for a second time."""
    ids = list(range(64))
    table = pa.table(
        {
            "vector": pa.array(np.arange(128, dtype=np.float32).reshape(64, 2).tolist(), pa.list_(pa.float32(), 2)),
            "path": [f"p{i}" for i in ids],
            "status": ["new"] * 64,
            "size": ids,
        }
    )
    client.put(name, table)
    scalar = index_pb2.ScalarIndex(type="SCALAR_INDEX_TYPE_BTREE")
    assert client.index(name, "path", scalar=scalar).state == jobs_pb2.JOB_STATE_SUCCEEDED
    for turn, status in enumerate(("first", "second", "third")):
        chosen = [f"p{i}" for i in range(turn * 5, turn * 5 + 10)]
        ack = client.merge(name, pa.table({"path": chosen, "status": [status] * 10}), on=["path"])
        assert counts(ack) == (0, 10, 0, 0)
        found = client.scan(name, filter={"sql": f"status = '{status}'"})
        assert sorted(found["path"].to_pylist()) == sorted(chosen)
        for row in found.to_pylist():
            at = row["size"]
            assert (row["path"], row["vector"]) == (f"p{at}", [2.0 * at, 2.0 * at + 1])
        for path in chosen:
            assert client.scan(name, filter={"sql": f"path = '{path}'"}).num_rows == 1
        assert client.count(name) == 64
        if turn == 0:
            assert client.optimize(name).state == jobs_pb2.JOB_STATE_SUCCEEDED


def test_structs_and_nulls_stay_with_their_keys(client, name):
    places = pa.struct([("city", pa.string()), ("country", pa.string())])
    values = [{"city": "Beijing", "country": "CN"}, None, {"city": "NY", "country": "US"}]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("place", places)])
    table = pa.table({"id": [1, 2, 3], "place": values}, schema=schema)
    client.put(name, table.slice(0, 0))
    for order in ([0, 1, 2], [2, 0, 1]):
        client.merge(name, table.take(order), on=["id"])
        assert client.scan(name).sort_by("id") == table


def test_a_table_is_created_with_its_key(client, name):
    create = {"primary_key": ["id"]}
    client.merge(name, words((1, "a")), create=create)
    client.merge(name, words((1, "b")))
    assert rows(client, name) == {1: "b"}
    assert list(client.describe(name).primary_key) == ["id"]


def test_bad_merges_are_refused_and_change_nothing(client, keyed):
    client.merge(keyed, words((1, "a")))
    assert refused(client.merge, keyed, words((1, "b")), on=["nope"])[0] == "COLUMN_NOT_FOUND"
    assert refused(client.merge, keyed, numbers(0, 1).drop(["id"]))[0] == "SCHEMA_MISMATCH"
    assert refused(client.merge, keyed, pa.table({"id": [None, 1], "word": ["x", "y"]}))[0] == "SCHEMA_MISMATCH"
    assert refused(client.merge, keyed, words((1, "b")), update_if={"sql": "true"})[0] == "INVALID_ARGUMENT"
    rule = {"when_matched": "WHEN_MATCHED_UPDATE_IF"}
    assert refused(client.merge, keyed, words((1, "b")), **rule)[0] == "INVALID_ARGUMENT"
    why, message = refused(client.merge, keyed, words((1, "b")), **rule, update_if={"sql": "source.nope = 1"})
    assert why == "COLUMN_NOT_FOUND" and "nope" in message
    put = write_pb2.PutCommand(put=write_pb2.PutRequest(table=table(keyed), mode=write_pb2.WRITE_MODE_MERGE))
    descriptor = flight.FlightDescriptor.for_command(put.SerializeToString())
    assert refused(client.put_to, descriptor, words((1, "b")))[0] == "INVALID_ARGUMENT"
    assert refused(client.merge, f"{keyed}_not_there", words((1, "b")))[0] == "TABLE_NOT_FOUND"
    assert rows(client, keyed) == {1: "a"} and len(client.versions(keyed)) == 2


@pytest.mark.parametrize("clients", [2, 8])
def test_many_that_upsert_the_same_keys_at_once_through_two_gateways_make_each_once(
    start_gateway, connect, name, clients
):
    one = start_gateway()
    two = start_gateway(warehouse=one.warehouse)
    doors = [connect(gateway) for gateway in (one, two) * (clients // 2)]
    doors[0].merge(name, words(), create={"primary_key": ["id"]})
    with ThreadPoolExecutor(clients) as pool:
        for turn in range(50 if clients == 2 else 12):
            offered = words(*((id, f"turn {turn}") for id in range(1, 11)))
            for ack in pool.map(lambda door, offered=offered: door.merge(name, offered), doors):
                assert sum(counts(ack)) == 10
            assert rows(doors[0], name) == dict.fromkeys(range(1, 11), f"turn {turn}")


# Checkpoints of changes.


def test_the_last_change_of_each_key_in_a_checkpoint_holds(client, keyed):
    first = client.commit(
        merge_checkpoint(client, keyed, changes((INSERT, 1, "a"), (INSERT, 2, "b"), (INSERT, 3, "c")))
    )
    assert (first.merged.num_inserted, first.merged.num_updated) == (3, 0)
    later = changes((BEFORE, 1, "a"), (AFTER, 1, "A"), (DELETE, 2, None), (BEFORE, 3, None), (DELETE, 9, None))
    second = client.commit(merge_checkpoint(client, keyed, later, changes((INSERT, 2, "again"))))
    assert second.version == first.version + 1
    assert rows(client, keyed) == {1: "A", 2: "again"}
    merged = second.merged
    assert (merged.num_updated, merged.num_deleted, merged.num_unchanged, merged.num_inserted) == (2, 1, 1, 0)


def test_two_checkpoints_that_are_committed_together_apply_in_their_order(client, keyed):
    id = epoch()
    first = merge_checkpoint(client, keyed, changes((AFTER, 1, "a")), id=id, seq=1)
    second = merge_checkpoint(client, keyed, changes((AFTER, 1, "b")), id=id, seq=2)
    assert denied(client.commit, second) == "COMMIT_OUT_OF_ORDER"
    assert client.commit(first).version + 1 == client.commit(second).version
    assert rows(client, keyed) == {1: "b"}


def test_an_index_on_another_column_does_not_hide_rows_that_were_replaced(client, keyed):
    client.merge(keyed, words(*((id, "old") for id in range(200))))
    scalar = index_pb2.ScalarIndex(type="SCALAR_INDEX_TYPE_BTREE")
    for column in ("id", "word"):
        assert client.index(keyed, column, scalar=scalar).state == jobs_pb2.JOB_STATE_SUCCEEDED
    client.merge(keyed, words(*((id, "new") for id in range(5)), (777, "new")))
    assert sorted(client.scan(keyed, filter={"sql": "word = 'new'"})["id"].to_pylist()) == [0, 1, 2, 3, 4, 777]
    assert client.count(keyed, "word = 'old'") == 195
    assert client.scan(keyed, filter={"sql": "id = 3"})["word"].to_pylist() == ["new"]
    assert client.optimize(keyed).state == jobs_pb2.JOB_STATE_SUCCEEDED
    assert client.count(keyed, "word = 'old'") == 195 and client.count(keyed, "word = 'new'") == 6


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False]),
        pa.array([1, -1], pa.int8()),
        pa.array([1, 2**63], pa.uint64()),
        pa.array([0.5, float("nan")], pa.float64()),
        pa.array(["", "a'b\"c`d\\"], pa.string()),
        pa.array(["x", "y"], pa.large_string()),
        pa.array([b"", b"\x00\xff"], pa.binary()),
        pa.array([b"abc", b"\x00\x00\x00"], pa.binary(3)),
        pa.array(["1.5", "-2.25"]).cast(pa.decimal128(20, 3)),
        pa.array([0, 19000], pa.date32()),
        pa.array([0, 10**9], pa.time64("us")),
        pa.array([0, -1], pa.timestamp("us")),
        pa.array([0, -1], pa.timestamp("ns", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_any_scalar_is_a_key_with_and_without_an_index(client, name, values):
    odd = "Key of.it"
    table = pa.table({odd: values, "word": ["a", "b"]})
    client.put(name, table.slice(0, 0))
    client.merge(name, table, on=[odd])
    filler = pa.table({odd: pa.nulls(100, values.type), "word": ["filler"] * 100})
    client.put(name, filler)
    for turn in range(2):
        ack = client.merge(name, table.set_column(1, "word", pa.array([f"{turn}", "c"])), on=[odd])
        assert counts(ack) == (0, 2, 0, 0)
        assert client.count(name) == 102 and client.count(name, f"word = '{turn}'") == 1
        if turn == 0 and not pa.types.is_fixed_size_binary(values.type):
            scalar = index_pb2.ScalarIndex(type="SCALAR_INDEX_TYPE_BTREE")
            assert client.index(name, odd, scalar=scalar).state == jobs_pb2.JOB_STATE_SUCCEEDED


def test_wide_and_long_rows_are_merged(client, name):
    columns = {f"c{n}": [n, n + 1] for n in range(2_000)}
    table = pa.table({"id": [1, 2], **columns, "text": ["x" * (8 << 20), None]})
    client.put(name, table.slice(0, 0))
    client.merge(name, table, on=["id"])
    some = pa.table({"id": [1, 2], "c7": [-1, -2]})
    assert counts(client.merge(name, some, on=["id"])) == (0, 2, 0, 0)
    expected = table.set_column(table.column_names.index("c7"), "c7", pa.array([-1, -2]))
    assert client.scan(name).sort_by("id") == expected


# Deletes and updates.


def test_a_delete_is_one_version_once(client, name):
    client.put(name, numbers(0, 100))
    request = epoch()
    deleted = client.delete(name, "id % 10 = 3", request_id=request)
    assert (deleted.num_rows, deleted.version, deleted.already_committed) == (10, 3, False)
    again = client.delete(name, "id % 10 = 3", request_id=request)
    assert (again.num_rows, again.version, again.already_committed) == (10, 3, True)
    assert client.count(name) == 90
    assert client.delete(name, "id < 0").num_rows == 0
    assert client.delete(name).num_rows == 90
    assert client.scan(name).num_rows == 0
    client.put(name, numbers(0, 5))
    assert client.scan(name) == numbers(0, 5)


def test_an_update_sees_the_row_as_it_was_and_happens_once(client, name):
    client.put(name, numbers(0, 10))
    request = epoch()
    updated = client.update(name, "id >= 8", word="concat(word, '!')", id="id + 100", request_id=request)
    assert (updated.num_rows, updated.already_committed) == (2, False)
    assert client.update(name, "id >= 8", word="word", request_id=request).already_committed
    found = client.scan(name).sort_by("id")
    assert found["id"].to_pylist() == [*range(8), 108, 109]
    assert found["word"].to_pylist()[-2:] == ["w8!", "w9!"]


def test_rows_that_were_chosen_in_another_version_are_left_alone(client, name):
    client.put(name, numbers(0, 10))
    version = client.describe(name).version
    client.put(name, numbers(10, 20))
    assert denied(lambda: client.delete(name, "id < 5", version=version)) == "COMMIT_CONFLICT"
    assert denied(lambda: client.update(name, "id < 5", word="'x'", version=version)) == "COMMIT_CONFLICT"
    assert client.delete(name, "id < 5", version=version + 1).num_rows == 5
    assert client.count(name) == 15


def test_bad_deletes_and_updates_are_refused_and_change_nothing(client, keyed):
    client.merge(keyed, words((1, "a")))
    assert denied(client.delete, keyed, "nope = 1") == "COLUMN_NOT_FOUND"
    assert denied(client.delete, keyed, "id = ") == "INVALID_ARGUMENT"
    assert denied(lambda: client.update(keyed, None, id="7")) == "INVALID_ARGUMENT", "of the primary key"
    assert denied(lambda: client.update(keyed, None, nope="7")) == "COLUMN_NOT_FOUND"
    assert denied(lambda: client.update(keyed, None)) == "INVALID_ARGUMENT"
    assert denied(lambda: client.update(keyed, None, word="1 +")) == "INVALID_ARGUMENT"
    with pytest.raises(grpc.RpcError) as caught:
        client.update(keyed, "id = 1", word="CAST(NULL AS STRING)", request_id="no uuid")
    assert reason(caught.value) == "INVALID_ARGUMENT"
    assert rows(client, keyed) == {1: "a"} and len(client.versions(keyed)) == 2


def test_what_another_tool_reads_is_the_same(client, gateway, keyed):
    client.merge(keyed, words(*((id, f"w{id}") for id in range(50))))
    client.merge(keyed, words((3, "new"), (99, "new")))
    client.delete(keyed, "id < 3")
    client.update(keyed, "id = 4", word="'set'")
    dataset = lance.dataset(Path(gateway.warehouse) / f"{keyed}.lance")
    found = dataset.to_table().sort_by("id").to_pydict()
    assert found["id"] == [*range(3, 50), 99]
    assert found["word"] == ["new", "set", *(f"w{id}" for id in range(5, 50)), "new"]
    dataset.validate()


# Beside maintenance.


def test_a_table_whose_rows_change_everywhere_all_the_time_is_compacted_all_the_same(start_gateway, connect, name):
    client = connect(start_gateway(config={"maintenance": {"held-rows": 2_000}}))
    for first in range(0, 10_000, 500):
        # Wide, so that a merge is faster than a compaction.
        part = words(*((id, f"{id}" * 2_000) for id in range(first, first + 500)))
        client.merge(name, part, create={"primary_key": ["id"]})
    before = client.describe(name).num_fragments
    job = client.start_job(name, compaction=jobs_pb2.Compaction())
    merges = 0
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(client.end_of_job, job.id)
        while not end.done():
            merges += 1
            # A key in each fragment, so that each merge spoils any compaction beside it.
            client.merge(name, words(*((id + merges % 400, f"b{merges}") for id in range(0, 10_000, 500))))
    assert end.result().state == jobs_pb2.JOB_STATE_SUCCEEDED, end.result()
    assert merges > 0 and client.describe(name).num_fragments < before + merges
    found = rows(client, name)
    assert set(found) == set(range(10_000))
    assert [found[id] for id in range(merges % 400, 10_000, 500)] == [f"b{merges}"] * 20


# The index of the key.


def test_the_key_of_a_growing_table_is_indexed_and_kept_so(start_gateway, connect, name):
    gateway = start_gateway(config={"maintenance": {"key-index-rows": 1000}})
    client = connect(gateway)
    client.merge(name, words(*((id, "a") for id in range(999))), create={"primary_key": ["id"]})
    assert client.indexes_of(name) == {}
    client.merge(name, words(*((id, "a") for id in range(999, 1199))))
    index = eventually(lambda: client.indexes_of(name).get("id_idx"))
    assert (index.type, index.num_indexed_rows) == ("BTREE", 1199)
    client.merge(name, words(*((id, "b") for id in range(500, 2600))))
    eventually(lambda: client.indexes_of(name)["id_idx"].num_unindexed_rows == 0)
    ack = client.merge(name, words((0, "c"), (2599, "c"), (9999, "c")))
    assert counts(ack) == (1, 2, 0, 0)
    assert client.count(name) == 2601
    assert all(job.by_policy for job in client.jobs.ListJobs(jobs_pb2.ListJobsRequest()).jobs)
