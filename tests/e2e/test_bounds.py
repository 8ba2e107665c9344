"""Large rows, slow and dead clients: the gateway stays up, in bounded memory, and says what is too much."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from harness.process import eventually, peak_until_quiet
from harness.rows import FLIGHT_ERRORS, numbers, refused

MIB = 1 << 20


def texts(count: int, size: int, seed: int = 1) -> pa.Table:
    """Rows of text that nothing compresses away."""
    noise = np.random.default_rng(seed).integers(33, 127, count * size, dtype=np.uint8)
    offsets = pa.py_buffer((np.arange(count + 1, dtype=np.int64) * size).tobytes())
    values = pa.Array.from_buffers(pa.large_string(), count, [None, offsets, pa.py_buffer(noise)])
    return pa.table({"id": np.arange(count, dtype=np.int64), "text": values})


def test_a_batch_of_64_mib_goes_in_and_rows_of_8_mib_come_out_with_default_clients(client, name):
    client.put(name, pa.table({"a": np.arange(8 * MIB, dtype=np.int64)}), chunk=8 * MIB)
    assert client.count(name) == 8 * MIB
    rows = texts(8, 8 * MIB)
    client.put(f"{name}_rows", rows, chunk=1)
    assert client.scan(f"{name}_rows") == rows


def test_a_row_above_the_limit_is_an_error_that_names_its_size_and_the_limit(start_gateway, connect, name):
    gateway = start_gateway(config={"scan": {"max-row-bytes": "1MiB", "batch-bytes": "512KiB"}})
    client = connect(gateway)
    client.put(name, texts(1, 3 * MIB))
    why, message = refused(client.scan, name)
    assert why == "ROW_TOO_LARGE"
    assert "1048576" in message or "1 MiB" in message or "1MiB" in message
    assert client.scan(name, projection={"columns": [{"path": ["id"]}]}).num_rows == 1


def test_three_gib_of_large_strings_in_one_fragment_are_read_in_bounded_memory(start_gateway, connect, name):
    gateway = start_gateway(config={"write": {"max-rows-per-file": 1_000_000, "max-bytes-per-file": "1TiB"}})
    client = connect(gateway)
    batch = texts(64, MIB)
    descriptor = flight.FlightDescriptor.for_path(name)
    writer, reader = client.flight.do_put(descriptor, batch.schema)
    with writer:
        for _ in range(3 * 1024 // 64):
            writer.write_table(batch, 8)
        writer.done_writing()
        while reader.read() is not None:
            pass
    assert client.describe(name).num_fragments == 1
    before = gateway.rss()
    peak = rows = 0
    for endpoint in client.plan(name).endpoints:
        for chunk in client.flight.do_get(endpoint.ticket):
            rows += chunk.data.num_rows
            peak = max(peak, gateway.rss())
    assert rows == 3 * 1024
    assert peak - before < 700 * MIB, f"{(peak - before) / MIB:.0f} MiB more than idle"


def test_a_client_that_reads_slowly_costs_bounded_memory(start_gateway, connect, name):
    gateway = start_gateway(config={"scan": {"send-buffer-bytes": "4MiB", "memory-bytes": "64MiB"}})
    client = connect(gateway)
    client.put(name, texts(256, MIB), chunk=16)
    before = gateway.rss()
    readers = [
        client.flight.do_get(endpoint.ticket)
        for _ in range(3)
        for endpoint in client.plan(name, split_bytes=str(1 << 40)).endpoints
    ]
    firsts = [reader.read_chunk() for reader in readers]
    assert len(firsts) == 3
    # What runs ahead of the readers has come to rest once memory no longer grows.
    highest = peak_until_quiet(gateway.rss, noise=MIB)
    assert highest - before < 3 * 120 * MIB, f"{(highest - before) / MIB:.0f} MiB for three slow readers"
    # They are slow and not dead: each gets all of its rows.
    assert [r.read_all().num_rows + f.data.num_rows for r, f in zip(readers, firsts, strict=True)] == [256] * 3


READER = """
import sys, pyarrow.flight as flight
client = flight.connect(sys.argv[1])
info = client.get_flight_info(flight.FlightDescriptor.for_path(sys.argv[2]))
reader = client.do_get(info.endpoints[0].ticket)
reader.read_chunk()
print("reading", flush=True)
sys.stdin.read()
"""


def reads_again(client, name: str) -> bool:
    """Whether there is a place for a scan."""
    with contextlib.suppress(*FLIGHT_ERRORS):
        return client.scan(name, limit="1").num_rows == 1
    return False


@contextlib.contextmanager
def reading(gateway, name: str):
    """Another process that takes one batch and then no more."""
    argv = [sys.executable, "-c", READER, gateway.uri, name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout.readline() == "reading\n"
            yield reader
        finally:
            reader.kill()


def test_a_client_killed_in_mid_scan_ends_the_scan_and_gives_its_place_back(start_gateway, connect, name):
    gateway = start_gateway(config={"scan": {"max-streams": 1}})
    client = connect(gateway)
    client.put(name, texts(256, MIB), chunk=16)
    with reading(gateway, name) as reader:
        assert refused(client.scan, name)[0] == "OVERLOADED"
        reader.kill()
        eventually(lambda: reads_again(client, name), 10, "a free place for a scan")


def test_clients_killed_in_mid_scan_give_their_memory_back(start_gateway, connect, name):
    gateway = start_gateway()
    client = connect(gateway)
    client.put(name, texts(256, MIB), chunk=16)
    for endpoint in client.plan(name).endpoints:
        assert sum(chunk.data.num_rows for chunk in client.flight.do_get(endpoint.ticket)) > 0
    before = gateway.rss()
    with contextlib.ExitStack() as readers:
        for _ in range(5):
            readers.enter_context(reading(gateway, name))
        # What runs ahead of them is there once memory no longer grows: then all of them are killed.
        peak_until_quiet(gateway.rss, noise=MIB)
        assert gateway.metric("lance_gateway_permits_used", pool="scans") == 5
    eventually(lambda: gateway.metric("lance_gateway_permits_used", pool="scans") == 0, 10, "the end of the scans")
    eventually(lambda: gateway.rss() < before + 64 * MIB, 30, "the memory of before")


def test_a_put_that_is_faster_than_the_store_costs_bounded_memory(start_gateway, connect, name):
    gateway = start_gateway(config={"http2": {"stream-window": "8MiB"}, "write": {"queue-bytes": "64MiB"}})
    # What a client may send ahead, what waits for the store, and Lance's pages of 8 MiB: for each of the two columns
    # one that fills and one that is written. A quarter more is for what the allocator keeps.
    bound = (8 + 64 + 2 * 2 * 8) * MIB * 5 // 4
    client = connect(gateway)
    batch = texts(8, MIB)
    client.put(f"{name}_warm", batch, chunk=1)
    before = peak = gateway.rss()
    writer, reader = client.flight.do_put(flight.FlightDescriptor.for_path(name), batch.schema)
    with writer:
        for _ in range(2 * 1024 // 8):
            writer.write_table(batch, 1)
            peak = max(peak, gateway.rss())
        writer.done_writing()
        while reader.read() is not None:
            pass
    assert client.count(name) == 2 * 1024
    assert peak - before < bound, f"{(peak - before) / MIB:.0f} MiB more than idle"


def test_a_stalled_client_is_ended_after_the_limit(start_gateway, connect, name):
    gateway = start_gateway(config={"scan": {"max-streams": 1, "write-stall-timeout": "1s"}})
    client = connect(gateway)
    client.put(name, texts(256, MIB), chunk=16)
    with reading(gateway, name) as reader:
        reader.send_signal(signal.SIGSTOP)
        eventually(lambda: reads_again(client, name), 15, "a free place for a scan")


def test_puts_that_send_nothing_end_after_the_idle_limit_and_the_next_one_works(start_gateway, connect, name):
    gateway = start_gateway(config={"write": {"max-streams": 20, "idle-timeout": "1s"}})
    client = connect(gateway)
    descriptor = flight.FlightDescriptor.for_path(name)
    idle = [client.flight.do_put(descriptor, numbers(0, 1).schema) for _ in range(20)]
    for writer, reader in idle:
        assert reader.read() is None  # the end, whose cause comes with the close
        assert refused(writer.close)[0] == "STREAM_IDLE"
    client.put(name, numbers(0, 5))
    assert client.count(name) == 5


def test_one_put_above_the_limit_is_told_to_come_back(start_gateway, connect, name):
    gateway = start_gateway(config={"write": {"max-streams": 2}})
    client = connect(gateway)
    descriptor = flight.FlightDescriptor.for_path(name)
    open_puts = [client.flight.do_put(descriptor, numbers(0, 1).schema)[0] for _ in range(2)]
    eventually(lambda: gateway.metric("lance_gateway_permits_used", pool="puts") == 2)
    assert refused(client.put, f"{name}_third", numbers(0, 1))[0] == "OVERLOADED"
    for writer in open_puts:
        writer.close()
    client.put(f"{name}_third", numbers(0, 1))


def test_bytes_that_are_no_grpc_do_no_harm(gateway, client, name):
    host, port = gateway.address.rsplit(":", 1)
    for junk in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"\x16\x03\x01" + bytes(500), b""):
        with socket.create_connection((host, int(port)), timeout=5) as s, contextlib.suppress(OSError):
            s.sendall(junk)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
    client.put(name, numbers(0, 1))
    assert client.count(name) == 1
