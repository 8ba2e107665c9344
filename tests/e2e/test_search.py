"""Searches: the nearest vectors, the best texts and both; over gRPC, over Flight, and many on one stream."""

import json
import re
import subprocess
import sys
from ast import literal_eval

import lance
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness import lgw, paths, wire
from harness.process import clean_environment
from harness.wire import search_pb2

METRICS = ("METRIC_L2", "METRIC_COSINE", "METRIC_DOT")
SCALAR_INDEXES = (None, "BTREE", "BITMAP", "BLOOMFILTER", "ZONEMAP")


def vectors(rows: list, dimension: int | None = None, item: pa.DataType | None = None) -> pa.Array:
    """A column of vectors; None is null."""
    dimension = dimension or len(next(row for row in rows if row is not None))
    return pa.array(rows, pa.list_(item or pa.float32(), dimension))


def exact_index(dataset: lance.LanceDataset, metric: str = "l2", column: str = "v") -> None:
    """One partition and no quantisation: it finds what a comparison with every row finds."""
    dataset.create_index(column, "IVF_FLAT", metric=metric, num_partitions=1)


@pytest.fixture
def table(gateway, name):
    """The test's table as Lance itself sees it: as many fragments as it is given tables."""

    def table(*fragments: pa.Table) -> lance.LanceDataset:
        path = f"{gateway.warehouse}/{name}.lance"
        for rows in fragments:
            dataset = lance.write_dataset(rows, path, mode="append")
        return dataset

    return table


def ids(rows: pa.Table) -> list[int]:
    return rows["id"].to_pylist()


def distances(rows: pa.Table) -> list[float]:
    return rows["_distance"].to_pylist()


def test_the_nearest_rows_come_with_distance_version_metric_and_index(client, table, name):
    rows = pa.table({"id": range(10), "v": vectors([[float(n), 0.0] for n in range(10)])})
    dataset = table(rows)
    found, info = client.nearest(name, "v", [3.2, 0.0], k=2)
    assert ids(found) == [3, 4] and distances(found) == pytest.approx([0.04, 0.64])
    assert found.schema.field("_distance").type == pa.float32()
    assert (info.version, info.num_rows, info.metric) == (1, 2, search_pb2.METRIC_L2)
    assert (list(info.vector.indexes), info.vector.num_unindexed_rows) == ([], 10)
    exact_index(dataset)
    lance.write_dataset(rows.slice(0, 4), dataset.uri, mode="append")
    _, info = client.nearest(name, "v", [3.2, 0.0], k=2)
    assert (list(info.vector.indexes), info.vector.num_unindexed_rows, info.version) == (["v_idx"], 4, 3)
    _, info = client.nearest(name, "v", [3.2, 0.0], exact=True)
    assert (list(info.vector.indexes), info.vector.num_unindexed_rows) == ([], 14)


def test_projection_row_ids_offset_and_versions_hold(client, table, name):
    dataset = table(pa.table({"id": range(6), "v": vectors([[float(n)] for n in range(6)]), "w": ["x"] * 6}))
    dataset.tags.create("first", 1)
    dataset.delete("id = 0")
    columns = wire.scan_pb2.Projection(columns=[wire.table_pb2.Column(path=["id"])])
    metadata = wire.scan_pb2.RowMetadata(row_id=True)
    found, _ = client.nearest(name, "v", [0.0], k=2, offset=1, projection=columns, metadata=metadata)
    assert found.to_pylist() == [
        {"id": 2, "_rowid": 2, "_distance": 4.0},
        {"id": 3, "_rowid": 3, "_distance": 9.0},
    ]
    nothing = wire.scan_pb2.Projection()
    assert client.nearest(name, "v", [0.0], k=1, projection=nothing)[0].to_pylist() == [{"_distance": 1.0}]
    for version in (wire.table_pb2.VersionSelector(version=1), wire.table_pb2.VersionSelector(tag="first")):
        found, info = client.nearest(name, "v", [0.0], k=1, version=version)
        assert (ids(found), info.version) == ([0], 1)


def test_deleted_rows_leave_their_place_to_the_next(client, table, name):
    dataset = table(pa.table({"id": range(60), "v": vectors([[float(n), 0.0] for n in range(60)])}))
    exact_index(dataset)
    dataset.delete("id < 10")
    found, info = client.nearest(name, "v", [0.0, 0.0], k=5)
    assert ids(found) == [10, 11, 12, 13, 14] and info.vector.indexes == ["v_idx"]
    assert ids(client.nearest(name, "v", [0.0, 0.0], k=1)[0]) == [10]


