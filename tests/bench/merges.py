"""M10: merges of keys into a large and a small table, beside Lance in process."""

import shutil

import lance
import numpy as np
import pyarrow as pa

from . import report, vectors
from .rows import WORK, measure, serving_folder

KEYS = 10_000
SIZES = {"small": 100_000, "large": 10_000_000}
RUNS = 15


def prepared(name: str, rows: int):
    """A table with every other id, in any order, and an index on it; made once."""
    path = WORK / "merges" / f"{name}.lance"
    if not path.exists():
        part = path.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        ids = np.random.default_rng(3).permutation(rows).astype(np.int64) * 2
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
        words = pa.array(np.char.add("word ", (ids % 1000).astype(str)))
        table = pa.table({"id": ids, "word": words}, schema=schema)
        made = lance.write_dataset(
            table, str(part), max_rows_per_file=1_000_000, data_storage_version="2.2", enable_stable_row_ids=True
        )
        made.create_scalar_index("id", "BTREE")
        part.rename(path)
    return path


def merge() -> list[report.Line]:
    lines, commits = [], {}
    for name, rows in SIZES.items():
        made = prepared(name, rows)
        folder = WORK / "merging"
        for side in ("ours", "in_process"):
            vectors.linked(made, folder / f"{side}.lance")
        with serving_folder(folder) as gateway:
            m = measure(gateway, "merge", "ours", "in_process", "--rows", rows, "--keys", KEYS, runs=RUNS)
        commits[name] = m["commit"]
        rates = [[KEYS / time for time in m[side]] for side in ("gateway", "in_process")]
        what = f"merge of {KEYS:,} keys into {rows:,} rows, beside merge_insert"
        lines.append(report.rate("M10", what, *rates, 1, "rows/s"))
    what = f"commit of {KEYS:,} keys into {SIZES['large']:,} rows, over {SIZES['small']:,}"
    lines.append(report.longer("M10", what, commits["large"], commits["small"], 2))
    return lines
