"""Broken at a named point: gateways that die, stop or stand still in a commit, and stores that fail."""

import signal
import subprocess
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import grpc
import lance
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.fs as fs
import pytest

from harness.rows import numbers, refused
from harness.wire import denied, epoch, write_pb2

APPEND, OVERWRITE = write_pb2.WRITE_MODE_APPEND, write_pb2.WRITE_MODE_OVERWRITE
IN_A_COMMIT = ("put.manifest", "put.manifest.done", "commit.reply")


@dataclass
class Store:
    """Where the tables are, beside the gateway."""

    warehouse: str
    options: dict[str, str]
    files: fs.FileSystem

    def table(self, name: str) -> lance.LanceDataset:
        """As another tool sees it."""
        return lance.dataset(f"{self.warehouse}/{name}.lance", storage_options=self.options)

    def append(self, name: str, rows: pa.Table, mode: str = "append") -> None:
        """As another tool does it."""
        lance.write_dataset(rows, f"{self.warehouse}/{name}.lance", mode=mode, storage_options=self.options)

    def lose_data(self, name: str) -> None:
        """The data files of a table are gone."""
        self.files.delete_dir_contents(f"{self.warehouse.removeprefix('s3://')}/{name}.lance/data")


@pytest.fixture(params=["disk", "s3"])
def store(request, tmp_path):
    if request.param == "disk":
        return Store(str(tmp_path / "warehouse"), {}, fs.LocalFileSystem())
    s3 = request.getfixturevalue("s3")
    return Store(f"s3://{s3.BUCKET}/faults", s3.options(), s3.client())


@pytest.fixture
def start(start_gateway, store):
    """Starts a gateway on the store."""
    return lambda: start_gateway(faults=True, warehouse=store.warehouse, config={"storage": {"options": store.options}})


@pytest.fixture
def gateway(start):
    return start()


@pytest.fixture
def client(gateway, connect):
    return connect(gateway)


