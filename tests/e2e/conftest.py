"""Real processes for the tests: one gateway and one Flink cluster for all, and more of them where a test asks."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from harness import flink, paths
from harness.gateway import Gateway
from harness.inbox import COLUMNS, Inbox
from harness.s3 import S3Server
from harness.wire import Client


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    """The gateway that most tests share; each uses tables of its own."""
    with Gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def client(gateway):
    client = Client(gateway.address)
    yield client
    client.close()


@pytest.fixture
def name(request):
    """The name of a table that no other test uses."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", request.node.name)[:100]


@pytest.fixture
def start_gateway(tmp_path):
    """Starts gateways of a test's own; they end with it."""
    started = []

    def start(**options) -> Gateway:
        gateway = Gateway(tmp_path / f"gateway-{len(started)}", **options)
        started.append(gateway)
        return gateway.start()

    yield start
    for gateway in started:
        if gateway.process:
            gateway.kill()


@pytest.fixture
def connect():
    """Clients that are closed with the test."""
    clients = []

    def connect(gateway: Gateway, storage: dict[str, str] | None = None) -> Client:
        clients.append(Client(gateway.address, storage))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """The S3 server that the tests share."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Flink far west of UTC, with two slots and the connector in `lib`. It dies and comes back in some tests."""
    work = tmp_path_factory.mktemp("flink")
    with flink.Cluster(work, jars=(paths.connector_jar(),), timezone="America/Los_Angeles") as cluster:
        yield cluster


@pytest.fixture
def session(cluster):
    with cluster.session() as session:
        yield session


# Jobs.


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def declare(session, gateway, name):
    """Declares the test's Lance table in Flink, or that of another path."""

    def declare(
        columns: str = COLUMNS, alias: str = "t", at: Gateway = gateway, path: str | Path = name, **options: str
    ) -> str:
        more = "".join(f", '{k.replace('__', '.').replace('_', '-')}' = '{v}'" for k, v in options.items())
        session.execute(
            f"CREATE TABLE {alias} ({columns}) "
            f"WITH ('connector' = 'lance', 'path' = '{path}', 'gateway.uri' = '{at.uri}'{more})"
        )
        return alias

    return declare


@pytest.fixture
def streaming(session):
    """Checkpoints come when the test says so; a job that fails starts again at once."""
    session.set("execution.runtime-mode", "streaming")
    session.set("execution.checkpointing.interval", "1 h")
    session.set("restart-strategy.type", "fixed-delay")
    session.set("restart-strategy.fixed-delay.attempts", "1000")
    session.set("restart-strategy.fixed-delay.delay", "200 ms")


@pytest.fixture
def batch(session):
    session.set("execution.runtime-mode", "batch")


@pytest.fixture
def submit(cluster, session):
    """Starts jobs, and ends them with the test."""
    jobs = []

    def submit(sql: str, running: bool = True) -> str:
        jobs.append(session.submit(sql))
        if running:
            cluster.wait(jobs[-1], state="RUNNING")
        return jobs[-1]

    yield submit
    for job in jobs:
        # A JobManager that was started anew does not know the jobs of the one before.
        with suppress(flink.FlinkError):
            if cluster.job(job)["state"] not in ("FINISHED", "FAILED", "CANCELED"):
                cluster.cancel(job)
