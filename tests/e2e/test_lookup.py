"""Lookups over DoExchange: keys in, rows out, whatever is indexed."""

import contextlib
import json
import re
import subprocess
import sys
from ast import literal_eval

import lance
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness import paths, wire
from harness.process import clean_environment, eventually

ID = {"columns": [{"path": ["id"]}]}
INDEXES = (None, "BTREE", "BITMAP")


@pytest.fixture
def table(gateway, name):
    """The test's table as Lance itself sees it: as many fragments as it is given tables."""

    def table(*fragments: pa.Table) -> lance.LanceDataset:
        path = f"{gateway.warehouse}/{name}.lance"
        for rows in fragments:
            dataset = lance.write_dataset(rows, path, mode="append")
        return dataset

    return table


def pairs(answer: tuple[dict, list[dict]], column: str = "id") -> list[tuple]:
    """Which key found which row."""
    said, rows = answer
    assert not said.get("error") and said["num_rows"] == len(rows)
    return sorted((row["_query"], row[column]) for row in rows)


def open_stream(client: wire.Client, name: str, keys: pa.Schema, **more: object):
    columns = [{"path": [column]} for column in keys.names]
    command = {"lookup": {"table": {"name": {"parts": [name]}}, "keys": columns, **more}}
    writer, reader = client.flight.do_exchange(flight.FlightDescriptor.for_command(json.dumps(command)))
    writer.begin(keys)
    return writer, reader


def answer(reader: flight.FlightStreamReader) -> tuple[dict, list[dict]]:
    """The next one."""
    rows = []
    for chunk in reader:
        rows += chunk.data.to_pylist()
        if chunk.app_metadata is not None:
            return json.loads(chunk.app_metadata.to_pybytes()), rows
    raise AssertionError("the stream has ended")


def refused(call, *args: object, **more: object) -> str:
    with pytest.raises((flight.FlightError, pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError)) as refused:
        call(*args, **more)
    assert wire.reason(refused.value) in {"INVALID_ARGUMENT", "COLUMN_NOT_FOUND"}
    return str(refused.value)


@pytest.mark.parametrize("index", INDEXES)
def test_keys_find_their_rows_whatever_is_indexed(client, table, name, index):
    def rows(start: int) -> pa.Table:
        ids = range(start, start + 100)
        names = [None if n % 10 == 0 else f"n{n % 50}" for n in ids]
        return pa.table({"id": ids, "name": names, "wide": ["x" * 100] * 100})

    dataset = table(rows(0), rows(100))
    if index:
        dataset.create_scalar_index("name", index)
        dataset.create_scalar_index("id", "BTREE")
        # These no index covers.
        dataset = table(rows(200))
    else:
        dataset = table(rows(200))
    dataset.delete("id = 11")
    keys = pa.record_batch({"name": ["n1", "nobody", "n11", None, "n1"]})
    (found,) = client.lookup(name, ["name"], keys, projection=ID)
    assert found[0]["version"] == dataset.version
    ones, elevens = range(1, 300, 50), range(61, 300, 50)
    assert pairs(found) == [(0, n) for n in ones] + [(2, n) for n in elevens] + [(4, n) for n in ones]
    assert set(found[1][0]) == {"_query", "id"}
    both = pa.record_batch({"name": ["n1", "n1", "n2", None], "id": pa.array([51, 52, 202, 10], pa.int32())})
    (found,) = client.lookup(name, ["name", "id"], both, projection=ID)
    assert pairs(found) == [(0, 51), (2, 202)]
    even = {"filter": {"sql": "id % 2 = 0"}}
    (found,) = client.lookup(name, ["name"], pa.record_batch({"name": ["n1", "n2"]}), projection=ID, **even)
    assert pairs(found) == [(1, n) for n in range(2, 300, 50)]
    many = pa.record_batch({"id": range(-5_000, 5_000)})
    (found,) = client.lookup(name, ["id"], many, projection=ID)
    assert pairs(found) == [(n + 5_000, n) for n in range(300) if n != 11]


