"""What each version of a table changed, as readers of any kind see it."""

import datetime
import random

import lance
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness.process import eventually
from harness.rows import refused
from harness.wire import denied, epoch, index_pb2, jobs_pb2, scan_pb2, table, tables_pb2, write_pb2

INSERTED, BEFORE, AFTER, DELETED = range(4)
KIND, VERSION, TIME = "_change_kind", "_commit_version", "_commit_timestamp"


def words(*pairs: tuple[int, str | None]) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
    return pa.table({"id": [id for id, _ in pairs], "word": [word for _, word in pairs]}, schema=schema)


@pytest.fixture
def keyed(client, name):
    """A table with a primary key; its first version has no row."""
    request = tables_pb2.CreateTableRequest(
        table=table(name),
        schema=words().schema.serialize().to_pybytes(),
        options=tables_pb2.CreateOptions(primary_key=["id"]),
    )
    client.tables.CreateTable(request)
    return name


def after(version: int, **more: object) -> dict:
    return {"after": {"version": str(version)}, **more}


def feed(client, name: str, changes: dict, **more: object) -> list[tuple]:
    """Kind, version and the values of each change."""
    return events(client.scan(name, changes=changes, **more))


def events(found: pa.Table) -> list[tuple]:
    assert found.column_names[-3:] == [KIND, VERSION, TIME]
    values = [found[column].to_pylist() for column in found.column_names[:-3]]
    return list(zip(found[KIND].to_pylist(), found[VERSION].to_pylist(), *values, strict=True))


def by_version(found: list[tuple]) -> dict[int, list[tuple]]:
    """The changes of each version, those of a key in their order."""
    versions: dict[int, list[tuple]] = {}
    for kind, version, *values in found:
        versions.setdefault(version, []).append((kind, *values))
    assert list(versions) == sorted(versions), "versions come in their order"
    return {version: sorted(rows, key=lambda row: row[1]) for version, rows in versions.items()}


def dataset(gateway, name: str) -> lance.LanceDataset:
    return lance.dataset(str(gateway.warehouse / f"{name}.lance"))


def compact(client, name: str) -> None:
    client.run_job(name, compaction=jobs_pb2.Compaction())


def clean_up(client, name: str, keep: int) -> None:
    client.run_job(name, cleanup=jobs_pb2.Cleanup(keep_versions=keep))


def replay(found: list[tuple], rows: dict | None = None) -> dict:
    """What a table has that takes all changes by its first column. They must fit to what it has."""
    rows = dict(rows or {})
    for kind, version, key, *values in found:
        if kind in (BEFORE, DELETED):
            assert rows.pop(key) == values, f"version {version} takes away what was not there"
        else:
            assert key not in rows, f"version {version} adds {key} twice"
            rows[key] = values
    return rows


def test_inserts_updates_and_deletes_come_by_version_with_what_was_before(client, keyed):
    client.merge(keyed, words((1, "a"), (2, "b"), (3, None)))
    client.merge(keyed, words((2, "B"), (4, "d")))
    client.delete(keyed, "id = 3")
    client.update(keyed, "id = 4", word="upper(word)")
    found = feed(client, keyed, after(1))
    assert by_version(found) == {
        2: [(INSERTED, 1, "a"), (INSERTED, 2, "b"), (INSERTED, 3, None)],
        3: [(BEFORE, 2, "b"), (AFTER, 2, "B"), (INSERTED, 4, "d")],
        4: [(DELETED, 3, None)],
        5: [(BEFORE, 4, "d"), (AFTER, 4, "D")],
    }
    assert [row[:2] for row in found] == [(k, v) for v, rows in by_version(found).items() for k, *_ in rows]
    assert feed(client, keyed, after(3, to={"version": "4"})) == [(DELETED, 4, 3, None)]
    assert feed(client, keyed, after(5)) == []
    assert feed(client, keyed, {}) == [], "without a start it begins with the latest"


def test_changes_tell_when_they_were_committed(client, keyed):
    before = datetime.datetime.now(datetime.UTC)
    client.merge(keyed, words((1, "a")))
    found = client.scan(keyed, changes=after(1))
    schema = found.schema
    assert schema.field(KIND).type == pa.int8() and schema.field(VERSION).type == pa.uint64()
    assert schema.field(TIME).type == pa.timestamp("us", "UTC")
    assert not any(schema.field(column).nullable for column in (KIND, VERSION, TIME, "id"))
    committed = client.versions(keyed)[0].committed_at.ToDatetime(datetime.UTC)
    assert before <= committed
    assert abs(found[TIME][0].as_py() - committed) < datetime.timedelta(microseconds=2)


