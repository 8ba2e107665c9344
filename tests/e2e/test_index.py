"""Indexes are built as jobs. What they find is asked of Lance itself, beside the gateway."""

import io
import json
import re
import subprocess
import uuid
from pathlib import Path

import grpc
import lance
import numpy as np
import pyarrow as pa
import pytest

from harness import lgw as command
from harness import paths
from harness.process import eventually
from harness.wire import index_pb2, indexes_pb2, jobs_pb2, reason, search_pb2, table

DIMENSION = 16
SUCCEEDED, FAILED = jobs_pb2.JOB_STATE_SUCCEEDED, jobs_pb2.JOB_STATE_FAILED
VECTOR_TYPES = [name.removeprefix("VECTOR_INDEX_TYPE_") for name in index_pb2.VectorIndexType.keys()[1:]]


def vectors(values: np.ndarray, nulls: np.ndarray | None = None) -> pa.Array:
    flat = pa.array(values.astype(np.float32).ravel())
    mask = None if nulls is None else pa.array(nulls)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=mask)


def noise(rows: int, dimension: int = DIMENSION, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dimension))


def rows(start: int, stop: int, seed: int = 7) -> pa.Table:
    values = noise(stop - start, seed=seed + start)
    ids = np.arange(start, stop, dtype=np.int64)
    words = [f"word{i % 50} of {i}" for i in ids]
    tags = [[f"t{i % 7}", f"u{i % 3}"] for i in ids]
    return pa.table({"id": ids, "class": ids % 5, "text": words, "tags": tags, "v": vectors(values)})


def vector(name: str, **knobs: object) -> dict:
    return {"vector": index_pb2.VectorIndex(type=f"VECTOR_INDEX_TYPE_{name}", **knobs)}


def scalar(name: str) -> dict:
    return {"scalar": index_pb2.ScalarIndex(type=f"SCALAR_INDEX_TYPE_{name}")}


def path(gateway, name: str) -> Path:
    return Path(gateway.warehouse) / f"{name}.lance"


def dataset(gateway, name: str) -> lance.LanceDataset:
    return lance.dataset(path(gateway, name))


def nearest(gateway, name: str, query: np.ndarray, k: int = 5, **more: object) -> list[int]:
    query = {"column": "v", "q": query.astype(np.float32), "k": k, **more}
    return dataset(gateway, name).to_table(["id"], nearest=query).column("id").to_pylist()


def watches(gateway) -> int:
    """Calls of WatchJob that are open."""
    open_calls = re.findall(
        r"^lance_gateway_calls_in_flight\{.*WatchJob.*\} (\d+)", gateway.admin_get("/metrics")[1], re.M
    )
    return sum(map(int, open_calls))


def refused(call, request) -> str:
    with pytest.raises(grpc.RpcError) as error:
        call(request)
    return reason(error.value)


@pytest.mark.parametrize("index_type", VECTOR_TYPES)
@pytest.mark.parametrize("metric", ["L2", "COSINE", "DOT"])
def test_every_index_over_vectors_is_built_and_finds(gateway, client, name, index_type, metric):
    client.put(name, rows(0, 1000))
    job = client.index(name, "v", **vector(index_type, metric=f"METRIC_{metric}", num_partitions=2))
    assert (job.state, job.index_result.num_indexed_rows) == (SUCCEEDED, 1000), job
    index = client.indexes_of(name)["v_idx"]
    assert (index.type, index.metric) == (index_type, getattr(search_pb2, f"METRIC_{metric}"))
    assert (list(index.columns), index.num_unindexed_rows, index.num_segments) == (["v"], 0, 1)
    assert index.num_bytes > 0
    assert not index.deferred
    query = noise(1000)[123]
    if metric != "DOT":  # of which the nearest is another
        assert nearest(gateway, name, query, metric=metric.lower(), nprobes=2, refine_factor=50)[0] == 123
    plan = dataset(gateway, name).scanner(nearest={"column": "v", "q": query.astype(np.float32), "k": 5}).explain_plan()
    assert "ANN" in plan