def test_a_metric_that_is_not_that_of_the_index_is_refused_with_both(client, table, name):
    rng = np.random.default_rng(7)
    points = rng.normal(size=(300, 4)).astype(np.float32)
    rows = pa.table({"id": range(300), "v": vectors(points.tolist())})
    dataset = table(rows)
    query = [0.5, -0.25, 1.0, 0.0]
    before, _ = client.nearest(name, "v", query, metric="METRIC_DOT")
    exact_index(dataset, "dot")
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.nearest(name, "v", query, metric="METRIC_L2")
    assert wire.reason(refused.value) == "METRIC_MISMATCH"
    assert "l2" in refused.value.details() and "dot" in refused.value.details() and "v_idx" in refused.value.details()
    found, info = client.nearest(name, "v", query)
    assert info.metric == search_pb2.METRIC_DOT and ids(found) == ids(before)
    by_hand = np.argsort(((points - np.float32(query)) ** 2).sum(axis=1))[:10]
    assert ids(client.nearest(name, "v", query, metric="METRIC_L2", exact=True)[0]) == by_hand.tolist()


def test_the_metric_that_the_table_declares_holds_before_and_after_the_build(client, gateway, name):
    schema = pa.schema({"id": pa.int64(), "v": pa.list_(pa.float32(), 2)})
    properties = {"vector.metric": "Cosine"}
    request = wire.tables_pb2.CreateTableRequest(
        table=wire.table(name),
        schema=wire.schema_message(schema),
        options=wire.tables_pb2.CreateOptions(properties=properties),
    )
    client.tables.CreateTable(request)
    points = [[np.cos(a) * r, np.sin(a) * r] for a, r in zip(np.linspace(0.1, 3, 300), np.arange(1, 301), strict=True)]
    client.put(name, pa.table({"id": range(300), "v": vectors(points)}, schema=schema))
    before, info = client.nearest(name, "v", [1.0, 0.0])
    assert info.metric == search_pb2.METRIC_COSINE and ids(before) == list(range(10))
    exact_index(lance.dataset(f"{gateway.warehouse}/{name}.lance"), "cosine")
    after, info = client.nearest(name, "v", [1.0, 0.0])
    assert info.vector.indexes == ["v_idx"]
    assert ids(after) == ids(before) and distances(after) == pytest.approx(distances(before), abs=1e-5)
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.nearest(name, "v", [1.0, 0.0], metric="METRIC_L2", exact=True)
    assert wire.reason(refused.value) == "METRIC_MISMATCH" and "cosine" in refused.value.details()
    request.table.CopyFrom(wire.table(f"{name}_2"))
    request.options.properties["vector.metric"] = "euclid"
    assert wire.denied(client.tables.CreateTable, request) == "INVALID_ARGUMENT"


def test_an_indexed_row_and_an_appended_one_are_measured_alike(client, table, name):
    dataset = table(pa.table({"id": [1], "v": vectors([[1.5, 0.0]])}))
    exact_index(dataset)
    lance.write_dataset(pa.table({"id": [2], "v": vectors([[1.8, 0.0]])}), dataset.uri, mode="append")
    found, info = client.nearest(name, "v", [0.0, 0.0], k=1)
    assert (ids(found), distances(found), info.vector.num_unindexed_rows) == ([1], [2.25], 1)


def test_the_distance_of_a_dot_product_is_one_minus_it(client, table, name):
    table(pa.table({"id": [1], "v": vectors([[2.0, 0.0]])}))
    assert distances(client.nearest(name, "v", [1.0, 0.0], metric="METRIC_DOT")[0]) == [-1.0]


def test_a_filter_comes_before_the_search_whatever_is_indexed(client, table, name):
    fragments = [
        pa.table(
            {"id": range(64 * n, 64 * n + 64), "v": vectors([[float(i), 0.0] for i in range(64 * n, 64 * n + 64)])}
        )
        for n in range(4)
    ]
    dataset = table(*fragments[:2])
    even = dict(k=5, filter="id % 2 = 0")
    expected = [0, 2, 4, 6, 8]
    assert ids(client.nearest(name, "v", [0.0, 0.0], **even)[0]) == expected
    exact_index(dataset)
    dataset = table(*fragments[2:])
    found, info = client.nearest(name, "v", [0.0, 0.0], **even)
    assert (ids(found), info.vector.num_unindexed_rows) == (expected, 128)
    dataset.optimize.optimize_indices()
    found, info = client.nearest(name, "v", [0.0, 0.0], **even)
    assert (ids(found), info.vector.num_unindexed_rows) == (expected, 0)
    assert ids(client.nearest(name, "v", [0.0, 0.0], postfilter=True, **even)[0]) == [0, 2, 4]