def test_the_rows_of_a_version_may_come_first(client, keyed):
    client.merge(keyed, words((1, "a"), (2, "b")))
    client.merge(keyed, words((2, "B")))
    found = feed(client, keyed, after(2, initial=True))
    assert sorted(found[:2]) == [(INSERTED, 2, 1, "a"), (INSERTED, 2, 2, "b")]
    assert found[2:] == [(BEFORE, 3, 2, "b"), (AFTER, 3, 2, "B")]
    assert sorted(feed(client, keyed, {"initial": True})) == [(INSERTED, 3, 1, "a"), (INSERTED, 3, 2, "B")]
    assert feed(client, keyed, {"after_oldest": True})[:1] == [(INSERTED, 2, 1, "a")]
    assert len(feed(client, keyed, after(0))) == 4, "version 0 is the table before its first version"


def test_a_time_or_a_tag_says_where_changes_begin(client, keyed, gateway):
    client.merge(keyed, words((1, "a")))
    dataset(gateway, keyed).tags.create("first", 2)
    committed = client.versions(keyed)[0].committed_at.ToJsonString()
    client.merge(keyed, words((2, "b")))
    for start in ({"tag": "first"}, {"as_of": committed}):
        assert feed(client, keyed, {"after": start}) == [(INSERTED, 3, 2, "b")], start


def test_what_only_moves_rows_is_no_change(client, keyed, gateway):
    for i in range(4):
        client.merge(keyed, words((i, "a"), (i + 1, "b")))
    version = client.describe(keyed).version
    compact(client, keyed)
    client.index(keyed, "id", scalar=index_pb2.ScalarIndex(type=index_pb2.SCALAR_INDEX_TYPE_BTREE))
    dataset(gateway, keyed).update_config({"note": "x"})
    assert client.describe(keyed).version >= version + 3
    assert feed(client, keyed, after(version)) == []
    client.merge(keyed, words((0, "z")))
    assert [row[0] for row in feed(client, keyed, after(version))] == [BEFORE, AFTER]
    assert len(replay(feed(client, keyed, after(1)))) == 5


def test_columns_are_projected_and_named_as_of_the_last_version(client, keyed, gateway):
    client.merge(keyed, words((1, "a")))
    projection = {"columns": [{"path": ["word"]}]}
    assert feed(client, keyed, after(1), projection=projection) == [(INSERTED, 2, "a")]
    assert feed(client, keyed, after(1), projection={}) == [(INSERTED, 2)]
    dataset(gateway, keyed).alter_columns({"path": "word", "name": "text"})
    found = client.scan(keyed, changes=after(1))
    assert found.column_names[:2] == ["id", "text"] and events(found) == [(INSERTED, 2, 1, "a")]
    projection = {"columns": [{"path": ["word"]}]}
    assert refused(feed, client, keyed, after(1), projection=projection)[0] == "COLUMN_NOT_FOUND"


def test_a_column_that_came_later_is_null_before_and_its_values_are_updates(client, keyed, gateway):
    client.merge(keyed, words((1, "a"), (2, "b")))
    foreign = dataset(gateway, keyed)
    foreign.add_columns(pa.field("note", pa.string()))
    foreign.add_columns({"size": "cast(length(word) as int)"})
    version = client.describe(keyed).version
    found = feed(client, keyed, after(1))
    assert by_version(found) == {
        2: [(INSERTED, 1, "a", None, None), (INSERTED, 2, "b", None, None)],
        version: [
            (BEFORE, 1, "a", None, None),
            (AFTER, 1, "a", None, 1),
            (BEFORE, 2, "b", None, None),
            (AFTER, 2, "b", None, 1),
        ],
    }
    assert client.scan(keyed, changes=after(1)).schema.field("size").nullable
    foreign.drop_columns(["word"])
    assert {row[2:] for row in feed(client, keyed, after(1))} == {
        (1, None, None),
        (1, None, 1),
        (2, None, None),
        (2, None, 1),
    }


