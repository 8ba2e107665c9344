"""M3 and M4: rows per second of real Flink jobs, by the cluster's own clock, beside its floor: the same rows from the
fastest source into `blackhole`.

Another connector's jar runs beside ours with
  make bench BENCH=flink CONNECTOR_JAR=/path/to.jar CONNECTOR_WITH="'connector'='other','path'='{path}'"
where {path} becomes a path of its own for each table.
"""

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

from harness import data, flink, paths
from harness.gateway import Gateway

from . import report
from .rows import WORK, warehouse

RUNS = 5
# The JIT compiler is busy for that many rounds of jobs.
WARM_UP = 2
TABLES = {
    "synthetic": "i1 INT, i2 INT, i3 INT, i4 INT, d1 DOUBLE, d2 DOUBLE, s STRING, ts TIMESTAMP(6)",
    "glove": "id BIGINT, word STRING, embedding ARRAY<FLOAT>",
}
ROWS = {"synthetic": 10_000_000, "glove": data.GLOVE_ROWS}


def source_jar() -> Path:
    """The `bench` source, compiled with javac alone."""
    jar = paths.TARGET / "bench" / "bench-source.jar"
    sources = paths.ROOT / "tests" / "flink" / "src"
    classes = jar.with_suffix("")
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    path = ":".join(str(p) for p in (flink.prepare() / "lib").glob("*.jar"))
    files = [str(p) for p in sources.rglob("*.java")]
    subprocess.run(["javac", "-nowarn", "--release", "11", "-cp", path, "-d", str(classes), *files], check=True)
    shutil.copytree(sources / "META-INF", classes / "META-INF")
    subprocess.run(["jar", "cf", str(jar), "-C", str(classes), "."], check=True)
    return jar


class Side:
    """A connector, its cluster and a session on it."""

    def __init__(self, cluster: flink.Cluster, parallelism: int):
        self.cluster = cluster
        self.session = cluster.session()
        self.session.set("execution.runtime-mode", "batch")
        self.session.set("parallelism.default", str(parallelism))
        self.memory: list[float] = []

    def declare(self, table: str, columns: str, options: str) -> None:
        self.session.execute(f"DROP TABLE IF EXISTS {table}")
        self.session.execute(f"CREATE TABLE {table} ({columns}) WITH ({options})")

    def declare_ends(self, name: str) -> None:
        """The fastest source and the fastest sink."""
        source = f"'connector' = 'bench', 'dir' = '{data.column_files(name)}', 'rows' = '{ROWS[name]}'"
        self.declare("src", TABLES[name], source)
        self.declare("hole", TABLES[name], "'connector' = 'blackhole'")

    def rate(self, name: str, sink: str, source: str) -> float:
        """Rows per second by the JobManager's clock."""
        job = self.session.insert(f"INSERT INTO {sink} SELECT * FROM {source}", within=900)
        self.memory.append(self.cluster.taskmanager.rss() / (1 << 20))
        return ROWS[name] / (job["end-time"] - job["start-time"]) * 1000


def compare(name: str, parallelism: int, gateway: Gateway, ours: Side, other: Side | None) -> list[report.Line]:
    """Floor, scan and insert, alternately."""
    at_gateway = f"'gateway.uri' = '{gateway.uri}'"
    stored = f"'connector' = 'lance', 'path' = '{name}', {at_gateway}"
    new = f"'connector' = 'lance', 'path' = 'flink_insert', {at_gateway}"
    ours.declare_ends(name)
    ours.declare("kept", TABLES[name], stored)
    ours.declare("written", TABLES[name], new)
    rates: dict[str, list[float]] = {"floor": [], "scan": [], "insert": [], "other scan": [], "other insert": []}
    for run in range(WARM_UP + RUNS):
        now = {
            "floor": ours.rate(name, "hole", "src"),
            "scan": ours.rate(name, "hole", "kept"),
            "insert": ours.rate(name, "written", "src"),
        }
        drop(gateway, "flink_insert")
        if other:
            path = WORK / "other" / name
            shutil.rmtree(path, ignore_errors=True)
            other.declare_ends(name)
            other.declare("written", TABLES[name], os.environ["CONNECTOR_WITH"].replace("{path}", str(path)))
            now["other insert"] = other.rate(name, "written", "src")
            now["other scan"] = other.rate(name, "hole", "written")
        if run >= WARM_UP:
            for what, rate in now.items():
                rates[what].append(rate)
    goals = {"scan": 0.5, "insert": 0.4} if name == "synthetic" else {}
    return [
        report.rate(
            metric, f"Flink {what} {name}, p{parallelism}", rates[what], rates["floor"], goals.get(what), "rows/s"
        )
        for metric, what in (("M3", "scan"), ("M4", "insert"), ("M3", "other scan"), ("M4", "other insert"))
        if rates[what]
    ]


def drop(gateway: Gateway, name: str) -> None:
    lgw = [str(paths.lgw_binary()), "--uri", gateway.uri, "drop", name, "--yes", "--quiet"]
    subprocess.run(lgw, check=True, stdout=subprocess.DEVNULL)


def run() -> list[report.Line]:
    source = source_jar()
    heap = int(os.environ.get("BENCH_HEAP_MB", "2048"))
    wanted = os.environ.get("BENCH_TABLES", "synthetic,glove").split(",")
    lines, memory = [], []
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(WORK / "gateway", warehouse=warehouse(*wanted)))
        clusters = [flink.Cluster(WORK / "flink", jars=(source, paths.connector_jar()), heap_mb=heap)]
        if jar := os.environ.get("CONNECTOR_JAR"):
            # On a cluster of its own: two connectors may have the same name.
            clusters.append(flink.Cluster(WORK / "flink-other", jars=(source, Path(jar).resolve()), heap_mb=heap))
        for cluster in clusters:
            stack.enter_context(cluster)
        for name in wanted:
            for parallelism in (1, 2):
                sides = [Side(cluster, parallelism) for cluster in clusters]
                lines += compare(name, parallelism, gateway, sides[0], sides[1] if len(sides) > 1 else None)
                memory += sides[0].memory
    half = len(memory) // 2
    growth = max(memory[half:]) - max(memory[:half])
    what = f"TaskManager memory, growth from the first {half} jobs to the last {len(memory) - half}"
    lines.append(report.Line("M3", what, growth, None, None, "flat", "MiB", {"ours": memory}))
    return lines
