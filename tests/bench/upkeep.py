"""10,000 commits with the policy on: how far fragments and versions grow, and what a commit costs at the end."""

import os
import tempfile
import time
from pathlib import Path

from harness.gateway import Gateway
from harness.rows import numbers
from harness.wire import Client, write_pb2

from . import report
from .rows import WORK

COMMITS = int(os.environ.get("COMMITS", "10000"))
# In memory where that can be had: a file system that has just deleted thousands of files is slow to make new ones.
MEMORY = Path("/dev/shm")
RULES = {"interval": "1s", "compact-fragments": 50, "keep-versions": 100}


def run() -> list[report.Line]:
    times, fragments, versions = [], [], []
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else WORK) as warehouse,
        Gateway(WORK / "upkeep", warehouse=warehouse, config={"maintenance": RULES}) as gateway,
    ):
        client = Client(gateway.address)
        begun = client.begin("upkeep", numbers(0, 1).schema)
        for n in range(COMMITS):
            staged = client.stage(begun.write, numbers(n * 10, n * 10 + 10))
            committable = client.prepare("5f0c1e0e-7f5f-4f0e-9d52-6a0f0f1f0001", n + 1, begun.write, staged)
            begin = time.monotonic()
            answer: write_pb2.CommitResponse = client.commit(committable)
            times.append(time.monotonic() - begin)
            assert not answer.already_committed
            if n % 100 == 99:
                fragments.append(client.describe("upkeep").num_fragments)
                versions.append(len(client.versions("upkeep")))
        assert client.count("upkeep") == COMMITS * 10
        client.close()
    tenth = max(1, COMMITS // 10)
    return [
        report.longer("M9", "the last tenth of the commits over the first", times[-tenth:], times[:tenth], 1.3),
        report.plain("M9", f"fragments beside {COMMITS} commits", fragments, "", "fragments"),
        report.plain("M9", f"versions beside {COMMITS} commits", versions, "", "versions"),
    ]
