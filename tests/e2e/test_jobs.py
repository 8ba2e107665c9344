"""Maintenance as jobs: it runs beside the sink, can be stopped at any point, and takes nothing that somebody needs."""

import json
import os
import threading
import time
import uuid
from pathlib import Path

import grpc
import lance
import pytest

from harness import lgw as command
from harness.gateway import Gateway
from harness.process import eventually
from harness.rows import numbers
from harness.wire import Client, jobs_pb2, reason, schema_message, table, tables_pb2

DAY = 24 * 3600
#: Six days of a committable, and one for the clocks.
DEAD = 7 * DAY + 60

COMPACTION = {"compaction": jobs_pb2.Compaction()}
SWEEP = {"sweep": jobs_pb2.Sweep()}


def keep(versions: int) -> dict:
    return {"cleanup": jobs_pb2.Cleanup(keep_versions=versions)}


class Sink:
    """Commits like a job: one epoch, one checkpoint after the other."""

    def __init__(self, client: Client, name: str):
        self.client = client
        self.begun = client.begin(name, numbers(0, 1).schema)
        self.epoch = str(uuid.uuid4())
        self.seq = 0

    def prepare(self, start: int, stop: int, **more: int) -> bytes:
        self.seq += 1
        staged = self.client.stage(self.begun.write, numbers(start, stop), **more)
        return self.client.prepare(self.epoch, self.seq, self.begun.write, staged)

    def commit(self, start: int, stop: int, **more: int):
        return self.client.commit(self.prepare(start, stop, **more))


def folder(gateway: Gateway, name: str) -> Path:
    return Path(gateway.warehouse) / f"{name}.lance"


def files(gateway: Gateway, name: str, room: str = "data") -> set[str]:
    return set(os.listdir(folder(gateway, name) / room))


def age(gateway: Gateway, name: str, seconds: float, room: str = "data") -> None:
    """Everything there was written so long ago."""
    then = time.time() - seconds
    for file in files(gateway, name, room):
        os.utime(folder(gateway, name) / room / file, (then, then))


def ids(client: Client, name: str) -> list[int]:
    return sorted(client.scan(name).column("id").to_pylist())


@pytest.fixture
def lgw(gateway):
    """Runs `lgw` and gives its JSON."""

    def run(*args: str):
        return json.loads(command.run(gateway.uri, "--output", "json", *args).stdout)

    return run


def test_a_compaction_beside_a_sink_that_commits_loses_nothing(client, name):
    sink = Sink(client, name)
    for n in range(5):
        sink.commit(n * 10, n * 10 + 10)
    ended = threading.Event()
    merged = []

    def compact():
        while not ended.is_set():
            merged.append(client.run_job(name, **COMPACTION).compaction_result.num_fragments_removed)

    compactor = threading.Thread(target=compact)
    compactor.start()
    committables = [sink.prepare(n * 10, n * 10 + 10) for n in range(5, 60)]
    for committable in committables:
        assert not client.commit(committable).already_committed
    ended.set()
    compactor.join()
    assert sum(merged) > 0
    assert ids(client, name) == list(range(600))
    assert all(client.commit(committable).already_committed for committable in committables)
    assert ids(client, name) == list(range(600))


def test_a_cancelled_compaction_shows_nothing_and_its_files_go_with_the_sweep(start_gateway, connect, name):
    gateway = start_gateway(config={"write": {"max-rows-per-file": 4000}})
    client = connect(gateway)
    Sink(client, name).commit(0, 600_000, max_rows_per_file=2000)
    rows = files(gateway, name)
    before = client.describe(name)
    job = client.start_job(name, **COMPACTION)

    def rewritten():
        return [file for file in files(gateway, name) - rows if file.endswith(".lance")]

    eventually(rewritten, what="a rewritten file", every=0.002)
    assert client.jobs.CancelJob(jobs_pb2.CancelJobRequest(id=job.id)).job.state == jobs_pb2.JOB_STATE_CANCELLED
    assert client.end_of_job(job.id).state == jobs_pb2.JOB_STATE_CANCELLED
    after = client.describe(name)
    assert (after.num_fragments, after.num_rows) == (before.num_fragments, before.num_rows) == (300, 600_000)
    assert client.run_job(name, **SWEEP).sweep_result.num_files == 0, "young files are never swept"
    age(gateway, name, DEAD)
    assert client.run_job(name, **SWEEP).sweep_result.num_files > 0
    assert files(gateway, name) == rows
    # The room is free again.
    assert client.run_job(name, **COMPACTION).compaction_result.num_fragments_removed == 300
    assert client.count(name) == 600_000


