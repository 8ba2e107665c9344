"""Tables by plain pyarrow.flight: what any Arrow client can do without our libraries."""

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight
import pytest

from harness.rows import numbers, refused
from harness.wire import scan_pb2


def test_a_table_put_by_path_is_listed_described_and_read_back(client, name):
    rows = numbers(0, 1000)
    ack = client.put(name, rows)
    assert (ack.num_rows, ack.version) == (1000, client.versions(name)[0].version)

    listed = {tuple(p.decode() for p in info.descriptor.path) for info in client.flight.list_flights()}
    assert (name,) in listed

    info = client.flight.get_flight_info(flight.FlightDescriptor.for_path(name))
    assert info.schema == rows.schema
    assert info.total_records == 1000
    assert client.flight.get_schema(flight.FlightDescriptor.for_path(name)).schema == rows.schema
    assert client.read(info) == rows


def test_a_second_put_appends_and_makes_one_version(client, name):
    client.put(name, numbers(0, 10))
    before = len(client.versions(name))
    client.put(name, numbers(10, 30), chunk=3)
    assert len(client.versions(name)) == before + 1
    assert client.scan(name).sort_by("id") == numbers(0, 30)


def test_a_json_command_projects_filters_and_limits(client, name):
    client.put(name, numbers(0, 100))
    got = client.scan(
        name,
        projection={"columns": [{"path": ["word"]}]},
        filter={"sql": "id >= 50"},
        limit="10",
    )
    assert got.column_names == ["word"]
    assert got["word"].to_pylist() == [f"w{i}" for i in range(50, 60)]


def test_limit_0_is_the_schema_and_no_row_and_no_limit_is_all_rows(client, name):
    client.put(name, numbers(0, 100))
    nothing = client.scan(name, limit="0")
    assert nothing.num_rows == 0
    assert nothing.schema == numbers(0, 1).schema
    assert client.scan(name).num_rows == 100
    assert client.scan(name, limit="7").num_rows == 7


def test_a_limit_finds_its_rows_in_the_last_of_three_fragments(client, name):
    for part in range(3):
        flags = [part == 2] * 100
        client.put(name, pa.table({"topic": ["A"] * 100, "flag": flags, "part": [part] * 100}))
    got = client.scan(name, filter={"sql": "topic = 'A' AND flag"}, limit="10", split_bytes="1048576")
    assert got["part"].to_pylist() == [2] * 10
    # The limit is one of the job, not one of each split.
    assert client.scan(name, limit="10", split_bytes="1", max_splits=3).num_rows == 10