@pytest.mark.parametrize(
    ("index_type", "column", "filter", "found"),
    [
        ("BTREE", "id", "id BETWEEN 10 AND 19", 10),
        ("BITMAP", "class", "class = 3", 200),
        ("LABEL_LIST", "tags", "array_has_any(tags, ['t3'])", 143),
        ("NGRAM", "text", "contains(text, 'word17 of')", 20),
        ("ZONEMAP", "id", "id < 7", 7),
        ("BLOOM_FILTER", "id", "id = 500", 1),
    ],
)
def test_every_index_over_scalars_is_built_and_finds(gateway, client, name, index_type, column, filter, found):
    client.put(name, rows(0, 1000))
    before = client.count(name, filter)
    job = client.index(name, column, **scalar(index_type))
    assert job.state == SUCCEEDED, job
    assert client.indexes_of(name)[f"{column}_idx"].type == index_type
    assert client.count(name, filter) == before == found
    assert "ScalarIndexQuery" in dataset(gateway, name).scanner(filter=filter).explain_plan()


def test_a_full_text_index_finds_words_and_phrases(gateway, client, name):
    client.put(name, rows(0, 1000))
    text = index_pb2.FullTextIndex(with_position=True, stem=False, remove_stop_words=False)
    assert client.index(name, "text", full_text=text).state == SUCCEEDED
    assert client.indexes_of(name)["text_idx"].type == "INVERTED"
    found = dataset(gateway, name).to_table(["text"], full_text_query="word17").column("text").to_pylist()
    assert sorted(found) == sorted(f"word17 of {i}" for i in range(17, 1000, 50))


def test_the_same_request_is_one_job_and_a_taken_name_is_refused_unless_it_is_replaced(client, name):
    client.put(name, rows(0, 300))
    request = indexes_pb2.CreateIndexRequest(
        request_id=str(uuid.uuid4()),
        table=table(name),
        build=index_pb2.IndexBuild(column={"path": ["id"]}, **scalar("BTREE")),
    )
    first = client.indexes.CreateIndex(request).job
    ended = client.end_of_job(first.id)
    assert client.indexes.CreateIndex(request).job == ended
    version = client.indexes_of(name)["id_idx"].version
    request.build.column.path[0] = "class"
    assert refused(client.indexes.CreateIndex, request) == "INVALID_ARGUMENT"

    taken = client.index(name, "id", **scalar("BITMAP"))
    assert (taken.state, taken.reason) == (FAILED, "INDEX_ALREADY_EXISTS")
    assert client.indexes_of(name)["id_idx"].version == version
    assert client.index(name, "id", replace=True, **scalar("BITMAP")).state == SUCCEEDED
    assert client.indexes_of(name)["id_idx"].type == "BITMAP"
    assert client.index(name, "id", name="second", **scalar("BTREE")).state == SUCCEEDED
    assert set(client.indexes_of(name)) == {"id_idx", "second"}


@pytest.mark.parametrize(
    ("column", "build", "why"),
    [
        ("nope", scalar("BTREE"), "nope"),
        ("id", vector("IVF_FLAT"), "needs a FixedSizeList"),
        ("v", scalar("BTREE"), "needs a scalar"),
        ("class", scalar("NGRAM"), "needs text"),
        ("id", scalar("LABEL_LIST"), "needs a list"),
        ("id", {"full_text": index_pb2.FullTextIndex()}, "needs text"),
        ("text", {"full_text": index_pb2.FullTextIndex(language="Klingon")}, "Klingon"),
        ("text", {"full_text": index_pb2.FullTextIndex(tokenizer="teeth")}, "teeth"),
        ("v", vector("IVF_PQ", num_sub_vectors=3), "does not divide the dimension 16"),
        ("v", vector("IVF_PQ", num_bits=5), "num_bits is 5"),
        ("v", vector("IVF_FLAT", metric="METRIC_HAMMING"), "hamming is for bytes"),
        ("v", vector("IVF_FLAT", centroids=b"no arrow"), "centroids"),
        ("v", vector("IVF_PQ", codebook=b"x"), "codebook needs the centroids"),
    ],
)
def test_a_build_that_does_not_fit_its_column_says_why_and_changes_nothing(client, name, column, build, why):
    client.put(name, rows(0, 300))
    before = client.describe(name).version
    job = client.index(name, column, **build)
    assert (job.state, job.reason) == (FAILED, "COLUMN_NOT_FOUND" if column == "nope" else "INVALID_ARGUMENT")
    assert why in job.message
    assert client.describe(name).version == before


