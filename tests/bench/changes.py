"""The change feed beside a plain scan, and upserts that go on for half an hour."""

import shutil
import time

import numpy as np
import pyarrow as pa

from harness.gateway import Gateway
from harness.process import peak_until_quiet
from harness.wire import Client, epoch, write_pb2

from . import report
from .rows import WORK

RUNS = 9
KEYED = {"primary_key": ["id"]}
# Ten versions.
APPENDED, VERSIONS = 100_000, 10

SECONDS, WINDOW = 1_800, 300
# How often a checkpoint ends, and what it changes of how many rows.
EVERY, KEYS, ROWS = 1.0, 10_000, 1_000_000
POLICY = {"interval": "10s", "compact-fragments": 20, "keep-versions": 100, "optimize-rows": 100_000}


def rows(ids: np.ndarray, word: str) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
    words = pa.array(np.char.add(f"{word} ", ids.astype(str)))
    return pa.table({"id": ids.astype(np.int64), "word": words}, schema=schema)


def timed(client: Client, table: str, **request: object) -> tuple[float, int]:
    """Seconds, and rows."""
    start = time.perf_counter()
    found = client.scan(table, **request)
    return time.perf_counter() - start, found.num_rows


def feed() -> list[report.Line]:
    folder = WORK / "feed"
    shutil.rmtree(folder, ignore_errors=True)
    with Gateway(WORK / "gateway", warehouse=folder) as gateway:
        client = Client(gateway.address)
        client.merge("t", rows(np.arange(0), "none"), create=KEYED)
        for n in range(VERSIONS):
            client.put("t", rows(np.arange(n * APPENDED, (n + 1) * APPENDED), "new"))
        appended = client.describe("t").version
        client.merge("t", rows(np.arange(0, APPENDED * VERSIONS, 2), "updated"))
        spans = {
            "inserts": {"after": {"version": "1"}, "to": {"version": str(appended)}},
            "updates": {"after": {"version": str(appended)}},
        }
        rates: dict[str, list[float]] = {"scan": [], **{name: [] for name in spans}}
        for run in range(RUNS + 1):
            requests: dict[str, dict] = {name: {"changes": span} for name, span in spans.items()}
            requests["scan"] = {"version": {"version": str(appended)}}
            for name, request in requests.items():
                seconds, found = timed(client, "t", **request)
                if run > 0:
                    rates[name].append(found / seconds)
        client.close()
    lines = []
    for name in spans:
        what = f"change feed of {APPENDED * VERSIONS:,} {name}, beside a scan"
        lines.append(report.rate("M10", what, rates[name], rates["scan"], None, "rows/s"))
    return lines


def percentile(times: list[float], percent: float) -> float:
    return float(np.percentile(times, percent))


def sustained() -> list[report.Line]:
    folder = WORK / "sustained"
    shutil.rmtree(folder, ignore_errors=True)
    chance = np.random.default_rng(5)
    commits: list[tuple[float, float]] = []
    resident = []
    with Gateway(WORK / "gateway", warehouse=folder, config={"maintenance": POLICY}) as gateway:
        client = Client(gateway.address)
        client.merge("t", rows(np.arange(ROWS), "first"), create=KEYED)
        write = client.begin("t", mode=write_pb2.WRITE_MODE_MERGE).write
        run, seq, begun = epoch(), 0, time.monotonic()
        while (now := time.monotonic() - begun) < SECONDS:
            seq += 1
            ids = chance.choice(ROWS + KEYS * seq // 10, KEYS, replace=False)
            committable = client.prepare(run, seq, write, client.stage(write, changed(ids, seq)))
            start = time.perf_counter()
            client.commit(committable)
            commits.append((now, time.perf_counter() - start))
            if seq % 60 == 0:
                resident.append(gateway.rss() / (1 << 20))
                print(f"  {now:5.0f} s: {seq} commits, {resident[-1]:.0f} MiB, last {commits[-1][1]:.3f} s", flush=True)
            time.sleep(max(0.0, begun + seq * EVERY - time.monotonic()))
        resident.append(peak_until_quiet(gateway.rss, noise=1 << 20) / (1 << 20))
        client.close()
    first = [seconds for at, seconds in commits if at < WINDOW]
    last = [seconds for at, seconds in commits if at >= SECONDS - WINDOW]
    p99 = [percentile(times, 99) for times in (last, first)]
    p50 = [percentile(times, 50) for times in (last, first)]
    what = f"commit of {KEYS:,} keys, last {WINDOW // 60} minutes of {SECONDS // 60} beside the first"
    half = len(resident) // 2
    return [
        report.longer("M10", f"{what}, p99", [p99[0]], [p99[1]], 1.5),
        report.longer("M10", f"{what}, median", [p50[0]], [p50[1]], 1.5),
        report.plain("M10", f"commits in {SECONDS // 60} minutes", [float(len(commits))], "", "commits"),
        report.Line(
            "M10",
            "memory in the second half beside the first, most",
            max(resident[half:]),
            max(resident[:half]),
            max(resident[half:]) / max(resident[:half]),
            "<= 1.1",
            "MiB",
            {"ours": resident},
        ),
    ]


def changed(ids: np.ndarray, seq: int) -> pa.Table:
    kind = pa.field("_change_kind", pa.int8(), nullable=False)
    return rows(ids, f"of {seq}").append_column(kind, pa.array(np.full(len(ids), 2, np.int8)))
