"""M3 and M4: rows per second of real Flink jobs, by the cluster's own clock, beside its floor: the same rows from the
fastest source into `blackhole`.

Another connector's jar runs beside ours with
  make bench BENCH=flink CONNECTOR_JAR=/path/to.jar CONNECTOR_WITH="'connector'='other','path'='{path}'"
where {path} becomes a path of its own for each table.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import data, flink, paths
from harness.gateway import Gateway

from . import report
from .rows import WORK, warehouse

RUNS = 5
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


class Bench:
    """One cluster and the jobs on it."""

    def __init__(self, cluster: flink.Cluster, gateway: Gateway):
        self.cluster = cluster
        self.gateway = gateway
        self.memory: list[float] = []
        self.other = os.environ.get("CONNECTOR_WITH", "")

    def seconds(self, session: flink.Session, sql: str) -> float:
        """Of the job, as the JobManager saw it."""
        job = session.insert(sql, within=900)
        self.memory.append(self.cluster.taskmanager.rss() / (1 << 20))
        return (job["end-time"] - job["start-time"]) / 1000

    def ours(self, table: str, name: str, columns: str) -> str:
        path = f"{self.gateway.warehouse}/{name}.lance"
        return (
            f"CREATE TABLE {table} ({columns}) WITH "
            f"('connector' = 'lance', 'path' = '{path}', 'gateway.uri' = '{self.gateway.uri}')"
        )

    def theirs(self, table: str, path: Path, columns: str) -> str:
        return f"CREATE TABLE {table} ({columns}) WITH ({self.other.replace('{path}', str(path))})"

    def table(self, name: str, parallelism: int) -> list[report.Line]:
        columns, rows = TABLES[name], ROWS[name]
        with self.cluster.session() as session:
            session.set("execution.runtime-mode", "batch")
            session.set("parallelism.default", str(parallelism))
            session.execute(
                f"CREATE TABLE src ({columns}) WITH "
                f"('connector' = 'bench', 'dir' = '{data.column_files(name)}', 'rows' = '{rows}')"
            )
            session.execute(f"CREATE TABLE hole ({columns}) WITH ('connector' = 'blackhole')")
            session.execute(self.ours("stored", name, columns))
            times: dict[str, list[float]] = {"floor": [], "scan": [], "insert": []}
            if self.other:
                times |= {"their insert": [], "their scan": []}
            for run in range(RUNS + 1):
                now = {
                    "floor": self.seconds(session, "INSERT INTO hole SELECT * FROM src"),
                    "scan": self.seconds(session, "INSERT INTO hole SELECT * FROM stored"),
                    "insert": self.insert(session, self.ours(f"new{run}", "flink_insert", columns), f"new{run}"),
                }
                self.drop("flink_insert")
                if self.other:
                    path = WORK / "theirs" / name
                    shutil.rmtree(path, ignore_errors=True)
                    now["their insert"] = self.insert(session, self.theirs(f"their{run}", path, columns), f"their{run}")
                    now["their scan"] = self.seconds(session, f"INSERT INTO hole SELECT * FROM their{run}")
                if run:  # the first run warms the JVM
                    for what, time in now.items():
                        times[what].append(time)
        rates = {what: [rows / t for t in ts] for what, ts in times.items()}
        label = f"{name}, p{parallelism}"
        lines = [
            line("M3", f"Flink scan {label}", rates["scan"], rates["floor"], 0.5 if name == "synthetic" else None),
            line("M4", f"Flink insert {label}", rates["insert"], rates["floor"], 0.4 if name == "synthetic" else None),
        ]
        if self.other:
            lines.append(line("M3", f"other scan {label}", rates["their scan"], rates["floor"], None))
            lines.append(line("M4", f"other insert {label}", rates["their insert"], rates["floor"], None))
        return lines

    def insert(self, session: flink.Session, create: str, table: str) -> float:
        session.execute(create)
        return self.seconds(session, f"INSERT INTO {table} SELECT * FROM src")

    def drop(self, name: str) -> None:
        lgw = [str(paths.lgw_binary()), "--uri", self.gateway.uri, "drop", name, "--yes", "--quiet"]
        subprocess.run(lgw, check=True, stdout=subprocess.DEVNULL)


def line(metric: str, what: str, ours: list[float], floor: list[float], goal: float | None) -> report.Line:
    """Ratio of rows per second."""
    o, f = report.median(ours), report.median(floor)
    text = f">= {goal}" if goal else ""
    return report.Line(metric, what, o, f, o / f, text, "rows/s", {"ours": ours, "reference": floor})


def run() -> list[report.Line]:
    jars = [source_jar(), paths.connector_jar()]
    if other := os.environ.get("CONNECTOR_JAR"):
        jars.append(Path(other).resolve())
    wanted = re.split(r"[,\s]+", os.environ.get("BENCH_TABLES", "synthetic glove"))
    lines = []
    with Gateway(WORK / "gateway", warehouse=warehouse(*wanted)) as gateway:
        work = WORK / "flink"
        with flink.Cluster(work, jars=tuple(jars), heap=os.environ.get("BENCH_HEAP", "2048m")) as cluster:
            bench = Bench(cluster, gateway)
            for name in wanted:
                for parallelism in (1, 2):
                    lines += bench.table(name, parallelism)
            half = len(bench.memory) // 2
            growth = max(bench.memory[half:]) - max(bench.memory[:half])
            what = f"TaskManager memory, growth from the first {half} jobs to the last"
            lines.append(report.Line("M3", what, growth, None, None, "flat", "MiB", {"ours": bench.memory}))
    return lines