def test_an_overwrite_updates_the_keys_that_stay(client, keyed):
    client.merge(keyed, words((1, "a"), (2, "b")))
    begun = client.begin(keyed, mode=write_pb2.WRITE_MODE_OVERWRITE, run_id=epoch())
    client.commit(client.prepare(epoch(), 1, begun.write, client.stage(begun.write, words((2, "B"), (3, "c")))))
    assert by_version(feed(client, keyed, after(2))) == {
        3: [(DELETED, 1, "a"), (BEFORE, 2, "b"), (AFTER, 2, "B"), (INSERTED, 3, "c")]
    }


def test_a_restored_version_takes_back_what_changed(client, keyed, gateway):
    client.merge(keyed, words((1, "a"), (2, "b")))
    client.delete(keyed, "id = 1")
    client.merge(keyed, words((2, "B")))
    dataset(gateway, keyed).checkout_version(2).restore()
    found = feed(client, keyed, after(1))
    assert by_version(found)[5] == [(INSERTED, 1, "a"), (BEFORE, 2, "B"), (AFTER, 2, "b")]
    assert replay(found) == {1: ["a"], 2: ["b"]}


def test_without_a_key_rows_are_told_apart_by_their_ids(client, name, gateway):
    client.put(name, words((1, "a"), (1, "a"), (2, "b")))
    client.update(name, "id = 2", word="'B'")
    dataset(gateway, name).update({"word": "'A'"}, where="id = 1")
    client.delete(name, "id = 1")
    first = client.versions(name)[-1].version
    versions = by_version(feed(client, name, after(first)))
    inserted, of_gateway, of_lance, deleted = versions.values()
    assert inserted == [(INSERTED, 1, "a"), (INSERTED, 1, "a"), (INSERTED, 2, "b")]
    assert of_gateway == [(DELETED, 2, "b"), (INSERTED, 2, "B")], "the gateway writes a row anew"
    assert of_lance == [(BEFORE, 1, "a"), (AFTER, 1, "A"), (BEFORE, 1, "a"), (AFTER, 1, "A")]
    assert deleted == [(DELETED, 1, "A"), (DELETED, 1, "A")]


def test_a_key_that_is_there_twice_is_updated_once_and_deleted_once(client, keyed):
    client.put(keyed, words((1, "a"), (1, "b")))
    client.merge(keyed, words((1, "c")))
    kinds = sorted(row[0] for row in feed(client, keyed, after(2)))
    assert kinds == [BEFORE, AFTER, DELETED]


def test_a_reader_goes_on_behind_any_row(client, keyed):
    client.merge(keyed, words(*((i, f"w{i}") for i in range(20))))
    client.merge(keyed, words(*((i, "new") for i in range(10, 25))))
    client.delete(keyed, "id < 5")
    [endpoint] = client.plan(keyed, changes=after(2, initial=True)).endpoints
    ticket = scan_pb2.ScanTicket.FromString(endpoint.ticket.ticket)
    whole = events(client.flight.do_get(endpoint.ticket).read_all())
    assert len(whole) == 20 + 10 * 2 + 5 + 5
    for offset in range(len(whole) + 2):
        ticket.row_offset = offset
        rest = client.flight.do_get(flight.Ticket(ticket.SerializeToString())).read_all()
        assert events(rest) == whole[offset:], offset


def test_a_reader_goes_on_at_another_gateway_when_its_own_was_killed(start_gateway, connect, name):
    first = start_gateway()
    second = start_gateway(warehouse=first.warehouse)
    client = connect(first)
    client.merge(name, words(*((i, "a") for i in range(1_000))), create={"primary_key": ["id"]})
    client.merge(name, words(*((i, "b") for i in range(500, 1_500))))
    client.delete(name, "id % 3 = 0")
    [endpoint] = client.plan(name, changes=after(1), batch={"rows": 100}).endpoints
    whole = events(client.flight.do_get(endpoint.ticket).read_all())
    reader = client.flight.do_get(endpoint.ticket)
    read = [reader.read_chunk().data for _ in range(7)]
    first.kill()
    ticket = scan_pb2.ScanTicket.FromString(endpoint.ticket.ticket)
    ticket.row_offset = sum(batch.num_rows for batch in read)
    rest = connect(second).flight.do_get(flight.Ticket(ticket.SerializeToString())).read_all()
    assert events(pa.Table.from_batches(read)) + events(rest) == whole


