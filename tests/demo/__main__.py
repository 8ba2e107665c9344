"""`make demo`: word vectors from a real Flink cluster through the gateway into a Lance table, and back again."""

import fcntl
import json
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.flight as flight

from harness import data, flink, paths
from harness.gateway import Gateway
from harness.process import eventually

from . import sql

WORK = paths.CACHE / "demo"
STEPS = 7


class Failed(RuntimeError):
    """A result is not what it must be."""


class Steps:
    """Numbers the steps and tells how long each took."""

    def __init__(self):
        self.number = 0
        self.start = self.begin = time.monotonic()

    def next(self, title: str) -> None:
        self.number += 1
        self.start = time.monotonic()
        print(f"\n[{self.number}/{STEPS}] {title}", flush=True)

    def done(self, text: str) -> None:
        print(f"  => {text}  ({time.monotonic() - self.start:.1f} s)", flush=True)


def show(text: str) -> None:
    print("\n".join("  | " + line for line in text.splitlines()), flush=True)


def expect(what: str, is_: object, should: object) -> None:
    if is_ != should:
        raise Failed(f"{what}: {is_} instead of {should}")


def watch(cluster: flink.Cluster, job: str) -> dict:
    """Waits for the job and tells how far it is."""
    live = sys.stdout.isatty()
    told = 0.0

    def finished():
        nonlocal told
        now = cluster.job(job)
        if now["state"] == "FAILED":
            raise Failed(cluster.job_error(job))
        if time.monotonic() - told >= (0.5 if live else 5.0):
            told = time.monotonic()
            counts = [v["metrics"][m] for v in now["vertices"] for m in ("read-records", "write-records")]
            print(f"  {now['state'].lower()}: {max(counts, default=0):,} rows", end="\r" if live else "\n", flush=True)
        return now if now["state"] == "FINISHED" else None

    return eventually(finished, 300, "the end of the job", every=0.2)


def run() -> None:
    steps = Steps()
    steps.next(f"Flink {flink.VERSION} and the GloVe vectors (downloads about 400 MB once)")
    home = flink.prepare()
    source = data.glove_csv()
    steps.done(f"{home.name} in {paths.CACHE}, {data.GLOVE_ROWS:,} words as CSV in {source.name}")

    shutil.rmtree(WORK, ignore_errors=True)
    with Gateway(WORK / "gateway", warehouse=WORK / "warehouse") as gateway:
        steps.next("the gateway, on a fresh warehouse")
        show(gateway.process.stdout().strip())
        cluster = flink.Cluster(WORK / "flink", jars=(paths.connector_jar(),))
        steps.next("a Flink cluster: one JobManager, one TaskManager with two slots")
        with cluster:
            steps.done(f"running; its web page is {cluster.rest}")
            with cluster.session() as session:
                write(steps, cluster, session, gateway)
                read(steps, session)
            by_other_doors(steps, gateway, cluster)
    print(f"\nDone in {time.monotonic() - steps.begin:.0f} s; everything is stopped. Where to look next:")
    print(f"  the table         {WORK}/warehouse/vectors.lance, an ordinary Lance table")
    print("  by hand           make up     leaves gateway and Flink running and opens Flink's SQL client")
    print("  first steps       README.md   Flink SQL, Python, Rust, lgw")
    print("  what is promised  docs/guarantees.md")


def write(steps: Steps, cluster: flink.Cluster, session: flink.Session, gateway: Gateway) -> None:
    steps.next("write: a streaming INSERT that checkpoints every second")
    for statement in (sql.words(), sql.vectors(gateway)):
        show(statement + ";")
        session.execute(statement)
    session.set("execution.runtime-mode", "streaming")
    session.set("execution.checkpointing.interval", "1s")
    show("SET 'execution.checkpointing.interval' = '1s';\n" + sql.INSERT + ";")
    job = session.submit(sql.INSERT)
    end = watch(cluster, job)
    running = (end["end-time"] - end["timestamps"]["RUNNING"]) / 1000
    cluster.checkpoints = cluster.get(f"/jobs/{job}/checkpoints")["counts"]["completed"]
    rate = data.GLOVE_ROWS / running
    steps.done(f"{data.GLOVE_ROWS:,} rows in {running:.1f} s: {rate:,.0f} rows/s, {cluster.checkpoints} checkpoints")


def read(steps: Steps, session: flink.Session) -> None:
    session.set("execution.runtime-mode", "batch")
    steps.next("read it back with Flink")
    show(sql.COUNT + ";")
    count = session.query(sql.COUNT)[0][0]
    steps.done(f"{count:,} rows")
    expect("rows that Flink counts", count, data.GLOVE_ROWS)
    show(sql.FILTER + ";")
    rows = session.query(sql.FILTER)
    for row in sorted(rows):
        print(f"     {row[0]:>6}  {row[1]:<8} {row[2]}")
    steps.done(f"{len(rows)} rows; the filter ran in the gateway")
    expect("filtered rows", len(rows), sql.FILTER_ROWS)


def by_other_doors(steps: Steps, gateway: Gateway, cluster: flink.Cluster) -> None:
    steps.next("the same table from plain pyarrow.flight")
    show(sql.PYTHON.format(uri=gateway.uri))
    client = flight.connect(gateway.uri)
    info = client.get_flight_info(flight.FlightDescriptor.for_path("vectors"))
    count = sum(client.do_get(e.ticket).read_all().num_rows for e in info.endpoints)
    steps.done(f"{count:,} rows")
    expect("rows that pyarrow.flight reads", count, data.GLOVE_ROWS)

    steps.next("its versions: one for each checkpoint that brought rows")

    def lgw(*args: str) -> str:
        argv = [str(paths.lgw_binary()), "--uri", gateway.uri, *args]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    show(f"lgw --uri {gateway.uri} versions vectors")
    print(lgw("versions", "vectors").rstrip())
    versions = json.loads(lgw("--output", "json", "versions", "vectors"))
    with_rows = [v for v in versions if int(v["num_rows"]) > 0]
    steps.done(f"{len(with_rows)} versions with rows after {cluster.checkpoints} checkpoints")
    if not 1 <= len(with_rows) <= cluster.checkpoints:
        raise Failed(f"{len(with_rows)} versions with rows for {cluster.checkpoints} checkpoints")


def main() -> int:
    def interrupted(*_):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with open(paths.CACHE / "demo.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another `make demo` is running in this checkout", file=sys.stderr)
            return 1
        try:
            run()
        except KeyboardInterrupt:
            print("\ninterrupted: gateway and Flink are stopped", file=sys.stderr)
            return 130
        except (Failed, flink.FlinkError, subprocess.CalledProcessError, OSError, RuntimeError) as e:
            print(f"\nthe demo failed: {e}\nlogs: {WORK}/gateway, {WORK}/flink/log", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
