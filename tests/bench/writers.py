"""M8: commits beside Lance's own in process, a replay beside a commit, and memory over thousands of commits."""

import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import lance

from harness.gateway import Gateway
from harness.process import peak_until_quiet
from harness.rows import numbers
from harness.wire import Client

from . import report
from .rows import WORK, measure, serving

RUNS = 200
SINKS = 8
STEP, STEPS = 1_000, 5
# Commits between compactions.
ROUND = 200
# The least there may be, and full before the first mark: what grows behind it is no cache.
CACHES = {"cache": {"metadata-bytes": "1MiB", "index-bytes": "1MiB"}}


def commit() -> list[report.Line]:
    with serving() as gateway:
        m = measure(gateway, "commit", runs=RUNS)
    what = f"commit of one row, {RUNS} in a row"
    return [
        report.more("M8", what, m["gateway"], m["in_process"], 0.005),
        report.longer("M8", "replay of a known commit, beside the commit", m["replay"], m["gateway"], 1),
    ]


def sink(client: Client, write: bytes, epoch: str, seqs: range) -> None:
    for seq in seqs:
        staged = client.stage(write, numbers(seq, seq + 1))
        client.commit(client.prepare(epoch, seq, write, staged))


def memory() -> list[report.Line]:
    table = "bench_writers"
    resident = []
    with Gateway(WORK / "gateway", config=CACHES) as gateway, ExitStack() as stack:
        path = gateway.warehouse / f"{table}.lance"
        shutil.rmtree(path, ignore_errors=True)
        clients = [Client(gateway.address) for _ in range(SINKS)]
        for client in clients:
            stack.callback(client.close)
        writes = [client.begin(table, numbers(0, 1).schema).write for client in clients]
        epochs = [str(uuid.uuid4()) for _ in clients]
        for first in range(0, STEPS * STEP, ROUND):
            seqs = range(first // SINKS + 1, (first + ROUND) // SINKS + 1)
            with ThreadPoolExecutor(SINKS) as pool:
                list(pool.map(sink, clients, writes, epochs, [seqs] * SINKS))
            # As maintenance does beside the sinks of a table.
            lance.dataset(str(path)).optimize.compact_files()
            lance.dataset(str(path)).cleanup_old_versions(timedelta(0))
            if (first + ROUND) % STEP == 0:
                resident.append(peak_until_quiet(gateway.rss, noise=1 << 20) / (1 << 20))
        rows = clients[0].count(table)
    if rows != STEP * STEPS:
        raise AssertionError(f"{rows} rows after {STEP * STEPS} commits of one row")
    what = f"memory after {STEP * STEPS:,} commits beside {STEP:,}, {SINKS} sinks"
    ratio = resident[-1] / resident[0]
    return [report.Line("M8", what, resident[-1], resident[0], ratio, "<= 1.1", "MiB", {"ours": resident})]