def test_a_plan_tells_rows_and_bytes_of_the_whole_and_of_each_split(client, name):
    for start in (0, 100, 400):
        client.put(name, numbers(start, start + 100))
    # The bytes of a file and a half: a split for each fragment.
    info = client.plan(name, split_bytes=str(client.plan(name).total_bytes // 2))
    plan = scan_pb2.ScanPlan.FromString(info.app_metadata)
    splits = [scan_pb2.ScanSplit.FromString(endpoint.app_metadata) for endpoint in info.endpoints]
    assert [s.num_rows for s in splits] == [100, 100, 100]
    assert [client.flight.do_get(e.ticket).read_all().num_rows for e in info.endpoints] == [100, 100, 100]
    assert all(s.num_bytes > 0 for s in splits)
    assert (info.total_records, info.total_bytes) == (plan.num_rows, plan.num_bytes)
    assert sum(s.num_rows for s in splits) == plan.num_rows == 300
    assert sum(s.num_bytes for s in splits) == plan.num_bytes
    rows = client.plan(name, split_bytes="1")
    assert len(rows.endpoints) > 3
    assert sum(scan_pb2.ScanSplit.FromString(e.app_metadata).num_bytes for e in rows.endpoints) == plan.num_bytes
    # How much a filter keeps is not known before.
    filtered = client.plan(name, filter={"sql": "id > 3"})
    assert (filtered.total_records, filtered.total_bytes) == (-1, -1)


def test_ids_addresses_and_versions_of_rows_come_after_the_columns(client, gateway, name):
    uri = f"{gateway.warehouse}/{name}.lance"
    lance.write_dataset(numbers(0, 2), uri, enable_stable_row_ids=True)
    added = client.put(name, numbers(2, 4)).version
    id_column = {"columns": [{"path": ["id"]}]}
    got = client.scan(name, projection=id_column, metadata={"row_id": True, "row_address": True, "row_versions": True})
    assert got.to_pydict() == {
        "id": [0, 1, 2, 3],
        "_rowid": [0, 1, 2, 3],
        "_rowaddr": [0, 1, 1 << 32, (1 << 32) + 1],
        "_row_created_at_version": [1, 1, added, added],
        "_row_last_updated_at_version": [1, 1, added, added],
    }
    lance.dataset(uri).update({"word": "'new'"}, where="id = 1")
    got = client.scan(
        name, projection=id_column, filter={"sql": "id = 1"}, metadata={"row_id": True, "row_versions": True}
    )
    assert got.to_pydict() == {
        "id": [1],
        "_rowid": [1],
        "_row_created_at_version": [1],
        "_row_last_updated_at_version": [added + 1],
    }


def test_a_table_without_stable_row_ids_has_no_row_versions(client, gateway, name):
    lance.write_dataset(numbers(0, 2), f"{gateway.warehouse}/{name}.lance")
    assert client.scan(name, metadata={"row_id": True})["_rowid"].to_pylist() == [0, 1]
    why, message = refused(client.plan, name, metadata={"row_versions": True})
    assert why == "UNSUPPORTED" and "stable row ids" in message


def test_all_splits_read_the_planned_version_whatever_others_commit(client, gateway, name):
    for start in range(0, 100, 25):
        client.put(name, numbers(start, start + 25))
    info = client.plan(name, split_bytes="1")
    planned = scan_pb2.ScanPlan.FromString(info.app_metadata).version
    client.put(name, numbers(100, 150))
    lance.dataset(f"{gateway.warehouse}/{name}.lance").delete("id < 10")
    assert client.count(name) == 140

    assert client.read(info).sort_by("id") == numbers(0, 100)
    assert client.scan(name, version={"version": str(planned)}).num_rows == 100


def test_a_stream_goes_on_at_the_row_where_it_was_cut(client, name):
    client.put(name, numbers(0, 1000))
    (endpoint,) = client.plan(name).endpoints
    ticket = scan_pb2.ScanTicket.FromString(endpoint.ticket.ticket)
    ticket.row_offset = 990
    got = client.flight.do_get(flight.Ticket(ticket.SerializeToString())).read_all()
    assert got["id"].to_pylist() == list(range(990, 1000))


def test_or_and_and_keep_their_precedence(client, name):
    client.put(name, pa.table({"status": ["active", "active", "archived"], "id": [1, 2, 3]}))
    got = client.scan(name, filter={"sql": "(status = 'active' AND id = 1) OR status = 'archived'"})
    assert got["id"].to_pylist() == [1, 3]


def test_names_with_odd_characters_are_columns_like_others(client, name):
    rows = pa.table({"PartyAbbrev": ["x", "y"], "user-id": [1, 2], "a.b": [1.5, 2.5], "select": [True, False]})
    client.put(name, rows)
    assert client.scan(name) == rows
    for column in rows.column_names:
        got = client.scan(name, projection={"columns": [{"path": [column]}]})
        assert got == rows.select([column])
    typed = {
        "call": {
            "operator": "OPERATOR_EQUAL",
            "arguments": [{"column": {"path": ["a.b"]}}, {"literal": {"float64": 2.5}}],
        }
    }
    assert client.scan(name, filter={"expression": typed})["user-id"].to_pylist() == [2]
    assert client.scan(name, filter={"sql": "`user-id` = 1 AND `select`"})["PartyAbbrev"].to_pylist() == ["x"]
    assert client.scan(name, filter={"sql": "`PartyAbbrev` = 'y'"}).num_rows == 1


def test_an_unknown_column_is_an_error_and_not_an_empty_answer(client, name):
    client.put(name, numbers(0, 3))
    why, message = refused(client.scan, name, projection={"columns": [{"path": ["nope"]}]})
    assert why == "COLUMN_NOT_FOUND" and "nope" in message
    why, message = refused(client.scan, name, filter={"sql": "nope = 1"})
    assert why == "COLUMN_NOT_FOUND" and "nope" in message


def test_times_before_1970_and_at_a_boundary_are_found_exactly(client, name):
    times = pa.array(
        [pc.strptime(t, "%Y-%m-%dT%H:%M:%S", "us").as_py() for t in ("2023-12-31T23:59:59", "2024-01-01T00:00:00")],
        pa.timestamp("us", "UTC"),
    )
    client.put(name, pa.table({"ts": pa.concat_arrays([times, pa.array([-500_000], pa.timestamp("us", "UTC"))])}))

    def found(operator: str, seconds: int, nanos: int = 0) -> list:
        moment = {"seconds": str(seconds), "nanos": nanos, "zoned": True}
        call = {"operator": operator, "arguments": [{"column": {"path": ["ts"]}}, {"literal": {"timestamp": moment}}]}
        return client.scan(name, filter={"expression": {"call": call}})["ts"].cast(pa.int64()).to_pylist()

    assert found("OPERATOR_GREATER_OR_EQUAL", 1_704_067_200) == [1_704_067_200_000_000]
    assert found("OPERATOR_EQUAL", -1, 500_000_000) == [-500_000]


@pytest.mark.parametrize("storage", ["2.0", "2.1", "2.2"])
def test_nulls_in_structs_and_vectors_shift_no_neighbour(client, gateway, name, storage):
    vector = pa.list_(pa.float32(), 4)
    point = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    holder = pa.struct([("v", vector)])
    v = [1.0, 2.0, 3.0, 4.0]
    rows = {
        "id": pa.array([1, 2, 3, 4]),
        "point": pa.array([{"x": 1, "y": 2}, None, {"x": None, "y": None}, {"x": 7, "y": 8}], point),
        "v": pa.array([v, None, [5.0] * 4, v], vector),
        "holder": pa.array([{"v": v}, None, {"v": None}, {"v": [9.0] * 4}], holder),
    }
    rows = pa.table(rows)
    lance.write_dataset(rows.slice(0, 0), f"{gateway.warehouse}/{name}.lance", data_storage_version=storage)
    if storage == "2.0":
        # The format has no place for the null of a struct: an error, and not a struct of nulls.
        why, message = refused(client.put, name, rows)
        assert why in ("SCHEMA_MISMATCH", "UNSUPPORTED") and "point" in message
        rows = rows.slice(0, 1)
    client.put(name, rows)
    assert client.describe(name).data_storage_version == storage
    assert client.scan(name).to_pylist() == rows.to_pylist()
    nested = client.scan(name, projection={"columns": [{"path": ["point", "x"]}]})
    assert nested.flatten().column(0).to_pylist() == [p and p["x"] for p in rows["point"].to_pylist()]


def test_wide_and_empty_and_odd_input_comes_back_as_it_was(client, name):
    def same(rows: pa.Table, suffix: str) -> None:
        client.put(f"{name}_{suffix}", rows)
        got = client.scan(f"{name}_{suffix}")
        assert got.schema == rows.schema
        assert got.equals(rows) or got.to_pandas().equals(rows.to_pandas()), suffix

    same(numbers(0, 0), "empty")
    same(numbers(0, 1), "one")
    same(pa.table({"a": pa.nulls(1000, pa.int32()), "b": pa.nulls(1000, pa.string())}), "nulls")
    same(pa.table({f"c{i}": pa.array([i, None], pa.int32()) for i in range(2000)}), "columns")
    same(pa.table({"s": ["", "\x00", "ä€𝄞", "'\"\\`;--", "x" * (8 << 20)]}), "strings")

    floats = pa.table({"f": pa.array([float("nan"), float("inf"), -float("inf"), -0.0, None], pa.float64())})
    client.put(f"{name}_floats", floats)
    got = client.scan(f"{name}_floats")["f"].to_pylist()
    assert np.isnan(got[0]) and got[1:3] == [np.inf, -np.inf] and np.signbit(got[3]) and got[4] is None


def test_rows_that_do_not_fit_are_refused_by_the_name_of_the_field(client, gateway, name):
    client.put(name, pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([[1.0] * 4], pa.list_(pa.float32(), 4))}))
    files = set((gateway.warehouse / f"{name}.lance").rglob("*"))

    wrong_type = pa.table({"id": ["text"], "v": pa.array([[1.0] * 4], pa.list_(pa.float32(), 4))})
    why, message = refused(client.put, name, wrong_type)
    assert why in ("SCHEMA_MISMATCH", "INVALID_ARGUMENT") and "id" in message
    wrong_length = pa.table({"id": pa.array([2]), "v": pa.array([[1.0] * 3], pa.list_(pa.float32(), 3))})
    why, message = refused(client.put, name, wrong_length)
    assert why in ("SCHEMA_MISMATCH", "INVALID_ARGUMENT") and "v" in message
    unknown = pa.table({"id": pa.array([2]), "v": pa.array([[1.0] * 4], pa.list_(pa.float32(), 4)), "extra": [1]})
    why, message = refused(client.put, name, unknown)
    assert why in ("SCHEMA_MISMATCH", "INVALID_ARGUMENT") and "extra" in message

    assert set((gateway.warehouse / f"{name}.lance").rglob("*")) == files
    assert client.count(name) == 1


