"""Indexes while rows change, and while fragments are rewritten: what is found stays what is there."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from harness.wire import index_pb2, jobs_pb2

SUCCEEDED = jobs_pb2.JOB_STATE_SUCCEEDED
EXACT = {"vector": index_pb2.VectorIndex(type="VECTOR_INDEX_TYPE_IVF_FLAT", num_partitions=1)}
ZONES = {"scalar": index_pb2.ScalarIndex(type="SCALAR_INDEX_TYPE_ZONEMAP")}
COMPACT = {"compaction": jobs_pb2.Compaction()}


def points(ids: range, values: np.ndarray) -> pa.Table:
    flat = pa.array(values.astype(np.float32).ravel())
    vectors = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.table({"id": pa.array(ids, pa.int64()), "v": vectors})


def noise(rows: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(rows, 16)).astype(np.float32)


def distances(client, name: str, query: np.ndarray, k: int = 5) -> list[tuple[int, float]]:
    found, info = client.nearest(name, "v", query.tolist(), k)
    assert list(info.vector.indexes) == ["v_idx"]
    return list(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True))


@pytest.mark.parametrize("merged", [0, 1], ids=["appended", "merged"])
@pytest.mark.parametrize("stable", [True, False], ids=["stable", "addresses"])
def test_a_vector_that_changed_is_found_where_it_is_now_and_nowhere_else(gateway, client, name, stable, merged):
    path = Path(gateway.warehouse) / f"{name}.lance"
    values = noise(1000)
    lance.write_dataset(points(range(1000), values), path, enable_stable_row_ids=stable)
    assert client.index(name, "v", **EXACT).state == SUCCEEDED
    old, new = values[7], noise(1001)[-1] + 3
    changed = lance.dataset(path).merge_insert("id").when_matched_update_all()
    changed.execute(points(range(7, 8), new.reshape(1, -1)))

    def check() -> None:
        nearest = distances(client, name, new)
        assert nearest[0] == (7, 0.0)
        assert [id for id, _ in nearest].count(7) == 1
        assert all(distance > 0 for _, distance in nearest[1:])
        assert all(distance > 0 for _, distance in distances(client, name, old))

    check()
    job = client.optimize(name, num_segments_to_merge=merged)
    assert job.state == SUCCEEDED, job
    assert client.indexes_of(name)["v_idx"].num_unindexed_rows == 0
    check()


def test_nulls_are_found_by_a_zone_map_after_a_compaction(client, name):
    for start in (0, 4, 8):
        ids = range(start, start + 4)
        client.put(name, pa.table({"id": list(ids), "x": [None if i in (1, 5, 9) else i for i in ids]}))
    assert client.index(name, "x", **ZONES).state == SUCCEEDED

    def nulls() -> list[int]:
        return sorted(client.scan(name, filter={"sql": "x IS NULL"})["id"].to_pylist())

    assert nulls() == [1, 5, 9]
    assert client.run_job(name, **COMPACT).compaction_result.num_fragments_removed == 3
    assert nulls() == [1, 5, 9]


def test_a_search_with_columns_finds_the_same_before_and_after_a_compaction(client, name):
    values = noise(300)
    for start in range(0, 300, 100):
        client.put(name, points(range(start, start + 100), values[start : start + 100]))
    assert client.index(name, "v", **EXACT).state == SUCCEEDED
    before = [client.nearest(name, "v", q.tolist(), 7)[0].to_pylist() for q in values[::50]]
    assert client.run_job(name, **COMPACT).compaction_result.num_fragments_removed == 3
    assert [client.nearest(name, "v", q.tolist(), 7)[0].to_pylist() for q in values[::50]] == before
    assert client.indexes_of(name)["v_idx"].num_unindexed_rows == 0


def test_optimizations_beside_compactions_leave_indexes_that_can_be_listed_and_searched(client, name):
    values = noise(2100)
    client.put(name, points(range(100), values[:100]))
    assert client.index(name, "v", **EXACT).state == SUCCEEDED
    for round in range(1, 21):
        ids = range(round * 100, round * 100 + 100)
        client.put(name, points(ids, values[ids.start : ids.stop]))
        compaction = client.start_job(name, **COMPACT)
        optimization = client.optimize(name)
        compaction = client.end_of_job(compaction.id)
        # Which of two that want the same fragments gives way is theirs; it says so, and a later one does its work.
        for job in (compaction, optimization):
            assert job.state == SUCCEEDED or job.reason == "CONCURRENT_MODIFICATION", job
        index = client.indexes_of(name)["v_idx"]
        assert index.num_indexed_rows + index.num_unindexed_rows == ids.stop
        assert distances(client, name, values[ids.start], 1) == [(ids.start, 0.0)]
    assert client.optimize(name).state == SUCCEEDED
    assert client.indexes_of(name)["v_idx"].num_unindexed_rows == 0