@pytest.mark.parametrize("metric", ["l2", "dot", "cosine"])
def test_rows_without_a_vector_never_come_back(client, table, name, metric):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(10_000, 16)).astype(np.float32).tolist()
    points = [point if n % 10 < 3 else None for n, point in enumerate(points)]
    dataset = table(pa.table({"id": range(10_000), "v": vectors(points)}))
    query, asked = [1.0] * 16, f"METRIC_{metric.upper()}"
    before, _ = client.nearest(name, "v", query, k=4_000, metric=asked)
    assert before.num_rows == 3_000 and all(n % 10 < 3 for n in ids(before))
    exact_index(dataset, metric)
    after, info = client.nearest(name, "v", query, k=4_000, metric=asked)
    assert info.vector.indexes == ["v_idx"] and set(ids(after)) == set(ids(before))
    assert distances(after) == pytest.approx(distances(before), abs=1e-4)


@pytest.mark.parametrize("indexed", [False, True])
def test_zero_and_nan_vectors_are_in_no_cosine_result_and_change_no_rank(client, table, name, indexed):
    points = [[1.0, float(n)] for n in range(300)]
    odd = [[0.0, 0.0], [float("nan"), 1.0], [0.0, 0.0]]
    dataset = table(
        pa.table({"id": range(300), "v": vectors(points)}), pa.table({"id": [900, 901, 902], "v": vectors(odd)})
    )
    if indexed:
        exact_index(dataset, "cosine")
    found, _ = client.nearest(name, "v", [1.0, 0.0], k=1_000, metric="METRIC_COSINE")
    assert ids(found) == list(range(300))
    shared = client.exchange(
        name,
        pa.table({"id": [1, 2], "vector": vectors([[1.0, 0.0], [1.0, 0.0]])}),
        search={"vector": {"column": {"path": ["v"]}, "k": 1_000, "metric": "METRIC_COSINE"}},
    )
    assert [[row["id"] for row in rows] for _, rows in shared.values()] == [list(range(300))] * 2