def test_a_build_that_names_nothing_is_refused_at_once(client, name):
    client.put(name, rows(0, 10))
    build = index_pb2.IndexBuild(column={"path": ["id"]})
    for wrong in [build, None, index_pb2.IndexBuild(name="__x", column={"path": ["id"]}, **scalar("BTREE"))]:
        request = indexes_pb2.CreateIndexRequest(request_id=str(uuid.uuid4()), table=table(name), build=wrong)
        assert refused(client.indexes.CreateIndex, request) == "INVALID_ARGUMENT"
    request = indexes_pb2.CreateIndexRequest(
        request_id="", table=table(name), build=index_pb2.IndexBuild(column={"path": ["id"]}, **scalar("BTREE"))
    )
    assert refused(client.indexes.CreateIndex, request) == "INVALID_ARGUMENT"


def test_too_few_rows_defer_the_index_until_an_optimization_finds_enough(gateway, client, name):
    client.put(name, rows(0, 100))
    job = client.index(name, "v", **vector("IVF_PQ"))
    assert (job.state, job.index_result.deferred, job.index_result.num_indexed_rows) == (SUCCEEDED, True, 0)
    index = client.indexes_of(name)["v_idx"]
    assert (index.deferred, index.num_unindexed_rows) == (True, 100)
    query = noise(100)[50]
    assert nearest(gateway, name, query, k=1) == [50], "all rows are searched"

    client.put(name, rows(100, 1000))
    optimized = client.optimize(name)
    assert optimized.state == SUCCEEDED, optimized
    index = client.indexes_of(name)["v_idx"]
    assert (index.deferred, index.num_indexed_rows, index.num_unindexed_rows) == (False, 1000, 0)
    assert 50 in nearest(gateway, name, query)


def test_rows_that_come_later_are_outside_until_an_optimization_and_parts_are_merged_on_demand(client, name):
    client.put(name, rows(0, 500))
    assert client.index(name, "id", **scalar("BTREE")).state == SUCCEEDED
    assert client.index(name, "v", **vector("IVF_FLAT", num_partitions=1)).state == SUCCEEDED
    client.put(name, rows(500, 600))
    assert [i.num_unindexed_rows for i in client.indexes_of(name).values()] == [100, 100]

    only = client.optimize(name, names=["v_idx"], num_segments_to_merge=0)
    assert [i.name for i in only.optimization_result.indexes] == ["v_idx"]
    indexes = client.indexes_of(name)
    assert (indexes["v_idx"].num_unindexed_rows, indexes["v_idx"].num_segments) == (0, 2)
    assert indexes["id_idx"].num_unindexed_rows == 100

    client.put(name, rows(600, 700))
    client.optimize(name, num_segments_to_merge=2)
    indexes = client.indexes_of(name)
    assert [(i.num_indexed_rows, i.num_unindexed_rows, i.num_segments) for i in indexes.values()] == [(700, 0, 1)] * 2
    assert client.optimize(name).optimization_result.version == 0, "nothing is left to do"
    missing = client.optimize(name, names=["nope"])
    assert (missing.state, missing.reason) == (FAILED, "INDEX_NOT_FOUND")


def test_an_index_is_dropped_once(client, name):
    client.put(name, rows(0, 10))
    client.index(name, "id", **scalar("BTREE"))
    request = indexes_pb2.DropIndexRequest(request_id=str(uuid.uuid4()), table=table(name), name="id_idx")
    dropped = client.indexes.DropIndex(request)
    assert client.indexes.DropIndex(request) == dropped, "the repeat of a lost answer"
    assert client.indexes_of(name) == {}
    request.request_id = str(uuid.uuid4())
    assert refused(client.indexes.DropIndex, request) == "INDEX_NOT_FOUND"
    describe = indexes_pb2.DescribeIndexRequest(table=table(name), name="id_idx")
    assert refused(client.indexes.DescribeIndex, describe) == "INDEX_NOT_FOUND"


def test_a_cancelled_build_leaves_nothing_and_frees_its_place(gateway, client, name):
    values = noise(100_000, 32)
    client.put(name, pa.table({"id": np.arange(100_000), "v": vectors(values)}))
    before = client.describe(name).version
    job = client.start_index(name, "v", **vector("IVF_HNSW_SQ", num_partitions=4, ef_construction=400, m=40))
    folder = path(gateway, name) / "_indices"
    seen = client.jobs.WatchJob(jobs_pb2.WatchJobRequest(id=job.id))
    assert any(part.job.stage not in ("", "waiting") for part in seen), "it was seen at work"
    client.jobs.CancelJob(jobs_pb2.CancelJobRequest(id=job.id))
    assert client.end_of_job(job.id).state == jobs_pb2.JOB_STATE_CANCELLED
    eventually(lambda: not [f for f in folder.rglob("*") if f.is_file()], what="the files of the build are gone")
    assert (client.describe(name).version, client.indexes_of(name)) == (before, {})
    assert client.index(name, "id", **scalar("BTREE")).state == SUCCEEDED