@pytest.fixture
def calls():
    """Calls that are under way while the test goes on."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def prepared(client, name, start, stop, mode=APPEND, run="") -> bytes:
    """A committable of these numbers."""
    begun = client.begin(name, numbers(0, 1).schema, mode=mode, run_id=run)
    return client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(start, stop)))


def is_whole(store, name, expected: pa.Table) -> None:
    """Exactly these rows, every file is there, and each version tells how it was made."""
    found = store.table(name)
    assert found.to_table().sort_by("id") == expected
    for fragment in found.get_fragments():
        fragment.validate()
    for version in found.versions():
        assert found.read_transaction(version["version"]) is not None


def refused_or_cut(call: Future) -> None:
    with pytest.raises(grpc.RpcError):
        call.result(60)


@pytest.mark.parametrize("point", IN_A_COMMIT)
@pytest.mark.parametrize("mode", [APPEND, OVERWRITE])
def test_a_gateway_killed_in_a_commit_leaves_rows_once(store, gateway, client, connect, calls, name, mode, point):
    client.put(name, numbers(0, 10))
    committable = prepared(client, name, 10, 30, mode, epoch())
    history = len(client.versions(name))
    gateway.hold(point)
    call = calls.submit(client.commit, committable)
    gateway.reached(point)
    if point == "put.manifest":
        assert client.scan(name) == numbers(0, 10)
    gateway.kill()
    refused_or_cut(call)

    client = connect(gateway.restart())
    again = client.commit(committable)
    assert again.already_committed == (point != "put.manifest")
    assert client.commit(committable).version == again.version
    assert len(client.versions(name)) == history + 1
    is_whole(store, name, numbers(0 if mode == APPEND else 10, 30))


def test_a_gateway_that_dies_between_prepare_and_commit_loses_nothing(store, gateway, client, connect, name):
    committable = prepared(client, name, 0, 10)
    gateway.kill()

    client = connect(gateway.restart())
    assert client.count(name) == 0
    version = client.commit(committable).version
    gateway.kill()

    client = connect(gateway.restart())
    again = client.commit(committable)
    assert (again.already_committed, again.version) == (True, version)
    is_whole(store, name, numbers(0, 10))


def test_a_gateway_killed_in_a_stage_leaves_no_row(store, gateway, client, connect, name):
    begun = client.begin(name, numbers(0, 1).schema)
    stage = write_pb2.PutCommand(stage=write_pb2.StageRequest(write=begun.write, max_rows_per_file=10))
    descriptor = flight.FlightDescriptor.for_command(stage.SerializeToString())
    writer, reader = client.flight.do_put(descriptor, numbers(0, 1).schema)
    durable = 0
    for start in range(0, 1_000, 10):
        writer.write_table(numbers(start, start + 10))
        ack = write_pb2.StageAck.FromString(reader.read().to_pybytes())
        durable = ack.num_durable_rows
        if durable:
            break
    assert durable, "no file was closed in 100 batches"
    gateway.kill()
    with pytest.raises((flight.FlightError, pa.ArrowException)):
        writer.close()

    client = connect(gateway.restart())
    assert client.count(name) == 0
    client.commit(prepared(client, name, 0, 50))
    is_whole(store, name, numbers(0, 50))


@pytest.mark.parametrize("stopped", [False, True], ids=["delayed", "stopped by SIGSTOP"])
@pytest.mark.parametrize("mode", [APPEND, OVERWRITE])
def test_a_commit_that_comes_late_answers_as_the_one_that_was_faster(
    store, gateway, client, start, connect, calls, name, mode, stopped
):
    client.put(name, numbers(0, 10))
    committable = prepared(client, name, 10, 30, mode, epoch())
    other = connect(start())
    gateway.hold("put.manifest")
    late = calls.submit(client.commit, committable)
    gateway.reached("put.manifest")
    if stopped:
        gateway.process.signal(signal.SIGSTOP)
    faster = other.commit(committable)
    if stopped:
        gateway.process.signal(signal.SIGCONT)
    gateway.release("put.manifest")

    late = late.result(60)
    assert (late.version, late.already_committed) == (faster.version, True)
    is_whole(store, name, numbers(0 if mode == APPEND else 10, 30))


def test_the_same_commit_100_times_at_once_beside_a_second_gateway_is_one_version(
    store, gateway, client, start, connect, name
):
    committable = prepared(client, name, 0, 20)
    history = len(client.versions(name))
    doors = [client, connect(start())]
    together = threading.Barrier(100)

    def commit(n: int):
        together.wait()
        return doors[n % 2].commit(committable)

    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(commit, range(100)))
    assert sum(not answer.already_committed for answer in answers) == 1
    assert len({answer.version for answer in answers}) == 1
    assert len(client.versions(name)) == history + 1
    is_whole(store, name, numbers(0, 20))


@pytest.mark.parametrize("mode", [APPEND, OVERWRITE])
def test_a_store_that_keeps_the_manifest_and_answers_500_ends_in_success(store, gateway, client, name, mode):
    client.put(name, numbers(0, 10))
    committable = prepared(client, name, 10, 30, mode, epoch())
    history = len(client.versions(name))
    gateway.fail("put.manifest.done")
    version = client.commit(committable).version
    assert len(client.versions(name)) == history + 1
    assert client.versions(name)[0].version == version
    is_whole(store, name, numbers(0 if mode == APPEND else 10, 30))
    # Who comes next must be able to read what was done.
    client.put(name, numbers(30, 31))
    is_whole(store, name, numbers(0 if mode == APPEND else 10, 31))


def test_a_store_that_goes_silent_in_a_commit_leaves_it_unknown_and_then_the_same_success(
    store, gateway, client, calls, name
):
    committable = prepared(client, name, 0, 20)
    gateway.hold("put.manifest")
    call = calls.submit(denied, client.commit, committable)
    gateway.reached("put.manifest")
    gateway.fail("put.manifest.done")
    gateway.fail("get.manifest", times=1_000_000)
    gateway.release("put.manifest")
    assert call.result(60) == "COMMIT_STATE_UNKNOWN"

    gateway.release("get.manifest")
    again = client.commit(committable)
    assert again.already_committed
    assert client.commit(committable).version == again.version
    is_whole(store, name, numbers(0, 20))


def test_a_burst_of_errors_before_the_manifest_is_kept_costs_no_row_and_no_file(store, gateway, client, name):
    committable = prepared(client, name, 0, 20)
    gateway.fail("put.manifest", times=3)
    refusals = []
    while True:
        try:
            committed = client.commit(committable)
            break
        except grpc.RpcError as error:
            refusals.append(error.code())
    assert len(refusals) <= 3 and set(refusals) <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN}, refusals
    assert not committed.already_committed
    is_whole(store, name, numbers(0, 20))


def test_a_commit_held_while_others_land_and_are_cleaned_up_is_rebased(store, gateway, client, calls, name):
    client.put(name, numbers(0, 10))
    committable = prepared(client, name, 10, 20)
    gateway.hold("put.manifest")
    held = calls.submit(client.commit, committable)
    gateway.reached("put.manifest")
    for start in (20, 30):
        store.append(name, numbers(start, start + 10))
    before = store.table(name)
    before.cleanup_old_versions(older_than=timedelta(0))
    assert len(before.versions()) == 1
    gateway.release("put.manifest")

    committed = held.result(60)
    latest = store.table(name)
    assert latest.version == committed.version == before.version + 1
    assert latest.to_table().sort_by("id") == numbers(0, 40)


@pytest.mark.parametrize("foreign", ["delete", "overwrite", "compact"])
@pytest.mark.parametrize("mode", [APPEND, OVERWRITE])
def test_what_another_writer_does_during_a_commit_stays_done(store, gateway, client, calls, name, mode, foreign):
    client.put(name, numbers(0, 10))
    client.put(name, numbers(10, 20))
    committable = prepared(client, name, 20, 30, mode, epoch())
    gateway.hold("put.manifest")
    held = calls.submit(client.commit, committable)
    gateway.reached("put.manifest")
    other = store.table(name)
    if foreign == "delete":
        other.delete("id = 3")
        left = pa.concat_tables([numbers(0, 3), numbers(4, 20)])
    elif foreign == "overwrite":
        store.append(name, numbers(100, 110), mode="overwrite")
        left = numbers(100, 110)
    else:
        other.optimize.compact_files()
        left = numbers(0, 20)
    gateway.release("put.manifest")

    held.result(60)
    expected = pa.concat_tables([left, numbers(20, 30)]) if mode == APPEND else numbers(20, 30)
    assert store.table(name).to_table().sort_by("id") == expected.sort_by("id")
    assert client.commit(committable).already_committed


@pytest.mark.parametrize("faulty", ["put.manifest", "put.prepared"])
def test_a_store_that_takes_nothing_more_is_told_and_goes_on_once_it_is_repaired(store, gateway, client, name, faulty):
    begun = client.begin(name, numbers(0, 1).schema)
    staged = client.stage(begun.write, numbers(0, 20))
    run = epoch()
    gateway.fail(faulty, times=1_000_000)
    with pytest.raises(grpc.RpcError) as caught:
        client.commit(client.prepare(run, 1, begun.write, staged))
    assert "500 Internal Server Error" not in caught.value.details()
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE, caught.value
    assert client.count(name) == 0
    gateway.release(faulty)
    client.commit(client.prepare(run, 1, begun.write, staged))
    is_whole(store, name, numbers(0, 20))


def test_a_staged_file_that_is_gone_is_refused_and_the_next_commit_works(store, gateway, client, name):
    committable = prepared(client, name, 0, 20)
    store.lose_data(name)
    assert denied(client.commit, committable) == "STAGED_FILE_MISSING"
    client.commit(prepared(client, name, 20, 30))
    is_whole(store, name, numbers(20, 30))


def test_of_three_committables_that_are_replayed_after_a_death_each_lands_once(
    store, gateway, client, connect, calls, name
):
    begun = client.begin(name, numbers(0, 1).schema)
    run = epoch()
    sealed = [
        client.prepare(run, seq, begun.write, client.stage(begun.write, numbers(seq * 10, seq * 10 + 10)))
        for seq in (1, 2, 3)
    ]
    gateway.hold("commit.reply")
    first = calls.submit(client.commit, sealed[0])
    gateway.reached("commit.reply")
    gateway.kill()
    refused_or_cut(first)

    client = connect(gateway.restart())
    assert [client.commit(committable).already_committed for committable in sealed] == [True, False, False]
    assert all(client.commit(committable).already_committed for committable in sealed)
    is_whole(store, name, numbers(10, 40))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own with 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_told_and_costs_nothing_once_there_is_room(start_gateway, connect, small_disk, name):
    store = Store(str(small_disk / "warehouse"), {}, fs.LocalFileSystem())
    gateway = start_gateway(warehouse=store.warehouse)
    client = connect(gateway)
    client.put(name, numbers(0, 10))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 << 20))
    noise = pa.table(
        {"id": pa.array(range(200_000), pa.int64()), "word": [f"{i * 7919 % 1_000_003}" for i in range(200_000)]}
    )
    why, message = refused(client.put, name, noise)
    assert why == "QUOTA_EXCEEDED" and "the store is full" in message, (why, message)
    assert client.scan(name) == numbers(0, 10)
    ballast.unlink()
    client.put(name, numbers(10, 20))
    is_whole(store, name, numbers(0, 20))


def test_commits_that_are_pending_and_the_last_one_show_in_the_metrics(gateway, client, name):
    since_last = "lance_gateway_commits_since_last_seconds"
    assert since_last not in gateway.admin_get("/metrics")[1]
    client.put(name, numbers(0, 10))
    assert since_last in gateway.admin_get("/metrics")[1]
    committed, aborted = prepared(client, name, 10, 20), prepared(client, name, 20, 30)
    assert gateway.metric("lance_gateway_commits_pending") == 2
    client.commit(committed)
    client.writes.Abort(write_pb2.AbortRequest(committable=aborted))
    assert gateway.metric("lance_gateway_commits_pending") == 0