@pytest.mark.parametrize(
    ("vector", "more", "words"),
    [
        ([1.0, 2.0, 3.0, 4.0], {}, ("4", "8")),
        ([float("nan")] * 8, {}, ("NaN",)),
        ([float("inf")] * 8, {}, ("inf",)),
        ([0.0] * 8, {"metric": "METRIC_COSINE"}, ("zero vector",)),
        ([1.0] * 8, {"k": 10**9}, ("1000000000", "search.max-k")),
        ([1.0] * 8, {"k": 0}, ("k is 0",)),
        ([1.0] * 8, {"k": 9_999, "offset": 2}, ("10001", "search.max-k")),
        ([1.0] * 8, {"refine_factor": 20_000}, ("search.max-candidates",)),
        ([1.0] * 8, {"k": 10, "ef": 9}, ("ef is 9",)),
        ([1.0] * 8, {"min_nprobes": 3, "max_nprobes": 2}, ("min_nprobes",)),
        ([1.0] * 8, {"metric": "METRIC_HAMMING"}, ("hamming", "Float32")),
        ([1.0] * 8, {"lower_bound": float("nan")}, ("bound",)),
        (search_pb2.Vector(binary=b"12345678"), {}, ("UInt8", "Float32")),
        (search_pb2.Vector(multi=search_pb2.MultiVector()), {}, ("several",)),
        (search_pb2.Vector(), {}, ("missing",)),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_before_anything_is_planned(client, table, name, vector, more, words):
    table(pa.table({"id": [1], "v": vectors([[1.0] * 8])}))
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.nearest(name, "v", vector, **more)
    assert wire.reason(refused.value) == "INVALID_ARGUMENT"
    for word in words:
        assert word in refused.value.details()


def test_columns_that_cannot_be_searched_are_named(client, table, name):
    table(pa.table({"id": [1], "v": vectors([[1.0]]), "w": ["word"]}))
    for column, reason in (("V", "COLUMN_NOT_FOUND"), ("id", "INVALID_ARGUMENT")):
        with pytest.raises(wire.grpc.RpcError) as refused:
            client.nearest(name, column, [1.0])
        assert wire.reason(refused.value) == reason and f"'{column}'" in refused.value.details()
    assert (
        wire.denied(lambda: client.best(name, {"match": {"column": {"path": ["id"]}, "text": "x"}}))
        == "INVALID_ARGUMENT"
    )
    assert wire.denied(lambda: client.nearest(f"{name}_2", "v", [1.0])) == "TABLE_NOT_FOUND"


def test_an_empty_table_has_nothing_to_find(client, name):
    schema = pa.schema({"id": pa.int64(), "v": pa.list_(pa.float32(), 8), "w": pa.string()})
    client.put(name, schema.empty_table())
    found, info = client.nearest(name, "v", [1.0] * 8)
    assert (found.num_rows, found.schema.names, info.vector.num_unindexed_rows) == (0, ["id", "v", "w", "_distance"], 0)
    match = {"match": {"column": {"path": ["w"]}, "text": "x"}}
    found, _ = client.best(name, match)
    assert (found.num_rows, found.schema.names) == (0, ["id", "v", "w", "_score"])
    column = wire.table_pb2.Column(path=["v"])
    vector = search_pb2.VectorQuery(column=column, vector=wire._vector([1.0] * 8))
    found, _ = client.both(name, vector, search_pb2.FullTextQuery(query=search_pb2.TextQuery(**match)))
    assert (found.num_rows, found.schema.names[-3:]) == (0, ["_distance", "_score", "_relevance_score"])


@pytest.mark.parametrize(
    ("item", "vector"),
    [
        (pa.float16(), search_pb2.Vector(float16=np.array([2, 0], np.float16).tobytes())),
        (pa.float64(), search_pb2.Vector(float64=search_pb2.Float64Values(values=[2, 0]))),
        (pa.float32(), search_pb2.Vector(float64=search_pb2.Float64Values(values=[2, 0]))),
        (pa.float32(), search_pb2.Vector(int8=bytes([2, 0]))),
        (pa.int8(), search_pb2.Vector(int8=bytes([2, 0]))),
        (pa.int8(), search_pb2.Vector(float32=search_pb2.Float32Values(values=[2, 0]))),
    ],
)
def test_a_query_of_another_type_of_number_is_compared_as_the_column_has_them(client, table, name, item, vector):
    points = np.array([[n, 0] for n in range(5)], item.to_pandas_dtype())
    table(pa.table({"id": range(5), "v": pa.FixedSizeListArray.from_arrays(pa.array(points.ravel(), item), 2)}))
    found, _ = client.nearest(name, "v", vector, k=3)
    assert (ids(found), distances(found)) == ([2, 1, 3], [0.0, 1.0, 1.0])


def test_bytes_are_compared_bit_by_bit(client, table, name):
    table(pa.table({"id": range(3), "v": vectors([[0b1111, 0], [0b0001, 0], [0, 0b1]], item=pa.uint8())}))
    found, info = client.nearest(name, "v", search_pb2.Vector(binary=bytes([0b0011, 0])), k=3)
    assert (ids(found), distances(found), info.metric) == ([1, 0, 2], [1.0, 2.0, 3.0], search_pb2.METRIC_HAMMING)


def test_a_multivector_counts_the_nearest_of_each_of_its_vectors(client, table, name):
    item = pa.list_(pa.float32(), 2)
    rows = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0]], [[-1.0, 0.0], [0.0, -1.0]]]
    table(pa.table({"id": range(3), "v": pa.array(rows, pa.list_(item))}))
    query = search_pb2.MultiVector(vectors=[wire._vector([1.0, 0.0]), wire._vector([0.0, 1.0])])
    found, _ = client.nearest(name, "v", search_pb2.Vector(multi=query), metric="METRIC_COSINE")
    assert ids(found) == [0, 1, 2]
    assert ids(client.nearest(name, "v", [0.0, 1.0], metric="METRIC_COSINE", k=1)[0]) == [0]


def test_names_with_dots_and_fields_of_structs_are_found(client, name):
    inner = pa.struct({"v": pa.list_(pa.float32(), 1)})
    rows = [{"v": [float(n)]} for n in range(3)]
    rows = {"id": range(3), "my.vec": vectors([[5.0], [4.0], [3.0]]), "s": pa.array(rows, inner)}
    client.put(name, pa.table(rows))
    assert ids(client.nearest(name, "my.vec", [3.0], k=2)[0]) == [2, 1]
    found, _ = client.nearest(name, ["s", "v"], [0.0], k=2, filter="`my.vec` IS NOT NULL")
    assert (ids(found), found.schema.names) == ([0, 1], ["id", "my.vec", "s", "_distance"])


def test_distances_can_be_bounded(client, table, name):
    table(pa.table({"id": range(6), "v": vectors([[float(n)] for n in range(6)])}))
    assert ids(client.nearest(name, "v", [0.0], lower_bound=1.0, upper_bound=16.0)[0]) == [1, 2, 3]