def test_a_gateway_that_is_killed_in_mid_build_leaves_the_table_as_it_was_and_a_repeat_builds(
    start_gateway, connect, name
):
    gateway = start_gateway()
    client = connect(gateway)
    client.put(name, pa.table({"id": np.arange(100_000), "v": vectors(noise(100_000, 32))}))
    before = client.describe(name).version
    job = client.start_index(name, "v", **vector("IVF_HNSW_SQ", num_partitions=4, ef_construction=400, m=40))
    argv = [paths.lgw_binary(), "--uri", gateway.uri, "jobs", "watch", job.id]
    watcher = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen = client.jobs.WatchJob(jobs_pb2.WatchJobRequest(id=job.id))
    assert any(part.job.stage not in ("", "waiting") for part in seen)
    eventually(lambda: watches(gateway) == 2, what="lgw watches, too")
    gateway.kill()
    gateway.restart()
    told = watcher.communicate(timeout=60)[1]
    assert (watcher.returncode, "the gateway was restarted" in told) == (1, True), told
    client = connect(gateway)
    assert client.end_of_job(job.id).state == jobs_pb2.JOB_STATE_INTERRUPTED
    assert (client.describe(name).version, client.indexes_of(name)) == (before, {})
    assert client.index(name, "v", **vector("IVF_FLAT", num_partitions=4)).state == SUCCEEDED
    assert client.indexes_of(name)["v_idx"].num_indexed_rows == 100_000


def record(gateway, job: jobs_pb2.Job) -> jobs_pb2.Job | None:
    """What a gateway keeps of a job in the warehouse."""
    found = list(Path(gateway.warehouse).glob(f"_lance_gateway/jobs/*/{job.id}"))
    return jobs_pb2.Job.FromString(found[0].read_bytes()) if found else None


def hold_a_build(gateway, client, name: str) -> tuple[indexes_pb2.CreateIndexRequest, jobs_pb2.Job]:
    """A build that has come to its commit, and is recorded as far."""
    gateway.hold("put.manifest")
    build = index_pb2.IndexBuild(column={"path": ["id"]}, **scalar("BTREE"))
    request = indexes_pb2.CreateIndexRequest(request_id=str(uuid.uuid4()), table=table(name), build=build)
    started = client.indexes.CreateIndex(request).job
    gateway.reached("put.manifest")
    at = client.jobs.GetJob(jobs_pb2.GetJobRequest(id=started.id)).job
    assert at.stage not in ("", "waiting")
    eventually(lambda: record(gateway, at).stage == at.stage, what="the stage is recorded")
    return request, at