@pytest.mark.parametrize("bad", ["..", "../x", "a/b", "/etc/passwd", ".hidden", "", "x" * 200, "a\x00b", "a\\b"])
def test_a_name_that_leads_elsewhere_is_refused(client, bad):
    why, _ = refused(client.flight.get_flight_info, flight.FlightDescriptor.for_path(bad))
    assert why == "INVALID_ARGUMENT"
    why, _ = refused(client.put_to, flight.FlightDescriptor.for_path(bad), numbers(0, 1))
    assert why == "INVALID_ARGUMENT"


@pytest.mark.parametrize("uri", ["s3://bucket/t.lance", "file:///etc", "http://127.0.0.1/x", "/tmp/elsewhere.lance"])
def test_a_place_that_the_operator_does_not_allow_is_refused(client, uri):
    descriptor = flight.FlightDescriptor.for_command('{"table":{"uri":"%s"}}' % uri)
    why, _ = refused(client.flight.get_flight_info, descriptor)
    assert why in ("PERMISSION_DENIED", "INVALID_ARGUMENT")


def test_what_is_not_there_is_named(client, name):
    why, message = refused(client.plan, name)
    assert why == "TABLE_NOT_FOUND" and name in message
    client.put(name, numbers(0, 1))
    assert refused(client.plan, name, version={"version": "999"})[0] == "TABLE_VERSION_NOT_FOUND"
    assert refused(client.plan, name, version={"tag": "nope"})[0] == "TABLE_VERSION_NOT_FOUND"