def test_rows_above_the_bound_of_an_answer_are_refused_by_its_name(start_gateway, connect, name):
    client = connect(start_gateway(config={"search": {"max-reply-bytes": "64KiB"}}))
    client.put(
        name, pa.table({"id": range(100), "v": vectors([[float(n)] for n in range(100)]), "w": ["x" * 2_000] * 100})
    )
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.nearest(name, "v", [0.0], k=50)
    assert wire.reason(refused.value) == "QUOTA_EXCEEDED" and "search.max-reply-bytes" in refused.value.details()
    narrow = wire.scan_pb2.Projection(columns=[wire.table_pb2.Column(path=["id"])])
    assert client.nearest(name, "v", [0.0], k=50, projection=narrow)[0].num_rows == 50


# Filters.


@pytest.mark.parametrize("index", SCALAR_INDEXES)
def test_null_is_neither_true_nor_false_in_a_filter_whatever_is_indexed(client, gateway, table, name, index):
    rows = pa.table(
        {
            "id": range(5),
            "a": pa.array([None, "a", "x", "x", "x"], pa.string()),
            "n": pa.array([None, 1, 0, 0, 0], pa.int64()),
            "b": pa.array([True, False, None, True, True], pa.bool_()),
            "m": pa.array([1, 2, None, 3, None], pa.int64()),
            "z": pa.array([None] * 5, pa.int64()),
            "v": vectors([[float(n)] for n in range(5)]),
        }
    )
    dataset = table(rows)
    for column in ("a", "n", "b", "m", "z") if index else ():
        if not (column == "b" and index not in ("BITMAP",)):
            dataset.create_scalar_index(column, index)
    cases = {
        "a != 'x'": [1],
        "id < 2 AND ((n <> 0) OR (n < 5))": [1],
        "NOT b": [1],
        "m IS NOT NULL": [0, 1, 3],
        "m IN (1, 2, NULL)": [0, 1],
        "NOT (z IN (1) AND z IN (2))": [],
        "m IS NULL": [2, 4],
    }
    for sql, expected in cases.items():
        assert client.count(name, sql) == len(expected), sql
        assert sorted(ids(client.nearest(name, "v", [0.0], filter=sql)[0])) == expected, sql


def test_a_limited_filter_looks_into_every_fragment(client, table, name):
    def fragment(first: int, flag: bool) -> pa.Table:
        return pa.table(
            {
                "id": range(first, first + 100),
                "topic": ["A" if n % 2 else "B" for n in range(100)],
                "flag": [flag] * 100,
                "v": vectors([[float(n)] for n in range(first, first + 100)]),
            }
        )

    dataset = table(fragment(0, False), fragment(100, False), fragment(200, True))
    dataset.create_scalar_index("topic", "BTREE")
    sql = "topic = 'A' AND flag"
    assert client.scan(name, filter={"sql": sql}, limit=10).num_rows == 10
    found, _ = client.nearest(name, "v", [0.0], k=10, filter=sql)
    assert ids(found) == list(range(201, 221, 2))


# Texts.

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "a quick dog",
    "brown bread and butter",
    "the fox and the hound, quick as a fox",
    None,
    "nothing of the kind",
]


@pytest.fixture
def texts(table):
    return table(
        pa.table({"id": range(6), "t": TEXTS, "v": vectors([[float(n), 1.0] for n in range(6)])}),
    )


def match(text: str, **more: object) -> dict:
    return {"match": {"column": {"path": ["t"]}, "text": text, **more}}


QUERIES = {
    "words": (match("quick fox"), {0, 1, 3}),
    "all words": (match("quick fox", all_words=True), {0, 3}),
    "no word": (match("quikc"), set()),
    "phrase": ({"phrase": {"column": {"path": ["t"]}, "text": "quick brown"}}, {0}),
    "boolean": ({"boolean": {"must": [match("quick")], "must_not": [match("hound")]}}, {0, 1}),
    "boost": ({"boost": {"positive": match("quick"), "negative": match("dog")}}, {0, 1, 3}),
}


@pytest.mark.parametrize("indexed", ["none", "partial", "full"])
@pytest.mark.parametrize("query", QUERIES)
def test_texts_are_found_with_no_a_partial_and_a_full_index(client, table, name, indexed, query):
    rows = pa.table({"id": range(6), "t": TEXTS})
    first = 6 if indexed == "full" else 3
    dataset = table(rows.slice(0, first))
    if indexed != "none":
        dataset.create_scalar_index("t", "INVERTED", with_position=True, stem=False, remove_stop_words=False)
    if first < 6:
        table(rows.slice(first))
    query, expected = QUERIES[query]
    found, info = client.best(name, query)
    assert set(ids(found)) == expected
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    unindexed = {"none": 6, "partial": 3, "full": 0}[indexed]
    assert (list(info.text.indexes), info.text.num_unindexed_rows) == (
        [] if indexed == "none" else ["t_idx"],
        unindexed,
    )