def test_a_cleanup_in_mid_read_ends_it_with_a_reason(start_gateway, connect, name):
    client = connect(start_gateway(config={"scan": {"send-buffer-bytes": "1MiB"}}))
    client.merge(name, words((0, "a")), create={"primary_key": ["id"]})
    for i in range(30):
        client.merge(name, words(*((key, "x" * 4_000) for key in range(i * 200, i * 200 + 200))))
    reader = client.flight.do_get(client.plan(name, changes=after(1)).endpoints[0].ticket)
    reader.read_chunk()
    clean_up(client, name, keep=1)
    why, message = refused(reader.read_all)
    assert why == "TABLE_VERSION_NOT_FOUND" and "removed by a cleanup" in message


def test_parts_hold_each_change_once_and_all_changes_of_a_key(client, keyed):
    random.seed(1)
    for _ in range(6):
        client.merge(keyed, words(*((i, str(random.random())) for i in random.sample(range(300), 100))))
        client.delete(keyed, f"id % 7 = {random.randrange(7)}")
    whole = feed(client, keyed, after(1))
    info = client.plan(keyed, changes=after(1, parts=3))
    parts = [events(client.flight.do_get(endpoint.ticket).read_all()) for endpoint in info.endpoints]
    assert len(parts) == 3 and all(len(part) > len(whole) / 6 for part in parts)
    keys = [{row[2] for row in part} for part in parts]
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]
    assert sorted(repr(row) for part in parts for row in part) == sorted(map(repr, whole))
    together = {}
    for part in parts:
        together |= replay(part)
    assert together == replay(whole)
    again = client.plan(keyed, changes=after(5, initial=True, parts=3))
    for keys_of_part, endpoint in zip(keys, again.endpoints, strict=True):
        rows = events(client.flight.do_get(endpoint.ticket).read_all())
        assert {row[2] for row in rows} <= keys_of_part, "a key stays in its part, whatever versions are read"


def test_a_version_with_more_rows_than_are_compared_at_once_is_read_in_passes(start_gateway, connect, name):
    client = connect(start_gateway(config={"changes": {"rows-at-once": 1000}}))
    client.merge(name, words(*((i, "a") for i in range(5_000))), create={"primary_key": ["id"]})
    client.merge(name, words(*((i, "b") for i in range(2_500, 7_500))))
    version = client.describe(name).version
    found = feed(client, name, after(version - 1))
    assert len(found) == 2 * 2_500 + 2_500
    assert replay(found, {i: ["a"] for i in range(5_000)}) == {i: ["a" if i < 2_500 else "b"] for i in range(7_500)}
    [endpoint] = client.plan(name, changes=after(version - 1)).endpoints
    ticket = scan_pb2.ScanTicket.FromString(endpoint.ticket.ticket)
    for offset in (1, 999, 1_000, 1_001, 3_333, 7_499):
        ticket.row_offset = offset
        rest = client.flight.do_get(flight.Ticket(ticket.SerializeToString())).read_all()
        assert events(rest) == found[offset:], offset


# Versions that are gone, and those that are held.


def test_a_removed_version_is_an_error_that_names_it_and_the_oldest(client, keyed):
    for i in range(9):
        client.merge(keyed, words((i, "a")))
    clean_up(client, keyed, keep=2)
    why, message = refused(feed, client, keyed, after(5))
    assert why == "TABLE_VERSION_NOT_FOUND"
    assert "version 5" in message and "oldest version that there is now is 9" in message
    assert feed(client, keyed, {"after_oldest": True}) == [(INSERTED, 10, 8, "a")]
    why, message = refused(feed, client, keyed, after(50))
    assert why == "TABLE_VERSION_NOT_FOUND" and "has no version 50" in message


def hold(client, name: str, holder: str, version: int) -> tables_pb2.HoldVersionResponse:
    return client.tables.HoldVersion(tables_pb2.HoldVersionRequest(table=table(name), holder=holder, version=version))


def release(client, name: str, holder: str) -> bool:
    request = tables_pb2.ReleaseVersionRequest(table=table(name), holder=holder)
    return client.tables.ReleaseVersion(request).released


def kept(client, name: str) -> list[int]:
    return sorted(version.version for version in client.versions(name))