def test_a_version_that_was_cleaned_up_is_a_clear_error_at_plan_and_at_read(client, gateway, name):
    client.put(name, numbers(0, 10))
    planned = client.plan(name)
    version = scan_pb2.ScanPlan.FromString(planned.app_metadata).version
    dataset = lance.dataset(f"{gateway.warehouse}/{name}.lance")
    dataset.delete("id >= 0")
    client.put(name, numbers(10, 20))
    lance.dataset(dataset.uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)

    assert refused(client.plan, name, version={"version": str(version)})[0] == "TABLE_VERSION_NOT_FOUND"
    why, _ = refused(client.read, planned)
    assert why == "TABLE_VERSION_NOT_FOUND"


@pytest.mark.parametrize(
    "bytes_",
    [b"", b"{", b"[]", b'{"table":{}}', b'{"tabel":{"name":{"parts":["x"]}}}', b"\xff\xff\xff\xff", b"\x00" * 64],
)
def test_commands_and_tickets_that_make_no_sense_are_refused(client, bytes_):
    why, _ = refused(client.flight.get_flight_info, flight.FlightDescriptor.for_command(bytes_))
    assert why == "INVALID_ARGUMENT"
    why, _ = refused(lambda: client.flight.do_get(flight.Ticket(bytes_)).read_all())
    assert why == "INVALID_ARGUMENT"


def test_a_filter_nested_ten_thousand_deep_is_refused_and_the_gateway_lives(client, gateway, name):
    client.put(name, numbers(0, 3))
    deep = "NOT (" * 10_000 + "id = 1" + ")" * 10_000
    assert refused(client.plan, name, filter={"sql": deep})[0] == "INVALID_ARGUMENT"
    text = '{"call":{"operator":"OPERATOR_NOT","arguments":[' * 10_000
    json_filter = '{"table":{"name":{"parts":["%s"]}},"filter":{"expression":%s%s%s}}' % (
        name,
        text,
        '{"column":{"path":["id"]}}',
        "]}}" * 10_000,
    )
    descriptor = flight.FlightDescriptor.for_command(json_filter)
    assert refused(client.flight.get_flight_info, descriptor)[0] == "INVALID_ARGUMENT"
    assert client.count(name) == 3
    gateway.process.check_alive()