def test_fuzzy_words_are_looked_up_in_an_index(client, texts, name):
    assert wire.denied(lambda: client.best(name, match("quicc", fuzziness=2))) == "UNSUPPORTED"
    texts.create_scalar_index("t", "INVERTED", with_position=False)
    for fuzzy in ({"fuzziness": 2}, {"fuzziness": 1, "prefix_length": 3}):
        assert set(ids(client.best(name, match("quicc", **fuzzy))[0])) == {0, 1, 3}
    assert ids(client.best(name, match("quicc"))[0]) == []
    assert wire.denied(lambda: client.best(name, match("x", max_expansions=10**6))) == "INVALID_ARGUMENT"


def test_a_text_search_takes_filters_offsets_and_projections(client, texts, name):
    texts.create_scalar_index("t", "INVERTED", with_position=False)
    found, _ = client.best(name, match("quick"), filter="id > 0")
    assert set(ids(found)) == {1, 3}
    both, _ = client.best(name, match("quick"), k=2)
    second, _ = client.best(name, match("quick"), k=1, offset=1)
    assert second.to_pylist() == both.slice(1).to_pylist()
    assert wire.denied(lambda: client.best(name, match("  "))) == "INVALID_ARGUMENT"
    assert wire.denied(lambda: client.best(name, {"boolean": {"must_not": [match("fox")]}})) == "INVALID_ARGUMENT"
    assert wire.denied(lambda: client.best(name, match("x", fuzziness=3))) == "INVALID_ARGUMENT"
    many = {"boolean": {"should": [match("fox")] * 100}}
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.best(name, many)
    assert "search.max-clauses" in refused.value.details()
    phrase = {"phrase": {"column": {"path": ["t"]}, "text": "quick brown"}}
    with pytest.raises(wire.grpc.RpcError) as refused:
        client.best(name, phrase)
    assert wire.reason(refused.value) == "INVALID_ARGUMENT" and "position" in refused.value.details()


def test_a_hybrid_search_ranks_by_both(client, texts, name):
    texts.create_scalar_index("t", "INVERTED", with_position=True)
    vector = search_pb2.VectorQuery(column={"path": ["v"]}, vector=wire._vector([3.0, 1.0]), k=3)
    text = search_pb2.FullTextQuery(query=search_pb2.TextQuery(**match("fox")))
    found, info = client.both(name, vector, text, k=4)
    # Nearest: 3, then 2 and 4; best: 3, which says it twice, then 0.
    assert ids(found) == [3, 0, 2, 4]
    assert found["_relevance_score"].to_pylist() == pytest.approx([2 / 61, 1 / 62, 1 / 62, 1 / 63])
    assert distances(found) == [0.0, None, 1.0, 1.0]
    assert [score is None for score in found["_score"].to_pylist()] == [False, False, True, True]
    assert (info.metric, list(info.vector.indexes), list(info.text.indexes)) == (search_pb2.METRIC_L2, [], ["t_idx"])
    found, _ = client.both(name, vector, text, k=1, offset=1, vector_weight=0.1)
    assert ids(found) == [0]
    vector.offset = 1
    assert wire.denied(lambda: client.both(name, vector, text)) == "INVALID_ARGUMENT"


# Flight.


def test_a_json_command_searches_over_flight(client, texts, name):
    query = {"column": {"path": ["v"]}, "vector": {"float32": {"values": [3.0, 1.0]}}, "k": 2}
    info = client.plan(name, search={"vector": query}, projection={"columns": [{"path": ["id"]}]})
    (endpoint,) = info.endpoints
    reader = client.flight.do_get(endpoint.ticket)
    first = reader.read_chunk()
    told = json.loads(first.app_metadata.to_pybytes())
    assert told["metric"] == "METRIC_L2" and told["num_rows"] == 2 and told["vector"]["num_unindexed_rows"] == 6
    assert info.schema == reader.schema
    # What was planned reads its version whatever comes after.
    lance.write_dataset(pa.table({"id": [9], "t": ["x"], "v": vectors([[3.0, 1.0]])}), texts.uri, mode="append")
    assert client.read(info).to_pylist() == [{"id": 3, "_distance": 0.0}, {"id": 2, "_distance": 1.0}]
    assert ids(client.scan(name, search={"vector": {**query, "k": 1, "offset": 1}})) == [9]
    assert ids(client.scan(name, search={"text": {"query": match("bread")}})) == [2]
    hybrid = {"vector": query, "text": {"query": match("bread")}}
    assert client.scan(name, search={"hybrid": hybrid}).schema.names[-1] == "_relevance_score"
    with pytest.raises((flight.FlightError, pa.ArrowInvalid)) as refused:
        client.plan(name, search={"vector": query}, limit=5)
    assert wire.reason(refused.value) == "INVALID_ARGUMENT"
    with pytest.raises((flight.FlightError, pa.ArrowInvalid)) as refused:
        client.plan(name, search={"vector": {**query, "k": 10**9}})
    assert "search.max-k" in str(refused.value)