def test_all_columns_come_without_a_projection_and_none_with_an_empty_one(client, table, name):
    table(pa.table({"id": [1, 2], "word": ["a", "b"]}))
    keys = pa.record_batch({"id": [2]})
    ((_, rows),) = client.lookup(name, ["id"], keys)
    assert rows == [{"_query": 0, "id": 2, "word": "b"}]
    ((_, rows),) = client.lookup(name, ["id"], keys, projection={})
    assert rows == [{"_query": 0}]
    ((_, rows),) = client.lookup(name, ["id"], keys, projection={}, metadata={"row_id": True})
    assert rows == [{"_query": 0, "_rowid": 1}]


def test_any_name_can_be_a_key(client, name):
    fields = pa.array([{"In.ner": n, "other": -n} for n in range(3)])
    rows = {"id": range(3), "a.b": ["x", "y", "z"], "Word": [1, 2, 3], 'q"u`o te': [7, 8, 9], "S": fields}
    client.put(name, pa.table(rows))
    for column, value in (("a.b", "y"), ("Word", 2), ('q"u`o te', 8), (["S", "In.ner"], 1)):
        (found,) = client.lookup(name, [column], pa.record_batch({"whatever": [value]}), projection=ID)
        assert pairs(found) == [(0, 1)], column
    ((_, rows),) = client.lookup(
        name, [["S", "In.ner"]], pa.record_batch({"k": [2]}), projection={"columns": [{"path": ["S", "other"]}]}
    )
    assert rows == [{"_query": 0, "S": {"other": -2}}]
    assert "'word'" in refused(client.lookup, name, ["word"], pa.record_batch({"word": [2]}))


def test_values_of_any_width_are_compared_exactly(client, table, name):
    table(pa.table({"id": range(3), "small": pa.array([1, 44, None], pa.int8()), "f": [0.5, -0.0, float("nan")]}))
    (found,) = client.lookup(name, ["small"], pa.record_batch({"k": [1, 300, 44]}), projection=ID)
    assert pairs(found) == [(0, 0), (2, 1)]
    keys = pa.record_batch({"k": [0.5, 0.0, float("nan"), 0.1]})
    (found,) = client.lookup(name, ["f"], keys, projection=ID)
    assert pairs(found) == [(0, 0), (1, 1)]
    (found,) = client.lookup(name, ["small"], pa.record_batch({"k": pa.nulls(2)}), projection=ID)
    assert pairs(found) == []


@pytest.mark.parametrize(
    ("columns", "keys", "words"),
    [
        (["id"], {"k": ["1"]}, ("Utf8", "Int64", "'id'")),
        (["word"], {"k": [1]}, ("Int64", "Utf8", "'word'")),
        (["v"], {"k": [1.0]}, ("Float64", "FixedSizeList", "'v'")),
        (["id"], {"k": [1], "l": [2]}, ("2 columns", "compares 1")),
        (["id", "id"], {"k": [1], "l": [2]}, ("twice",)),
        ([], {"k": [1]}, ("lookup.keys is empty",)),
    ],
)
def test_keys_that_cannot_be_compared_are_refused_before_anything_is_read(client, table, name, columns, keys, words):
    table(pa.table({"id": [1], "word": ["a"], "v": pa.array([[1.0]], pa.list_(pa.float32(), 1))}))
    message = refused(client.lookup, name, columns, pa.record_batch(keys))
    assert all(word in message for word in words), message


def test_a_stream_answers_each_batch_with_the_newest_version_unless_one_is_pinned(client, table, name):
    dataset = table(pa.table({"id": [1], "n": [10]}))
    keys = pa.record_batch({"id": [2, 1]})
    with contextlib.ExitStack() as stack:
        latest, pinned = (
            open_stream(client, name, keys.schema, projection=ID, **more) for more in ({}, {"version": {"version": 1}})
        )
        for writer, _ in (latest, pinned):
            stack.enter_context(writer)

        def ask(stream) -> tuple[dict, list[tuple]]:
            stream[0].write_batch(keys)
            found = answer(stream[1])
            return found[0], pairs(found)

        assert ask(latest)[1] == ask(pinned)[1] == [(1, 1)]
        lance.write_dataset(pa.table({"id": [2], "n": [20]}), dataset.uri, mode="append")
        said, found = ask(latest)
        assert found == [(2, 2), (3, 1)] and (said["version"], said["batch"], said["first_query"]) == (2, 1, 2)
        said, found = ask(pinned)
        assert found == [(3, 1)] and said["version"] == 1
        lance.dataset(dataset.uri).delete("id = 1")
        assert ask(latest)[1] == [(4, 2)] and ask(pinned)[1] == [(5, 1)]
        latest[0].done_writing()
        pinned[0].done_writing()