def jobs_of(client) -> dict[str, jobs_pb2.Job]:
    return {job.id: job for job in client.jobs.ListJobs(jobs_pb2.ListJobsRequest()).jobs}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_restarted_gateway_tells_which_jobs_it_broke_off_and_a_repeat_starts_one_again(
    start_gateway, connect, name, end
):
    gateway = start_gateway(faults=True)
    client = connect(gateway)
    client.put(name, rows(0, 300))
    done = client.index(name, "class", **scalar("BITMAP"))
    eventually(lambda: record(gateway, done) is None, what="the record goes with the job")
    request, at = hold_a_build(gateway, client, name)
    waiting = client.start_job(name, compaction={})
    eventually(lambda: record(gateway, waiting), what="a job that waits is recorded, too")
    getattr(gateway, end)()

    client = connect(gateway.restart())
    known = jobs_of(client)
    assert list(known) == [waiting.id, at.id], "the newest first, and not the one that had ended"
    broken = known[at.id]
    assert (broken.state, known[waiting.id].state) == (jobs_pb2.JOB_STATE_INTERRUPTED,) * 2
    assert (broken.stage, known[waiting.id].stage) == (at.stage, "waiting")
    assert (broken.table, broken.index_build, broken.started_at) == (at.table, at.index_build, at.started_at)
    assert "start it again" in broken.message
    assert client.jobs.GetJob(jobs_pb2.GetJobRequest(id=at.id)).job == broken
    assert client.end_of_job(at.id) == broken
    assert client.jobs.CancelJob(jobs_pb2.CancelJobRequest(id=at.id)).job == broken
    listed = json.loads(command.run(gateway.uri, "--output", "json", "jobs", "list", name).stdout)
    assert [(job["id"], job["state"]) for job in listed] == [(waiting.id, "interrupted"), (at.id, "interrupted")]
    watched = command.run(gateway.uri, "jobs", "watch", at.id, ok=False)
    assert (watched.returncode, "start it again" in watched.stderr) == (1, True), watched.stderr

    request.build.column.path[0] = "class"
    assert refused(client.indexes.CreateIndex, request) == "INVALID_ARGUMENT"
    request.build.column.path[0] = "id"
    assert client.indexes.CreateIndex(request).job.state == jobs_pb2.JOB_STATE_RUNNING
    ended = client.end_of_job(at.id)
    assert (ended.state, ended.index_result.num_indexed_rows) == (SUCCEEDED, 300), ended
    assert client.indexes.CreateIndex(request).job == ended
    eventually(lambda: record(gateway, at) is None, what="its record goes at last")
    gateway.kill()
    client = connect(gateway.restart())
    assert list(jobs_of(client)) == [waiting.id], "what nobody started again is told once more"


def test_gateways_of_one_warehouse_tell_of_their_own_jobs_only(start_gateway, connect, name):
    config = {"maintenance": {"instance": "gateway-0", "remembered-jobs": 1}}
    first = start_gateway(faults=True, config=config)
    client = connect(first)
    client.put(name, rows(0, 300))
    _, at = hold_a_build(first, client, name)
    other = connect(start_gateway(warehouse=first.warehouse))
    assert jobs_of(other) == {}
    first.kill()
    elsewhere = start_gateway(warehouse=first.warehouse, config=config)
    client = connect(elsewhere)
    assert list(jobs_of(client)) == [at.id], "its name tells whose it is, not its address"
    assert client.index(name, "class", **scalar("BITMAP")).state == SUCCEEDED
    assert at.id not in jobs_of(client), "the bound of what is remembered holds for it"
    eventually(lambda: record(elsewhere, at) is None, what="a job that is forgotten has no record")