def search_of(column: str = "v", **more: object) -> dict:
    return {"vector": {"column": {"path": [column]}, **more}}


def test_a_bad_query_of_a_stream_fails_alone(client, table, name):
    table(pa.table({"id": range(20), "v": vectors([[float(n)] * 8 for n in range(20)])}))
    queries = [[2.0] * 8, [1.0] * 4, [3.0] * 8, None, [float("nan")] * 8, [4.0] * 8]
    queries = pa.table({"id": ["a", "b", "c", "d", "e", "f"], "vector": pa.array(queries, pa.list_(pa.float32()))})
    answers = client.exchange(name, queries, search=search_of(k=2), projection={"columns": [{"path": ["id"]}]})
    assert answers["a"][1] == [{"id": 2, "_distance": 0.0}, {"id": 1, "_distance": 8.0}]
    assert answers["a"][0]["info"]["num_rows"] == 2 and answers["a"][0]["info"]["metric"] == "METRIC_L2"
    said, rows = answers["b"]
    assert rows == [] and said["error"]["reason"] == "INVALID_ARGUMENT"
    assert "4" in said["error"]["message"] and "8" in said["error"]["message"]
    assert [row["id"] for row in answers["c"][1]] == [3, 2]
    assert answers["d"][0]["error"]["message"] == "the query has no vector"
    assert "NaN" in answers["e"][0]["error"]["message"]
    assert [row["id"] for row in answers["f"][1]] == [4, 3]


def test_each_query_of_a_stream_answers_as_it_would_alone(client, table, name):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(2_000, 8)).astype(np.float32)
    rows = pa.table({"id": range(2_000), "v": vectors(points.tolist())})
    dataset = table(rows)
    asked = points[:100] + np.float32(0.01)
    queries = pa.table({"id": range(100), "vector": vectors(asked.tolist())})

    def alone(**more: object) -> list[list[dict]]:
        found = (client.nearest(name, "v", query.tolist(), k=5, **more)[0] for query in asked)
        return [rows.to_pylist() for rows in found]

    def together(**more: object) -> list[list[dict]]:
        answers = client.exchange(name, queries, search=search_of(k=5, **more))
        assert len(answers) == 100
        return [answers[n][1] for n in range(100)]

    def same(left: list[list[dict]], right: list[list[dict]]) -> None:
        assert [[row["id"] for row in rows] for rows in left] == [[row["id"] for row in rows] for rows in right]

    same(together(), alone())
    dataset.create_index("v", "IVF_FLAT", metric="l2", num_partitions=8)
    same(together(), alone())
    same(together(min_nprobes=2, max_nprobes=2), alone(min_nprobes=2, max_nprobes=2))
    dataset.create_index("v", "IVF_PQ", metric="l2", num_partitions=8, num_sub_vectors=2, replace=True)
    refined = {"min_nprobes": 2, "max_nprobes": 2, "refine_factor": 4}
    assert together(**refined) == alone(**refined)
    lance.write_dataset(rows.slice(0, 50), dataset.uri, mode="append")
    same(together(min_nprobes=2, max_nprobes=2), alone(min_nprobes=2, max_nprobes=2))


def test_queries_of_a_stream_may_differ_in_k_and_be_texts_or_both(client, texts, name):
    queries = pa.table({"id": [10, 20], "vector": vectors([[0.0, 1.0], [5.0, 1.0]]), "k": [1, None]})
    answers = client.exchange(name, queries, search=search_of(k=3))
    assert [len(rows) for _, rows in (answers[10], answers[20])] == [1, 3]
    queries = pa.table({"id": [1, 2, 3], "text": ["bread", "hound", None], "vector": vectors([[2.0, 1.0]] * 3)})
    answers = client.exchange(name, queries, search={"text": {"query": {"match": {"column": {"path": ["t"]}}}}})
    assert [[row["id"] for row in rows] for _, rows in (answers[1], answers[2])] == [[2], [3]]
    assert answers[3][0]["error"]["message"] == "the query has no text"
    hybrid = {"vector": search_of(k=1)["vector"], "text": {"query": {"match": {"column": {"path": ["t"]}}}}}
    answers = client.exchange(name, queries, search={"hybrid": hybrid})
    assert [[row["id"] for row in rows] for _, rows in (answers[1], answers[2])] == [[2], [2, 3]]


