"""Rows over Flight beside Lance in process: M1 scan, M2 put, M13 first batch, M14 Unix socket; M12 start."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import lance
import pyarrow as pa

from harness import data, paths
from harness.gateway import Gateway
from harness.process import eventually

from . import report

WORK = paths.CACHE / "bench"
RUNS = 15


def warehouse(*tables: str) -> Path:
    """A folder with these tables, compact, as one writer makes them."""
    folder = WORK / "warehouse"
    for name in tables:
        path = folder / f"{name}.lance"
        if not path.exists():
            part = path.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            with pa.memory_map(str(data.arrow_file(name))) as file:
                rows = pa.ipc.open_file(file).read_all()
                lance.write_dataset(rows, str(part), max_rows_per_file=1_000_000, data_storage_version="2.2")
            part.rename(path)
    return folder


def serving(*tables: str) -> AbstractContextManager[Gateway]:
    return serving_folder(warehouse(*tables))


@contextmanager
def serving_folder(warehouse: Path) -> Iterator[Gateway]:
    socket = WORK / "gateway.sock"
    WORK.mkdir(parents=True, exist_ok=True)
    with Gateway(WORK / "gateway", warehouse=warehouse, listen=("127.0.0.1:0", f"unix:{socket}")) as gateway:
        gateway.socket_uri = f"grpc+unix://{socket}"
        yield gateway


def measure(gateway: Gateway, *args: object, runs: int = RUNS) -> dict:
    argv = [paths.built("gateway-bench"), "--uri", gateway.uri, "--warehouse", gateway.warehouse, "--runs", str(runs)]
    out = subprocess.run([str(a) for a in (*argv, *args)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def scan() -> list[report.Line]:
    lines = []
    with serving(*data.TABLES) as gateway:
        for name in data.TABLES:
            m = measure(gateway, "scan", name, "--also", gateway.socket_uri)
            m["in_process"] = min(m["in_process"], key=report.median)
            lines.append(report.faster("M1", f"scan {name}, TCP", m["gateway"], m["in_process"], 0.6))
            lines.append(report.faster("M1", f"scan {name}, Unix socket", m["also"], m["in_process"], 0.6))
            lines.append(report.faster("M14", f"scan {name}, Unix socket over TCP", m["also"], m["gateway"], None))
    return lines


def put() -> list[report.Line]:
    lines = []
    with serving() as gateway:
        for name in data.TABLES:
            m = measure(gateway, "put", str(data.arrow_file(name)), runs=5)
            lines.append(report.faster("M2", f"put {name}", m["gateway"], m["in_process"], 0.6))
    return lines


def first() -> list[report.Line]:
    lines = []
    with serving("glove", "synthetic") as gateway:
        for name in ("glove", "synthetic"):
            m = measure(gateway, "first", name, runs=21)
            lines.append(report.longer("M13", f"first batch of {name}", m["gateway"], m["in_process"], 1.2))
    return lines


def start() -> list[report.Line]:
    times, memory = [], []
    for _ in range(RUNS):
        gateway = Gateway(WORK / "start")
        begin = time.monotonic()
        gateway.start()
        times.append(time.monotonic() - begin)
        eventually(lambda g=gateway: g.admin_get("/ready")[0] == 200)
        memory.append(gateway.rss() / (1 << 20))
        gateway.stop()
    return [
        report.plain("M12", "start to serving", times, "< 1", "s"),
        report.plain("M12", "idle memory", memory, "< 60", "MiB"),
    ]
