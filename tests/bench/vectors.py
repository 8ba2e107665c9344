"""Tables of vectors with an index, queries that are not in them, and what an exact search finds: made once and kept."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from harness import data

from .rows import WORK

QUERIES = 500
K = 10
COLUMN = "vector"
PARTITIONS = 256
# Queries that an exact search answers in one scan.
AT_ONCE = 50


@dataclass(frozen=True)
class Vectors:
    """What a table is made of."""

    table: str
    values: Callable[[], np.ndarray]
    sub_vectors: int


@dataclass(frozen=True)
class Prepared:
    """A table below `warehouse`, and the file with its queries."""

    vectors: Vectors
    warehouse: Path
    queries: Path

    @property
    def path(self) -> Path:
        return self.warehouse / f"{self.vectors.table}.lance"

    @property
    def curve(self) -> Path:
        """Recall and speed, as last measured."""
        return self.warehouse / "curve.json"


def glove() -> np.ndarray:
    values = data.glove()["embedding"].combine_chunks().flatten().to_numpy()
    return values.reshape(-1, data.GLOVE_DIM)


def clustered(
    rows: int = 1_000_000 + QUERIES, dimension: int = 128, clusters: int = 1_000, inner: int = 16
) -> np.ndarray:
    """Clouds of different sizes around centers, each flat in most directions, as embeddings are."""
    r = np.random.default_rng(13)
    values = np.empty((rows, dimension), dtype=np.float32)
    spread = 1 / np.sqrt(np.arange(1, inner + 1))
    end = 0
    for size in r.multinomial(rows, r.dirichlet(np.full(clusters, 2.0))):
        center, axes = r.normal(size=dimension), r.normal(size=(inner, dimension)) / 2
        cloud = center + (r.normal(size=(size, inner)) * spread) @ axes + r.normal(size=(size, dimension)) / 50
        values[end : end + size] = cloud
        end += size
    return r.permutation(values)


TABLES = {"glove": Vectors("glove", glove, 25), "clustered": Vectors("clustered", clustered, 16)}


def prepared(name: str) -> Prepared:
    vectors = TABLES[name]
    folder = WORK / "vectors" / name
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(Prepared(vectors, part, part / "queries.arrow"))
        part.rename(folder)
    return Prepared(vectors, folder, folder / "queries.arrow")


def make(to: Prepared) -> None:
    values = to.vectors.values()
    held = np.zeros(len(values), dtype=bool)
    held[np.random.default_rng(17).choice(len(values), QUERIES, replace=False)] = True
    kept, queries = values[~held], values[held]
    rows = pa.table({"id": np.arange(len(kept), dtype=np.int64), COLUMN: listed(kept)})
    table = lance.write_dataset(rows, str(to.path), data_storage_version="2.2")
    truth = np.concatenate([exact(table, queries[at : at + AT_ONCE]) for at in range(0, QUERIES, AT_ONCE)])
    truth = pa.FixedSizeListArray.from_arrays(pa.array(truth.ravel()), K)
    asked = pa.table({"id": np.arange(QUERIES, dtype=np.int64), COLUMN: listed(queries), "truth": truth})
    with pa.OSFile(str(to.queries), "wb") as sink, pa.ipc.new_file(sink, asked.schema) as writer:
        writer.write_table(asked.combine_chunks())
    build = {"num_partitions": PARTITIONS, "num_sub_vectors": to.vectors.sub_vectors, "metric": "l2"}
    table.create_index(COLUMN, "IVF_PQ", name=f"{COLUMN}_idx", **build)
    table.create_scalar_index("id", "BTREE")


def listed(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def exact(table: lance.LanceDataset, queries: np.ndarray) -> np.ndarray:
    """Ids of the nearest rows of each query."""
    nearest = {"column": COLUMN, "q": queries, "k": K, "use_index": False}
    found = table.to_table(["id", "_distance"], nearest=nearest)
    found = found.sort_by([("query_index", "ascending"), ("_distance", "ascending")])
    return found["id"].to_numpy().reshape(len(queries), K)


def linked(table: Path, to: Path) -> None:
    """The same table at another place, for work that adds versions. Lance never changes a file, so they are shared."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(table, to, copy_function=os.link)