def test_a_stream_sees_rows_that_are_appended_while_it_is_open(client, table, name):
    dataset = table(pa.table({"id": [1], "v": vectors([[1.0]])}))
    command = {"search": {"table": {"name": {"parts": [name]}}, "search": search_of(k=1)}}
    writer, reader = client.flight.do_exchange(flight.FlightDescriptor.for_command(json.dumps(command)))
    query = pa.table({"id": [1], "vector": vectors([[2.0]])})
    with writer:
        writer.begin(query.schema)
        writer.write_table(query)
        assert reader.read_chunk().data["id"].to_pylist() == [1]
        lance.write_dataset(pa.table({"id": [2], "v": vectors([[2.0]])}), dataset.uri, mode="append")
        writer.write_table(query)
        assert reader.read_chunk().data["id"].to_pylist() == [2]
        writer.done_writing()


@pytest.mark.parametrize(
    ("queries", "search", "word"),
    [
        ({"vector": vectors([[1.0]])}, search_of(), "`id`"),
        ({"id": [1]}, search_of(), "`vector`"),
        ({"id": [1], "vector": [1.0]}, search_of(), "must be a list"),
        ({"id": [1], "vector": vectors([[1.0]]), "k": ["1"]}, search_of(), "`k`"),
        ({"id": [1], "vector": vectors([[1.0]])}, search_of(vector={"float32": {"values": [1]}}), "no vector"),
        ({"id": [1], "text": ["x"]}, {"text": {"query": match("x")}}, "no text"),
        ({"id": [1], "text": ["x"]}, {"text": {"query": {"boolean": {"must": [match("x")]}}}}, "match or a phrase"),
        ({"id": [1]}, {}, "missing"),
    ],
)
def test_a_stream_that_cannot_have_an_answer_is_refused(client, table, name, queries, search, word):
    table(pa.table({"id": [1], "v": vectors([[1.0]]), "t": ["x"]}))
    with pytest.raises((flight.FlightError, pa.ArrowInvalid)) as refused:
        client.exchange(name, pa.table(queries), search=search)
    assert word in str(refused.value) and wire.reason(refused.value) == "INVALID_ARGUMENT"


# People.


def lgw_rows(done) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lgw_searches_for_a_vector_a_text_and_a_file_of_vectors(client, gateway, texts, name, tmp_path):
    search = ("--output", "json", "search", name)
    done = lgw.run(gateway.uri, *search, "v", "--vector", "[3, 1]", "-k", 2, "--columns", "id", "--filter", "id <> 3")
    assert lgw_rows(done) == [{"id": 2, "_distance": 1.0}, {"id": 4, "_distance": 1.0}]
    assert "2 rows, l2; vectors without an index" in done.stderr
    exact_index(texts)
    done = lgw.run(gateway.uri, "search", name, "v", "--vector", "[3, 1]", "-k", 1, "--nprobes", 1, "--refine", 2)
    assert "vectors by index v_idx" in done.stderr and re.search(r"id +t +v +_distance", done.stdout)
    done = lgw.run(gateway.uri, *search, "t", "--text", "bread hound", "--columns", "id")
    assert {row["id"] for row in lgw_rows(done)} == {2, 3}
    file = tmp_path / "queries.jsonl"
    file.write_text('{"vector": [0, 1]}\n{"vector": [1]}\n{"vector": [5, 1]}\n')
    done = lgw.run(gateway.uri, *search, "v", "--vectors", file, "-k", 1, "--columns", "id", ok=False)
    assert done.returncode == 1 and "query 1: " in done.stderr and "1 of 3 queries failed" in done.stderr
    rows = sorted(lgw_rows(done), key=lambda row: row["_query"])
    assert rows == [{"_query": 0, "id": 0, "_distance": 0.0}, {"_query": 2, "id": 5, "_distance": 0.0}]
    done = lgw.run(gateway.uri, "search", name, "v", "--vector", "[3, 1]", "--metric", "dot", ok=False)
    assert done.returncode == 1 and "METRIC_MISMATCH" in done.stderr
    assert lgw.run(gateway.uri, "search", name, "v", "--vector", "3, 1", ok=False).returncode == 2


def test_the_page_about_search_works_as_it_is_written(gateway):
    page = (paths.ROOT / "docs/search.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "grpc://127.0.0.1:8815" in code
    code = code.replace("grpc://127.0.0.1:8815", gateway.uri)
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    near, best, both, *answers = done.stdout.splitlines()
    assert [row["word"] for row in literal_eval(near)] == ["cat", "car"]
    assert set(literal_eval(best)) == {"cat", "dog"}
    assert literal_eval(both)[:2] == ["cat", "dog"]
    assert sorted(answers) == ["0 None ['cat', 'dog']", "1 None ['car', 'dog']"]