def test_a_held_version_and_all_newer_ones_are_kept_until_they_are_released(client, keyed):
    for i in range(9):
        client.merge(keyed, words((i, "a")))
    expires = hold(client, keyed, "reader-1", 4).expires_at.ToDatetime(datetime.UTC)
    assert datetime.timedelta(hours=23) < expires - datetime.datetime.now(datetime.UTC) < datetime.timedelta(hours=25)
    hold(client, keyed, "reader-2", 6)
    clean_up(client, keyed, keep=1)
    assert kept(client, keyed) == list(range(4, 11))
    assert len(feed(client, keyed, after(4))) == 6
    hold(client, keyed, "reader-1", 7)
    clean_up(client, keyed, keep=1)
    assert kept(client, keyed) == list(range(6, 11)), "a holder goes on, and the other still holds"
    assert release(client, keyed, "reader-2") and not release(client, keyed, "reader-2")
    assert release(client, keyed, "reader-1")
    clean_up(client, keyed, keep=1)
    assert kept(client, keyed) == [10]


def test_what_is_not_renewed_is_held_no_longer(start_gateway, connect, name):
    client = connect(start_gateway(config={"changes": {"hold-age": "1s"}}))
    for i in range(4):
        client.merge(name, words((i, "a")), create={"primary_key": ["id"]})
    expires = hold(client, name, "gone", 2).expires_at.ToDatetime(datetime.UTC)
    clean_up(client, name, keep=1)
    if datetime.datetime.now(datetime.UTC) < expires:
        assert 2 in kept(client, name)

    def is_gone() -> bool:
        clean_up(client, name, keep=1)
        return len(kept(client, name)) == 1

    eventually(is_gone)


def test_a_removed_version_cannot_be_held_and_a_holder_needs_a_name(client, keyed):
    for i in range(4):
        client.merge(keyed, words((i, "a")))
    clean_up(client, keyed, keep=1)
    assert denied(hold, client, keyed, "late", 2) == "TABLE_VERSION_NOT_FOUND"
    assert denied(hold, client, keyed, "early", 99) == "TABLE_VERSION_NOT_FOUND"
    for holder in ("", "a.b", "a/b", "x" * 129, "ü"):
        assert denied(hold, client, keyed, holder, 5) == "INVALID_ARGUMENT", holder


# What is refused.


@pytest.mark.parametrize(
    "request_",
    [
        {"filter": {"sql": "id = 1"}},
        {"limit": "3"},
        {"metadata": {"row_id": True}},
        {"version": {"version": "1"}},
        {"max_splits": 2},
        {"changes": {"after": {"version": "1"}, "after_oldest": True}},
        {"changes": {"after": {"version": "1"}, "to": {"version": "0"}}},
        {"changes": {"after": {"version": "2"}, "to": {"version": "1"}}},
    ],
    ids=["filter", "limit", "metadata", "version", "splits", "two-starts", "to-0", "backwards"],
)
def test_a_request_that_says_too_much_is_refused(client, keyed, request_):
    client.merge(keyed, words((1, "a")))
    request_ = {"changes": after(1), **request_}
    assert refused(client.plan, keyed, **request_)[0] in ("INVALID_ARGUMENT", "TABLE_VERSION_NOT_FOUND")


def test_a_reader_of_a_dropped_table_does_not_read_the_one_that_took_its_name(client, keyed):
    client.merge(keyed, words((1, "a")))
    [endpoint] = client.plan(keyed, changes=after(1)).endpoints
    client.tables.DropTable(tables_pb2.DropTableRequest(request_id=epoch(), table=table(keyed)))
    for i in range(3):
        client.merge(keyed, words((i, "other")), create={"primary_key": ["id"]})
    why, message = refused(lambda: client.flight.do_get(endpoint.ticket).read_all())
    assert why == "TABLE_REPLACED" and keyed in message


def test_a_column_with_the_name_of_a_change_is_left_out_or_refused(client, name):
    rows = pa.table({"id": [1], VERSION: pa.array([7], pa.int64())})
    client.put(name, rows)
    why, message = refused(feed, client, name, after(0))
    assert why == "INVALID_ARGUMENT" and VERSION in message
    projection = {"columns": [{"path": ["id"]}]}
    assert feed(client, name, after(0), projection=projection)[-1][2:] == (1,)


