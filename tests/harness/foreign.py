"""A writer that knows nothing of the gateway: commits rows with Lance alone, one version each.

Usage: python -m harness.foreign append|overwrite TABLE_PATH FIRST_ID COUNT
"""

import contextlib
import sys
from pathlib import Path

import lance
import pyarrow as pa

from . import paths
from .process import Process

RETRIES = 1000


def start(mode: str, path: Path, first: int, count: int, log: Path) -> Process:
    """In a process of its own, from `first` on."""
    argv = [sys.executable, "-m", "harness.foreign", mode, path, str(first), str(count)]
    return Process(argv, log, env={"PYTHONPATH": str(paths.ROOT / "tests")})


def main() -> None:
    mode, path, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for n in range(first, first + count):
        rows = pa.table({"id": pa.array([n], pa.int64()), "word": [f"w{n}"]})
        if mode == "append":
            # It may lose more races than Lance tries by itself.
            fragments = lance.fragment.write_fragments(rows, path, mode=mode)
            operation = lance.LanceOperation.Append(fragments)
            lance.LanceDataset.commit(path, operation, lance.dataset(path).version, max_retries=RETRIES)
        else:
            # Of two that overwrite at once, one loses.
            with contextlib.suppress(OSError):
                lance.write_dataset(rows, path, mode=mode)


if __name__ == "__main__":
    main()