def test_a_gateway_killed_in_the_sweep_sweeps_the_rest_after_its_restart(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    sink = Sink(client, name)
    sink.commit(0, 1000)
    named = files(gateway, name)
    client.stage(sink.begun.write, numbers(0, 30_000), max_rows_per_file=10)
    left = len(files(gateway, name))
    assert left == len(named) + 3000
    age(gateway, name, DEAD)
    client.start_job(name, **SWEEP)
    eventually(lambda: len(files(gateway, name)) < left, what="the first deleted file", every=0.001)
    gateway.kill()
    assert len(files(gateway, name)) > len(named), "the sweep was through already"

    gateway.restart()
    client = connect(gateway)
    assert client.count(name) == 1000
    client.run_job(name, **SWEEP)
    assert files(gateway, name) == named
    assert ids(client, name) == list(range(1000))


def test_a_file_that_is_young_or_named_is_never_swept(gateway, client, lgw, name):
    sink = Sink(client, name)
    sink.commit(0, 10)
    named = files(gateway, name)
    dead = sink.prepare(10, 20)
    (dead_file,) = files(gateway, name) - named
    age(gateway, name, DEAD)
    staged = sink.prepare(20, 30)
    kept = files(gateway, name) - {dead_file}

    listed = lgw("sweep", name, "--dry-run")
    assert [file["path"] for file in listed["result"]["files"]] == [f"data/{dead_file}"]
    assert listed["result"]["files"][0]["age_seconds"] >= 7 * DAY
    assert listed["result"]["min_age_seconds"] == 7 * DAY
    assert files(gateway, name) == kept | {dead_file}
    swept = lgw("sweep", name)
    assert swept["state"] == "succeeded" and swept["result"]["num_files"] == 1
    assert files(gateway, name) == kept
    assert lgw("sweep", name)["result"]["num_files"] == 0

    assert not client.commit(staged).already_committed
    with pytest.raises(grpc.RpcError) as refused:
        client.commit(dead)
    assert reason(refused.value) == "STAGED_FILE_MISSING"
    assert ids(client, name) == [*range(10), *range(20, 30)]


def test_a_cleanup_keeps_the_newest_versions_and_the_tagged_one_readable(gateway, client, lgw, name):
    sink = Sink(client, name)
    tagged = sink.commit(0, 10).version
    lance.dataset(str(folder(gateway, name))).tags.create("release", tagged)
    committables = [sink.prepare(n * 10, n * 10 + 10) for n in range(1, 6)]
    for committable in committables:
        client.commit(committable)
    told = lgw("cleanup", name, "--keep", "2", "--dry-run")
    assert told["dry_run"] and told["result"]["num_versions"] == 4
    assert len(client.versions(name)) == 7
    assert lgw("cleanup", name, "--keep", "2", "--older-than", "1d")["result"]["num_versions"] == 0
    assert lgw("cleanup", name, "--keep", "2")["result"]["num_versions"] == 4
    assert [v.version for v in client.versions(name)] == [tagged + 5, tagged + 4, tagged]
    assert client.scan(name, version={"tag": "release"}).num_rows == 10
    assert all(client.commit(committable).already_committed for committable in committables)
    assert client.count(name) == 60


def test_a_table_is_compacted_by_hand_and_the_job_is_remembered(client, lgw, name):
    sink = Sink(client, name)
    for n in range(8):
        sink.commit(n * 10, n * 10 + 10)
    done = lgw("compact", name)
    assert (done["kind"], done["state"]) == ("compaction", "succeeded")
    assert (done["result"]["num_fragments_removed"], done["result"]["num_fragments_added"]) == (8, 1)
    assert client.describe(name).version == done["result"]["version"]
    assert [job["id"] for job in lgw("jobs", "list", name)] == [done["id"]]
    assert lgw("jobs", "watch", done["id"])["result"] == done["result"]
    assert lgw("jobs", "cancel", done["id"])["state"] == "succeeded", "what has ended stays as it is"
    assert lgw("compact", name)["result"]["version"] is None


def test_the_same_request_id_is_the_same_job_and_another_use_of_it_is_refused(client, name):
    Sink(client, name).commit(0, 10)
    request = jobs_pb2.StartJobRequest(request_id=str(uuid.uuid4()), table=table(name), sweep=jobs_pb2.Sweep())
    first = client.jobs.StartJob(request).job
    ended = client.end_of_job(first.id)
    assert client.jobs.StartJob(request).job == ended
    assert len(client.jobs.ListJobs(jobs_pb2.ListJobsRequest(table=table(name))).jobs) == 1
    request.sweep.dry_run = True
    for call, message, expected in [
        (client.jobs.StartJob, request, "INVALID_ARGUMENT"),
        (client.jobs.GetJob, jobs_pb2.GetJobRequest(id=str(uuid.uuid4())), "JOB_NOT_FOUND"),
        (client.jobs.GetJob, jobs_pb2.GetJobRequest(id="x"), "INVALID_ARGUMENT"),
        (
            client.jobs.StartJob,
            jobs_pb2.StartJobRequest(request_id=str(uuid.uuid4()), table=table(name), cleanup=jobs_pb2.Cleanup()),
            "INVALID_ARGUMENT",
        ),
    ]:
        with pytest.raises(grpc.RpcError) as refused:
            call(message)
        assert reason(refused.value) == expected


def test_a_job_on_a_table_that_is_not_there_fails_with_the_reason(client):
    job = client.end_of_job(client.start_job("no_such_table", **COMPACTION).id)
    assert (job.state, job.reason) == (jobs_pb2.JOB_STATE_FAILED, "TABLE_NOT_FOUND")


def test_a_termination_interrupts_jobs_at_once(start_gateway, connect, name):
    gateway = start_gateway(config={"write": {"max-rows-per-file": 4000}})
    client = connect(gateway)
    Sink(client, name).commit(0, 600_000, max_rows_per_file=2000)
    job = client.start_job(name, **COMPACTION)
    watch = client.jobs.WatchJob(jobs_pb2.WatchJobRequest(id=job.id))
    assert next(watch).job.state == jobs_pb2.JOB_STATE_RUNNING
    assert gateway.stop(within=20) == 0
    *_, last = watch
    assert last.job.state == jobs_pb2.JOB_STATE_INTERRUPTED
    gateway.restart()
    assert connect(gateway).count(name) == 600_000


def test_a_policy_keeps_fragments_and_versions_under_its_numbers_and_no_commit_fails(start_gateway, connect, name):
    rules = {"interval": "100ms", "compact-fragments": 20, "keep-versions": 30, "sweep-interval": "1s"}
    gateway = start_gateway(config={"maintenance": rules})
    client = connect(gateway)
    sink = Sink(client, name)
    commits = 300
    most = 0
    for n in range(commits):
        assert not sink.commit(n * 10, n * 10 + 10).already_committed
        if n % 50 == 49:
            most = max(most, len(client.versions(name)))
    assert most < commits / 2, "versions grew as if nobody cleaned up"
    eventually(lambda: len(client.versions(name)) <= 30, what="few versions")
    eventually(lambda: client.describe(name).num_fragments < 20, what="few fragments")
    assert ids(client, name) == list(range(commits * 10))
    jobs = client.jobs.ListJobs(jobs_pb2.ListJobsRequest()).jobs
    assert {job.WhichOneof("kind") for job in jobs} == {"compaction", "cleanup", "sweep"}
    assert all(job.by_policy and job.state != jobs_pb2.JOB_STATE_FAILED for job in jobs), jobs


def test_a_table_overrides_the_policy_by_its_properties(start_gateway, connect, name):
    gateway = start_gateway(config={"maintenance": {"interval": "50ms", "compact-fragments": 3}})
    client = connect(gateway)

    def create(which: str, **properties: str):
        options = tables_pb2.CreateOptions(properties=properties)
        schema = schema_message(numbers(0, 1).schema)
        client.tables.CreateTable(tables_pb2.CreateTableRequest(table=table(which), schema=schema, options=options))

    create(f"{name}_off", **{"maintenance.compact-fragments": "0"})
    create(f"{name}_on")
    with pytest.raises(grpc.RpcError) as refused:
        create(f"{name}_wrong", **{"maintenance.keep-age": "soon"})
    assert reason(refused.value) == "INVALID_ARGUMENT"
    for which in (f"{name}_off", f"{name}_on"):
        sink = Sink(client, which)
        for n in range(6):
            sink.commit(n, n + 1)
    eventually(lambda: client.describe(f"{name}_on").num_fragments < 3, what="a compaction")
    assert client.describe(f"{name}_off").num_fragments == 6


@pytest.mark.parametrize(("inline", "small"), [("1KiB", True), ("0", False)])
def test_the_versions_of_rows_leave_the_manifest_when_they_are_many(start_gateway, connect, name, inline, small):
    gateway = start_gateway(config={"table": {"row-lineage-inline-bytes": inline}})
    client = connect(gateway)
    sink = Sink(client, name)
    versions = [sink.commit(n, n + 1).version for n in range(150)]
    assert client.run_job(name, **COMPACTION).compaction_result.num_fragments_added == 1
    last = sink.commit(150, 151).version
    newest = min(folder(gateway, name).joinpath("_versions").glob("*.manifest"))
    assert (newest.stat().st_size < 4096) == small
    # Another tool reads the same of each row.
    rows = lance.dataset(folder(gateway, name)).to_table(["id", "_row_created_at_version"]).sort_by("id")
    assert rows.column("_row_created_at_version").to_pylist() == [*versions, last]
