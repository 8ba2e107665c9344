"""Signals in the middle of work, and what the outside sees of the gateway's life."""

import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from harness.process import eventually
from harness.rows import numbers
from harness.wire import Client, reason, status_service_pb2


def test_it_is_live_and_ready_and_counts_what_it_does(gateway, client, name):
    assert gateway.admin_get("/live")[0] == 200
    assert gateway.admin_get("/ready")[0] == 200
    client.put(name, numbers(0, 10))
    status, page = gateway.admin_get("/metrics")
    assert status == 200
    assert "# TYPE" in page
    assert gateway.metric("lance_gateway_rows_staged_total") >= 10
    told = client.status.GetStatus(status_service_pb2.GetStatusRequest())
    assert told.state == status_service_pb2.GATEWAY_STATE_SERVING
    assert told.version and told.lance_version.startswith("14.")
    assert told.limits.max_message_bytes >= 64 << 20


def test_tcp_and_unix_socket_serve_the_same_tables(start_gateway, connect, tmp_path, name):
    socket = tmp_path / "gateway.sock"
    gateway = start_gateway(listen=("127.0.0.1:0", f"unix:{socket}"))
    connect(gateway).put(name, numbers(0, 10))
    # By default gRPC names the socket's path as the host, escaped in a way that HTTP/2 servers in Rust refuse.
    options = [("grpc.default_authority", "localhost")]
    over_socket = flight.connect(f"grpc+unix://{socket}", generic_options=options)
    info = over_socket.get_flight_info(flight.FlightDescriptor.for_path(name))
    assert over_socket.do_get(info.endpoints[0].ticket).read_all() == numbers(0, 10)
    over_socket.close()


def test_sigterm_during_a_put_lets_it_finish(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    writer, reader = client.flight.do_put(flight.FlightDescriptor.for_path(name), numbers(0, 1).schema)
    writer.write_table(numbers(0, 1000))
    eventually(lambda: gateway.metric("lance_gateway_permits_used", pool="puts") == 1)
    gateway.process.popen.send_signal(signal.SIGTERM)
    eventually(lambda: gateway.admin_get("/ready")[0] == 503, 10, "readiness gone")
    writer.write_table(numbers(1000, 2000))
    writer.done_writing()
    while reader.read() is not None:
        pass
    writer.close()
    assert gateway.process.popen.wait(30) == 0
    assert connect(gateway.restart()).scan(name).sort_by("id") == numbers(0, 2000)


def test_sigterm_during_a_scan_lets_it_finish(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    rows = pa.table({"id": np.arange(16_000_000)})
    client.put(name, rows, chunk=1_000_000)
    (endpoint,) = client.plan(name, split_bytes=str(1 << 40)).endpoints
    reader = client.flight.do_get(endpoint.ticket)
    first = reader.read_chunk().data
    gateway.process.popen.send_signal(signal.SIGTERM)
    eventually(lambda: gateway.admin_get("/ready")[0] == 503, 10, "readiness gone")
    assert first.num_rows + reader.read_all().num_rows == rows.num_rows
    assert gateway.process.popen.wait(30) == 0


def test_new_work_is_refused_while_it_drains(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    client.put(name, numbers(0, 10))
    writer, _ = client.flight.do_put(flight.FlightDescriptor.for_path(name), numbers(0, 1).schema)
    writer.write_table(numbers(0, 1))
    eventually(lambda: gateway.metric("lance_gateway_permits_used", pool="puts") == 1)
    gateway.process.popen.send_signal(signal.SIGTERM)
    eventually(lambda: gateway.admin_get("/ready")[0] == 503, 10, "readiness gone")
    with pytest.raises(grpc.RpcError) as caught:
        client.count(name)
    assert reason(caught.value) == "DRAINING"
    writer.close()
    assert gateway.process.popen.wait(30) == 0


def test_sigterm_during_commits_leaves_each_done_or_resolvable(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    begun = client.begin(name, numbers(0, 1).schema)
    epoch = str(uuid.uuid4())
    sealed = [
        client.prepare(epoch, seq, begun.write, client.stage(begun.write, numbers(seq * 10, seq * 10 + 10)))
        for seq in range(1, 41)
    ]
    answered = []
    started = threading.Event()

    def commit(committable: bytes) -> None:
        try:
            client.commit(committable)
            answered.append(committable)
        except grpc.RpcError:
            pass  # whoever asks again after the restart learns how it ended
        started.set()

    with ThreadPoolExecutor(8) as pool:
        work = [pool.submit(commit, c) for c in sealed]
        started.wait(30)
        assert gateway.stop() == 0
        for w in work:
            w.result()

    client = connect(gateway.restart())
    again = {c: client.commit(c) for c in sealed}
    assert all(again[c].already_committed for c in answered)
    assert client.count(name) == 400
    assert len({a.version for a in again.values()}) == 40


def test_clients_that_stay_connected_do_not_keep_it_alive(start_gateway):
    gateway = start_gateway()
    idle = [Client(gateway.address) for _ in range(5)]
    for client in idle:
        client.status.GetStatus(status_service_pb2.GetStatusRequest())
    assert gateway.stop(within=20) == 0
    for client in idle:
        client.close()