def test_batches_without_keys_and_with_ten_thousand_are_answered_too(start_gateway, connect, name):
    client = connect(start_gateway(config={"search": {"lookup-keys": 1_000}}))
    client.put(name, pa.table({"id": range(20_000)}))
    none, many = pa.record_batch({"id": pa.array([], pa.int64())}), pa.record_batch({"id": range(15_000, 25_000)})
    empty, found, last = client.lookup(name, ["id"], none, many, pa.record_batch({"id": [3]}))
    assert (empty[0]["num_rows"], empty[1]) == (0, [])
    assert pairs(found) == [(n, n + 15_000) for n in range(5_000)]
    assert last[0]["first_query"] == 10_000 and pairs(last) == [(10_000, 3)]


def test_a_batch_that_fails_disturbs_no_other(start_gateway, connect, name):
    client = connect(start_gateway(config={"scan": {"max-row-bytes": "64KiB", "batch-bytes": "64KiB"}}))
    client.put(name, pa.table({"id": [1, 2, 3], "text": ["a", "b" * 100_000, "c"]}))
    one, two, three = (pa.record_batch({"id": [n]}) for n in (1, 2, 3))
    first, failed, last = client.lookup(name, ["id"], one, two, three)
    assert pairs(first) == [(0, 1)] and pairs(last) == [(2, 3)]
    assert (failed[0]["error"]["reason"], failed[0]["num_rows"], failed[1]) == ("ROW_TOO_LARGE", 0, [])
    assert "scan.max-row-bytes" in failed[0]["error"]["message"]
    assert [pairs(found) for found in client.lookup(name, ["id"], two, projection=ID)] == [[(0, 2)]]


def test_a_client_that_dies_gives_its_place_back(start_gateway, connect, name):
    gateway = start_gateway(config={"scan": {"max-streams": 1}})
    client = connect(gateway)
    client.put(name, pa.table({"id": range(64), "text": ["x" * 2**20] * 64}), chunk=16)
    code = """
import json, sys
import pyarrow as pa, pyarrow.flight as flight
command = {"lookup": {"table": {"name": {"parts": [sys.argv[2]]}}, "keys": [{"path": ["id"]}]}}
writer, reader = flight.connect(sys.argv[1]).do_exchange(flight.FlightDescriptor.for_command(json.dumps(command)))
keys = pa.record_batch({"id": list(range(64))})
writer.begin(keys.schema)
for _ in range(8):
    writer.write_batch(keys)
reader.read_chunk()
print("reading", flush=True)
sys.stdin.read()
"""
    argv = [sys.executable, "-c", code, gateway.uri, name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "reading\n"
        assert gateway.metric("lance_gateway_permits_used", pool="scans") == 1
        assert gateway.metric("lance_gateway_permits_used", pool="searches") >= 1
        reader.kill()
    for pool in ("scans", "searches"):
        eventually(lambda pool=pool: gateway.metric("lance_gateway_permits_used", pool=pool) == 0, 10, f"free {pool}")


def test_the_page_about_lookups_works_as_it_is_written(gateway):
    page = (paths.ROOT / "docs/lookup.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "grpc://127.0.0.1:8815" in code
    code = code.replace("grpc://127.0.0.1:8815", gateway.uri)
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    rows, answer = done.stdout.splitlines()
    assert sorted((row["_query"], row["name"]) for row in literal_eval(rows)) == [(0, "Ada"), (0, "Cy"), (2, "Bo")]
    assert literal_eval(answer)["num_rows"] == 3
