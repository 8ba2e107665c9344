"""Real processes for the tests: one gateway and one Flink cluster for all, and more of them where a test asks."""

import re

import pytest

from harness import flink, paths
from harness.gateway import Gateway
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
def cluster(tmp_path_factory):
    """Flink far west of UTC, with two slots and the connector in `lib`. It dies and comes back in some tests."""
    work = tmp_path_factory.mktemp("flink")
    with flink.Cluster(work, jars=(paths.connector_jar(),), timezone="America/Los_Angeles") as cluster:
        yield cluster


@pytest.fixture
def session(cluster):
    with cluster.session() as session:
        yield session