def test_a_job_is_done_whether_or_not_the_store_takes_its_record(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    client.put(name, rows(0, 300))
    Path(gateway.warehouse, "_lance_gateway").write_text("in the way")
    assert client.index(name, "id", **scalar("BTREE")).state == SUCCEEDED
    assert "has no record" in (gateway.work / "gateway.log").read_text()
    gateway.kill()
    client = connect(gateway.restart())
    assert (jobs_of(client), client.count(name)) == ({}, 300)


@pytest.mark.parametrize("index_type", ["BTREE", "BITMAP", "ZONEMAP", "BLOOM_FILTER"])
def test_an_index_built_on_an_old_snapshot_claims_no_row_that_was_changed_meanwhile(
    start_gateway, connect, name, index_type
):
    gateway = start_gateway(faults=True)
    client = connect(gateway)
    client.put(name, pa.table({"id": np.arange(100), "class": np.zeros(100, np.int64)}))
    gateway.hold("put.manifest")
    job = client.start_index(name, "class", **scalar(index_type))
    gateway.reached("put.manifest")
    dataset(gateway, name).update({"class": "7"}, where="id < 10")
    gateway.release("put.manifest")
    assert client.end_of_job(job.id).state == SUCCEEDED
    assert client.count(name, "class = 7") == 10
    assert client.count(name, "class = 0 AND id < 10") == 0
    assert client.count(name, "class = 0") == 90


def test_an_index_that_is_dropped_while_it_is_optimized_stays_away(start_gateway, connect, name):
    gateway = start_gateway(faults=True)
    client = connect(gateway)
    client.put(name, rows(0, 100))
    client.index(name, "id", **scalar("BTREE"))
    client.put(name, rows(100, 200))
    gateway.hold("put.manifest")
    how = index_pb2.IndexOptimization(names=["id_idx"])
    request = indexes_pb2.OptimizeIndexRequest(request_id=str(uuid.uuid4()), table=table(name), optimization=how)
    job = client.indexes.OptimizeIndex(request).job
    gateway.reached("put.manifest")
    dataset(gateway, name).drop_index("id_idx")
    gateway.release("put.manifest")
    ended = client.end_of_job(job.id)
    assert (ended.state, ended.reason) == (FAILED, "INDEX_NOT_FOUND")
    assert client.indexes_of(name) == {}


@pytest.mark.parametrize("metric", ["L2", "DOT", "COSINE"])
def test_nulls_do_not_hinder_a_build_and_never_come_back(gateway, client, name, metric):
    values = noise(10_000)
    nulls = np.random.default_rng(3).random(10_000) < 0.7
    client.put(name, pa.table({"id": np.arange(10_000), "v": vectors(values, nulls)}))
    job = client.index(name, "v", **vector("IVF_PQ", metric=f"METRIC_{metric}", num_partitions=4))
    assert job.state == SUCCEEDED, job
    found = nearest(gateway, name, values[5], k=200, metric=metric.lower(), nprobes=4)
    assert len(found) == 200
    assert not nulls[found].any()


def test_centroids_and_a_codebook_that_were_trained_elsewhere_are_used(gateway, client, name):
    def stream(values: np.ndarray) -> bytes:
        out = io.BytesIO()
        batch = pa.record_batch({"v": vectors(values)})
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        return out.getvalue()

    client.put(name, rows(0, 1000))
    centroids, codebook = noise(4, seed=1), noise(2 * 256, 8, seed=2)
    trained = {"centroids": stream(centroids), "codebook": stream(codebook)}
    job = client.start_index(name, "v", **vector("IVF_PQ", num_sub_vectors=2, **trained))
    assert not job.index_build.vector.centroids, "megabytes that no watcher needs"
    ended = client.end_of_job(job.id)
    assert ended.state == SUCCEEDED, ended
    statistics = dataset(gateway, name).stats.index_stats("v_idx")
    used = np.array(statistics["indices"][0]["centroids"], np.float32)
    assert np.allclose(used, centroids.astype(np.float32))
    wrong = client.index(name, "v", name="wrong", **vector("IVF_FLAT", centroids=stream(noise(4, 8))))
    assert (wrong.state, wrong.reason) == (FAILED, "INVALID_ARGUMENT")
    assert "FixedSizeList(Float32, 16)" in wrong.message


def multivectors(start: int, stop: int) -> tuple[list, pa.Table]:
    """Rows of no to three vectors, some null, and one with nothing but a zero among others."""
    rng = np.random.default_rng(start)
    rows = [None if n % 11 == 5 else rng.normal(size=(n % 4, DIMENSION)).astype(np.float32) for n in range(start, stop)]
    rows[7][0] = 0
    column = pa.array(
        [row if row is None else row.tolist() for row in rows], pa.list_(pa.list_(pa.float32(), DIMENSION))
    )
    return rows, pa.table({"id": range(start, stop), "v": column})


def late_interaction(rows: list, query: np.ndarray) -> dict[int, float]:
    """Rows with the sum of the cosine distances of their nearest to each vector of the query; the nearest first."""

    def unit(values: np.ndarray) -> np.ndarray:
        values = values[np.any(values != 0, axis=1)].astype(np.float64)
        return values / np.linalg.norm(values, axis=1, keepdims=True)

    found = {
        n: (1 - unit(query) @ unit(row).T).min(axis=1).sum()
        for n, row in enumerate(rows)
        if row is not None and len(row)
    }
    return dict(sorted(found.items(), key=lambda found: found[1]))


@pytest.mark.parametrize("index_type", VECTOR_TYPES)
def test_an_index_over_lists_of_vectors_finds_the_rows_that_are_nearest_by_all_of_them(client, name, index_type):
    first, table = multivectors(0, 800)
    client.put(name, table)
    query = noise(3, seed=5).astype(np.float32)
    asked = search_pb2.Vector(
        multi=search_pb2.MultiVector(vectors=[{"float32": search_pb2.Float32Values(values=q.tolist())} for q in query])
    )

    def holds(rows: list, found: pa.Table, recall: int = 10) -> bool:
        """The rows are nearly those that are nearest, and the distances are exact."""
        wanted = late_interaction(rows, query)
        ids = found["id"].to_pylist()
        assert found["_distance"].to_pylist() == pytest.approx([wanted[n] for n in ids], abs=1e-4)
        return len(ids) == 10 and len(set(ids) & set(list(wanted)[:10])) >= recall

    before, info = client.nearest(name, "v", asked)
    assert info.metric == search_pb2.METRIC_COSINE
    assert holds(first, before)
    fine = {"num_sub_vectors": 8} if index_type.endswith("PQ") else {}
    job = client.index(name, "v", **vector(index_type, num_partitions=1, **fine))
    assert (job.state, job.index_result.num_indexed_rows) == (SUCCEEDED, 800), job
    assert client.indexes_of(name)["v_idx"].metric == search_pb2.METRIC_COSINE
    found, info = client.nearest(name, "v", asked)
    assert (info.vector.indexes, info.metric) == (["v_idx"], search_pb2.METRIC_COSINE)
    recall = 10 if index_type.endswith("FLAT") else 7
    assert holds(first, found, recall)
    later, table = multivectors(800, 900)
    client.put(name, table)
    found, info = client.nearest(name, "v", asked)
    assert info.vector.num_unindexed_rows == 100
    assert holds(first + later, found, recall)
    assert client.optimize(name).state == SUCCEEDED
    found, info = client.nearest(name, "v", asked)
    assert (info.vector.indexes, info.vector.num_unindexed_rows) == (["v_idx"], 0)
    assert holds(first + later, found, recall)


def test_what_an_index_over_lists_of_vectors_cannot_do_is_refused_with_its_reason(client, name):
    client.put(name, multivectors(0, 800)[1])
    for metric in ("L2", "DOT"):
        job = client.index(name, "v", **vector("IVF_FLAT", metric=f"METRIC_{metric}"))
        assert (job.state, job.reason) == (FAILED, "INVALID_ARGUMENT")
        assert "cosine" in job.message
    assert client.index(name, "v", **vector("IVF_HNSW_FLAT", num_partitions=1)).state == SUCCEEDED
    query = noise(1, seed=5)[0].tolist()
    bounded = {"lower_bound": 0.2, "upper_bound": 0.5}
    with pytest.raises(grpc.RpcError) as error:
        client.nearest(name, "v", query, **bounded)
    assert reason(error.value) == "UNSUPPORTED"
    with pytest.raises(grpc.RpcError) as error:
        client.nearest(name, "v", query, ef=50)
    assert (reason(error.value), "100" in error.value.details()) == ("INVALID_ARGUMENT", True)
    assert client.nearest(name, "v", query, ef=100)[0].num_rows == 10
    within = client.nearest(name, "v", query, exact=True, **bounded)[0]["_distance"].to_pylist()
    assert within and all(0.2 <= distance < 0.5 for distance in within)


def test_names_with_dots_and_capitals_are_indexed(client, name):
    client.put(
        name, pa.table({"a.b": np.arange(300), "PartyAbbrev": np.arange(300), "partyabbrev": np.arange(300) * 2})
    )
    for column in ("a.b", "PartyAbbrev", "partyabbrev"):
        job = client.index(name, column, **scalar("BTREE"))
        assert job.state == SUCCEEDED, job
        assert list(client.indexes_of(name)[f"{column}_idx"].columns) == [column]
    assert client.count(name, "PartyAbbrev = 4") == 1
    assert client.count(name, "partyabbrev = 5") == 0


@pytest.mark.parametrize("empty", [True, False])
def test_a_table_of_no_or_one_row_takes_every_index(client, name, empty):
    client.put(name, rows(0, 1).slice(0, 0 if empty else 1))
    assert client.index(name, "id", **scalar("BTREE")).state == SUCCEEDED
    assert client.index(name, "text", full_text=index_pb2.FullTextIndex()).state == SUCCEEDED
    assert client.index(name, "v", **vector("IVF_PQ")).index_result.deferred


@pytest.mark.parametrize("rule", [{"optimize-rows": 50}, {"optimize-age": "100ms"}])
def test_a_policy_brings_new_rows_into_the_indexes_while_rows_come(start_gateway, connect, name, rule):
    client = connect(start_gateway(config={"maintenance": {"interval": "100ms", **rule}}))
    client.put(name, rows(0, 500))
    client.index(name, "id", **scalar("BTREE"))
    client.index(name, "v", **vector("IVF_FLAT", num_partitions=1))
    client.put(f"{name}_few", rows(0, 10))
    client.index(f"{name}_few", "v", **vector("IVF_PQ"))
    for start in range(500, 1500, 100):
        client.put(name, rows(start, start + 100))

    def are_fresh() -> bool:
        return all((i.num_indexed_rows, i.num_unindexed_rows) == (1500, 0) for i in client.indexes_of(name).values())

    eventually(are_fresh, what="all rows are indexed")
    assert client.count(name, "id >= 1400") == 100
    jobs = client.jobs.ListJobs(jobs_pb2.ListJobsRequest()).jobs
    assert {job.state for job in jobs} == {SUCCEEDED}
    assert not [j for j in jobs if j.by_policy and j.table == table(f"{name}_few")], "too few rows to try"


def test_lgw_builds_lists_optimizes_and_drops(gateway, client, name):
    def lgw(*args: object):
        return json.loads(command.run(gateway.uri, "--output", "json", *args).stdout)

    client.put(name, rows(0, 1000))
    built = lgw("index", "create", name, "v", "--type", "ivf_pq", "--partitions", 2, "--metric", "cosine", "--wait")
    assert (built["kind"], built["state"], built["result"]["name"]) == ("index build", "succeeded", "v_idx")
    started = lgw("index", "create", name, "id", "--type", "BTREE", "--name", "by_id")
    assert lgw("jobs", "watch", started["id"])["state"] == "succeeded"
    listed = {index["name"]: index for index in lgw("index", "list", name)}
    assert (listed["v_idx"]["type"], listed["v_idx"]["metric"]) == ("IVF_PQ", "cosine")
    assert listed["by_id"]["num_indexed_rows"] == 1000
    client.put(name, rows(1000, 1100))
    assert lgw("index", "optimize", name, "by_id", "--wait")["result"]["indexes"][0]["num_unindexed_rows"] == 0
    assert lgw("index", "describe", name, "v_idx")["num_unindexed_rows"] == 100
    assert lgw("index", "drop", name, "v_idx")["version"] == client.describe(name).version
    assert "by_id" in command.run(gateway.uri, "index", "list", name).stdout
    wrong = command.run(gateway.uri, "index", "create", name, "id", "--type", "BTREE", "--bits", 4, ok=False)
    assert wrong.returncode == 2
    assert "IVF_" in wrong.stderr


def test_lgw_sets_every_option_of_a_full_text_index(gateway, client, name):
    def words(*wanted: str) -> list[int]:
        return [len(dataset(gateway, name).to_table(["id"], full_text_query=word)) for word in wanted]

    def create(*args: object, ok: bool = True):
        return command.run(gateway.uri, "index", "create", name, "text", "--type", "INVERTED", "--wait", *args, ok=ok)

    client.put(name, pa.table({"id": [1, 2], "text": ["Die Häuser am See", "supercalifragilistic HOUSES"]}))
    create("--language", "German", "--max-token-length", 10)
    assert words("haus", "die", "supercalifragilistic", "HOUSES") == [1, 0, 0, 1], (
        "by stems, without long and frequent words"
    )
    plain = ["lower-case", "stem", "remove-stop-words", "ascii-folding", "with-position"]
    create("--replace", "--tokenizer", "whitespace", *(part for knob in plain for part in (f"--{knob}", "false")))
    assert words("Häuser", "Haus", "Hauser", "Die", "die", "houses", "HOUSES") == [1, 0, 0, 1, 0, 0, 1], "as they stand"
    create("--replace", "--tokenizer", "ngram", "--ngram-min-length", 2, "--ngram-max-length", 4)
    assert words("cali", "ou", "q") == [1, 1, 0], "parts of words"
    refused = create("--replace", "--tokenizer", "ngram", "--ngram-min-length", 9, ok=False)
    assert (refused.returncode, "INVALID_ARGUMENT" in refused.stderr) == (1, True), refused.stderr
    unknown = create("--replace", "--language", "Klingon", ok=False)
    assert (unknown.returncode, "Klingon" in unknown.stderr) == (1, True), unknown.stderr
    for misfit in (["v", "--type", "IVF_PQ"], ["id", "--type", "BTREE"]):
        wrong = command.run(gateway.uri, "index", "create", name, *misfit, "--stem", "false", ok=False)
        assert (wrong.returncode, "INVERTED" in wrong.stderr) == (2, True), wrong.stderr