# Any history.


SHAPES = {
    "vector": pa.list_(pa.float32(), 4),
    "place": pa.struct([pa.field("city", pa.string()), pa.field("zone", pa.int32())]),
    "tags": pa.list_(pa.string()),
    "amount": pa.decimal128(12, 2),
    "seen at": pa.timestamp("us", "UTC"),
}


def wide(random: random.Random, ids: list[int]) -> pa.Table:
    """Rows of a composite key and columns of many kinds, a quarter of them NULL."""

    def values(make) -> list:
        return [None if random.random() < 0.25 else make() for _ in ids]

    columns = {
        "vector": values(lambda: [random.random() for _ in range(4)]),
        "place": values(lambda: {"city": random.choice(["Bern", "Oslo", None]), "zone": random.randrange(9)}),
        "tags": values(lambda: [random.choice("abc") for _ in range(random.randrange(3))]),
        "amount": values(lambda: round(random.random() * 100, 2)),
        "seen at": values(lambda: datetime.datetime(2024, 1, 1, random.randrange(24), tzinfo=datetime.UTC)),
    }
    arrays = {name: pa.array(columns[name], SHAPES[name]) for name in ("vector", "place", "tags", "seen at")}
    amounts = [None if amount is None else f"{amount:.2f}" for amount in columns["amount"]]
    arrays["amount"] = pa.array(amounts).cast(pa.decimal128(12, 2))
    schema = pa.schema(
        [
            pa.field("Id", pa.int64(), nullable=False),
            pa.field("re.gion", pa.string(), nullable=False),
            *(pa.field(name, SHAPES[name]) for name in SHAPES),
        ]
    )
    keys = {"Id": ids, "re.gion": [f"r{i % 3}" for i in ids]}
    return pa.table({**keys, **{name: arrays[name] for name in SHAPES}}, schema=schema)


@pytest.mark.parametrize("seed", range(8))
def test_a_table_that_takes_the_changes_of_another_is_equal_to_it(client, gateway, name, seed):
    chance = random.Random(seed)
    copy = f"{name}_copy"
    key = {"primary_key": ["Id", "re.gion"]}
    client.merge(name, wide(chance, [1]), create=key)
    client.merge(copy, wide(chance, []), create=key)
    position, added = 0, 0

    def upsert() -> None:
        columns = wide(chance, chance.sample(range(60), chance.randrange(1, 30)))
        if added and chance.random() < 0.5:
            new = pa.array([chance.choice([None, "x", "y"]) for _ in range(columns.num_rows)], pa.string())
            columns = columns.append_column("new 0", new)
        client.merge(name, columns)

    def remove() -> None:
        client.delete(name, f"`Id` % {chance.randrange(2, 9)} = 0")

    def change() -> None:
        client.update(name, f"`Id` < {chance.randrange(60)}", tags="NULL")

    def add_column() -> None:
        nonlocal added
        foreign = dataset(gateway, name)
        if chance.random() < 0.5:
            foreign.add_columns(pa.field(f"new {added}", pa.string()))
        else:
            foreign.add_columns({f"new {added}": "nullif(cast(`Id` % 3 as string), '0')"})
        dataset(gateway, copy).add_columns(pa.field(f"new {added}", pa.string()))
        added += 1

    def follow() -> None:
        nonlocal position
        parts = chance.choice([1, 3])
        info = client.plan(name, changes=after(position, parts=parts))
        for endpoint in info.endpoints:
            found = client.flight.do_get(endpoint.ticket).read_all()
            if found.num_rows == 0:
                continue
            begun = client.begin(copy, mode=write_pb2.WRITE_MODE_MERGE)
            staged = client.stage(begun.write, found.drop_columns([VERSION, TIME]))
            client.commit(client.prepare(epoch(), 1, begun.write, staged))
        position = scan_pb2.ScanPlan.FromString(info.app_metadata).version

    steps = [upsert] * 5 + [remove] * 2 + [change, lambda: compact(client, name), add_column, follow, follow]
    for _ in range(25):
        step = chance.choice(steps)
        if step is not add_column or added < 3:
            step()
    follow()
    rows, copied = (client.scan(t).sort_by("Id").to_pylist() for t in (name, copy))
    assert position == client.describe(name).version
    assert rows == copied
