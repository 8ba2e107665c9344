"""The warehouse on a real S3 server: every checkpoint becomes visible once, whatever dies."""

import base64
import json
import threading
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import lance
import pytest

from harness import lgw as command
from harness.inbox import COLUMNS, Inbox, rows_in
from harness.process import eventually
from harness.racy_s3 import RacyS3
from harness.rows import numbers, refused
from harness.s3 import KEY, REGION, SECRET, S3Server
from harness.wire import epoch, jobs_pb2, reason, table, tables_pb2, write_pb2

PREFIX = "warehouse"
ROLE = "arn:aws:iam::123456789012:role/tables"


@pytest.fixture
def start_on(start_gateway):
    """Starts a gateway whose warehouse is on a server."""

    def start(server: S3Server, storage: dict | None = None, **more):
        config = {"storage": {"options": server.options()} if storage is None else storage}
        return start_gateway(warehouse=f"s3://{server.BUCKET}/{PREFIX}", config=config, **more)

    return start


@pytest.fixture
def gateway(s3, start_on):
    return start_on(s3)


@pytest.fixture
def client(gateway, connect):
    return connect(gateway)


def prepared(client, name: str, start: int = 0, stop: int = 10, run: str | None = None, seq: int = 1) -> bytes:
    """A committable of some rows; the table is created if it is missing."""
    begun = client.begin(name, numbers(0, 1).schema)
    return client.prepare(run or epoch(), seq, begun.write, client.stage(begun.write, numbers(start, stop)))


def test_rows_go_in_and_come_out_and_a_replay_changes_nothing(client, s3, name):
    begun = client.begin(name, numbers(0, 1).schema)
    assert begun.created
    committable = client.prepare(epoch(), 1, begun.write, client.stage(begun.write, numbers(0, 1000)))
    assert client.count(name) == 0
    version = client.commit(committable).version
    again = client.commit(committable)
    assert (again.already_committed, again.version) == (True, version)
    assert client.scan(name) == numbers(0, 1000)
    assert client.count(name, "id >= 990") == 10
    assert len(client.versions(name)) == 2
    assert any(f.endswith(".lance") for f in s3.files(f"{PREFIX}/{name}.lance/data"))


def test_overwrite_replaces_once_for_each_run(client, name):
    client.put(name, numbers(0, 100))
    run = epoch()
    for seq, start in enumerate((100, 110), 1):
        begun = client.begin(name, mode=write_pb2.WRITE_MODE_OVERWRITE, run_id=run)
        staged = client.stage(begun.write, numbers(start, start + 10))
        client.commit(client.prepare(run, seq, begun.write, staged))
    assert client.scan(name).sort_by("id") == numbers(100, 120)


def test_an_aborted_commit_stays_out_and_its_files_go(client, s3, name):
    committable = prepared(client, name)
    data = f"{PREFIX}/{name}.lance/data"
    assert len(s3.files(data)) == 1
    assert client.writes.Abort(write_pb2.AbortRequest(committable=committable)).num_files == 1
    assert s3.files(data) == []
    with pytest.raises(grpc.RpcError) as caught:
        client.commit(committable)
    assert reason(caught.value) == "COMMIT_ABORTED"


def test_a_table_that_is_dropped_leaves_no_file(client, s3, name):
    client.put(name, numbers(0, 10))
    client.tables.DropTable(tables_pb2.DropTableRequest(request_id=epoch(), table=table(name)))
    assert s3.files(f"{PREFIX}/{name}.lance") == []


def test_one_id_from_two_gateways_at_once_is_one_version_with_one_answer(s3, start_on, connect, name):
    a, b = connect(start_on(s3)), connect(start_on(s3))
    committable = prepared(a, name)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda c: c.commit(committable), [a, b] * 20))
    assert sum(not x.already_committed for x in answers) == 1
    assert len({x.version for x in answers}) == 1
    assert a.count(name) == b.count(name) == 10
    assert len(a.versions(name)) == 2


def test_many_commits_from_two_gateways_at_once_all_land_once(s3, start_on, connect, name):
    clients = [connect(start_on(s3)) for _ in range(2)]
    clients[0].begin(name, numbers(0, 1).schema)

    def write(n: int) -> None:
        client = clients[n % 2]
        committable = prepared(client, name, n * 10, n * 10 + 10)
        assert not client.commit(committable).already_committed
        assert clients[(n + 1) % 2].commit(committable).already_committed

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert clients[0].scan(name).sort_by("id") == numbers(0, 240)
    assert len(clients[1].versions(name)) == 25


def test_a_store_that_dies_and_comes_back_costs_no_row(tmp_path, start_on, connect, name):
    with S3Server(tmp_path / "s3") as server:
        client = connect(start_on(server))
        first = prepared(client, name)
        client.commit(first)
        second = prepared(client, name, 10, 20)

        server.kill()
        # The gateway tries for a while by itself; what it answers then is no guess.
        with pytest.raises(grpc.RpcError) as caught:
            client.commit(second)
        assert reason(caught.value) in ("STORE_UNAVAILABLE", "COMMIT_STATE_UNKNOWN")

        server.start()
        assert not client.commit(second).already_committed
        assert client.commit(first).already_committed
        assert client.scan(name).sort_by("id") == numbers(0, 20)


def test_a_wrong_key_is_refused_with_its_reason_and_is_printed_nowhere(s3, start_on, connect, name):
    wrong = "wrong-secret-that-nobody-may-see"
    gateway = start_on(s3, storage={"options": s3.options(secret=wrong)}, env={"LANCE_GATEWAY_LOG_LEVEL": "trace"})
    client = connect(gateway)
    with pytest.raises(grpc.RpcError, match="the store refuses access to the gateway") as caught:
        client.begin(name, numbers(0, 1).schema)
    assert reason(caught.value) == "PERMISSION_DENIED"
    told = (
        str(caught.value)
        + gateway.process.stdout()
        + gateway.process.log.read_text()
        + gateway.admin_get("/metrics")[1]
    )
    assert "refuses access" in told
    assert wrong not in told and SECRET not in told


def test_the_gateway_keeps_its_key_to_itself(s3, start_on, connect, name):
    gateway = start_on(s3, env={"LANCE_GATEWAY_LOG_LEVEL": "trace"})
    client = connect(gateway)
    client.put(name, numbers(0, 10))
    described = str(client.describe(name)) + str(client.versions(name)) + str(client.plan(name))
    told = described + gateway.process.log.read_text() + gateway.admin_get("/metrics")[1]
    assert SECRET not in told


def refusal(call, *args, **kwargs) -> tuple[str, str]:
    """Reason and message of the refusal that the call must meet over gRPC."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return reason(caught.value), caught.value.details()


def test_a_store_that_loses_its_word_in_a_race_gets_no_commit_but_is_read(s3, start_on, connect, name):
    with RacyS3(s3) as racy:
        uri = f"s3://{s3.BUCKET}/{PREFIX}/{name}.lance"
        lance.write_dataset(numbers(0, 10), uri, storage_options=s3.options())
        client = connect(start_on(s3, storage={"options": racy.options()}))

        # One writer after the other, it looks well.
        again = lance.write_dataset(numbers(10, 20), uri, mode="append", storage_options=racy.options())
        assert again.version == 2

        told, why = refusal(client.begin, name)
        assert told == "STORE_NOT_ATOMIC"
        assert "writers that created one key at once" in why
        assert refusal(client.begin, f"{name}_new", numbers(0, 1).schema)[0] == "STORE_NOT_ATOMIC"
        assert client.scan(name).sort_by("id") == numbers(0, 20)
        assert len(client.versions(name)) == 2
    assert s3.files(f"{PREFIX}/.lance-gateway-probe") == []


def test_a_commit_that_was_prepared_elsewhere_is_refused_by_a_store_that_loses_its_word(s3, start_on, connect, name):
    committable = prepared(connect(start_on(s3)), name)
    with RacyS3(s3) as racy:
        client = connect(start_on(s3, storage={"options": racy.options()}))
        assert refusal(client.commit, committable)[0] == "STORE_NOT_ATOMIC"
        assert client.count(name) == 0
    assert connect(start_on(s3)).commit(committable).version


def test_the_probe_of_a_good_store_leaves_nothing_behind(client, gateway, s3, name):
    client.put(name, numbers(0, 10))
    assert "the store is atomic" in gateway.process.log.read_text()
    assert s3.files(f"{PREFIX}/.lance-gateway-probe") == []


def test_the_longest_prefix_says_how_a_store_is_reached(s3, start_on, connect, name):
    storage = {
        "options": s3.options(secret="wrong"),
        "stores": {
            f"s3://{s3.BUCKET}/": s3.options(secret="wrong, too"),
            f"s3://{s3.BUCKET}/{PREFIX}": s3.options(),
        },
    }
    client = connect(start_on(s3, storage=storage))
    assert client.put(name, numbers(0, 10)).num_rows == 10
    assert client.scan(name) == numbers(0, 10)


def test_keys_come_from_the_environment_of_the_gateway_or_from_files(s3, start_on, connect, tmp_path, name):
    options = s3.options()
    keys = {"AWS_ACCESS_KEY_ID": options.pop("aws_access_key_id"), "AWS_SECRET_ACCESS_KEY": SECRET}
    del options["aws_secret_access_key"]
    assert connect(start_on(s3, {"options": options}, env=keys)).put(name, numbers(0, 10)).num_rows == 10

    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    options |= {"aws_access_key_id": {"env": "MY_KEY"}, "aws_secret_access_key": {"file": str(secret)}}
    gateway = start_on(s3, {"options": options}, env={"MY_KEY": keys["AWS_ACCESS_KEY_ID"]})
    assert connect(gateway).count(name) == 10


STS_ANSWER = """
<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Credentials>
      <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
      <SessionToken></SessionToken><Expiration>{until:%Y-%m-%dT%H:%M:%SZ}</Expiration>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>
"""


@pytest.fixture
def sts():
    """A token service that knows one role; what it was asked is in `asked`. Its keys are good until `until`."""

    class Sts(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.asked.append(dict(urllib.parse.parse_qsl(body)))
            answer = STS_ANSWER.format(key=KEY, secret=self.server.secret, until=self.server.until).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sts)
    server.asked, server.secret = [], SECRET
    server.until = datetime.now(timezone.utc) + timedelta(days=1)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def by_web_identity(s3, sts, start_on, connect, tmp_path):
    """The client of a gateway that has no key, but the token of a pod."""
    token = tmp_path / "token"
    token.write_text("a token of the cluster")
    options = {key: value for key, value in s3.options().items() if "key" not in key}
    env = {
        "AWS_ROLE_ARN": ROLE,
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{sts.server_port}",
    }
    return connect(start_on(s3, {"options": options | {"aws_provider_scheme": "irsa"}}, env=env))


def test_a_web_identity_becomes_keys(by_web_identity, sts, name):
    client = by_web_identity
    assert client.put(name, numbers(0, 10)).num_rows == 10
    assert client.scan(name) == numbers(0, 10)
    assert sts.asked[0]["WebIdentityToken"] == "a token of the cluster"
    assert sts.asked[0]["RoleArn"] == ROLE
    assert len(sts.asked) == 1, "keys that are good for a day are kept"


@pytest.fixture
def brief(sts):
    """Keys that have run out when they come."""
    sts.until = datetime.now(timezone.utc)


def test_keys_that_run_out_are_renewed_and_a_commit_goes_on_once_they_are(brief, by_web_identity, sts, name):
    client = by_web_identity
    run = epoch()
    assert not client.commit(prepared(client, name, run=run)).already_committed
    asked = len(sts.asked)
    assert asked > 1
    committable = prepared(client, name, 10, 20, run=run, seq=2)
    sts.secret = "of a role that was withdrawn"
    assert refusal(client.commit, committable)[0] == "PERMISSION_DENIED"
    assert len(sts.asked) > asked
    sts.secret = SECRET
    assert not client.commit(committable).already_committed
    assert client.scan(name).sort_by("id") == numbers(0, 20)


@pytest.fixture
def instance():
    """What an instance of a cloud asks for the keys of its role."""

    class Metadata(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.answer("a token of the session", {"x-aws-ec2-metadata-token-ttl-seconds": "21600"})

        def do_GET(self) -> None:
            if self.path.rstrip("/").endswith("security-credentials"):
                return self.answer("tables")
            until = datetime.now(timezone.utc) + timedelta(hours=1)
            keys = {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": ""}
            times = {"LastUpdated": "2020-01-01T00:00:00Z", "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
            self.server.asked.append(self.path)
            return self.answer(json.dumps(keys | times))

        def answer(self, text: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": str(len(text)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_instance_gives_keys_by_itself(s3, instance, start_on, connect, name):
    options = {key: value for key, value in s3.options().items() if "key" not in key}
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{instance.server_port}"}
    client = connect(start_on(s3, {"options": options}, env=env))
    assert client.put(name, numbers(0, 10)).num_rows == 10
    assert client.scan(name) == numbers(0, 10)
    assert instance.asked


def of_client(server: S3Server, secret: str = SECRET) -> dict[str, str]:
    """The options that a client brings."""
    return {
        "s3-access-key": KEY,
        "s3-secret-key": secret,
        "s3-region": REGION,
        "s3-endpoint": server.endpoint,
        "s3-virtual-hosted-style": "false",
        "s3-allow-http": "true",
    }


@pytest.fixture
def start_without_keys(s3, start_gateway):
    """Starts a gateway that has no key for the bucket that its clients may address; it logs all it can."""

    def start(client_options: bool, faults: bool = False):
        config = {"table": {"uri-prefixes": [f"s3://{s3.BUCKET}/"]}, "storage": {"client-options": client_options}}
        env = {"LANCE_GATEWAY_LOG_LEVEL": "trace,lance_gateway=trace", "AWS_EC2_METADATA_DISABLED": "true"}
        return start_gateway(config=config, env=env, faults=faults)

    return start


@pytest.mark.parametrize("keys", ["of the operator", "of the client"])
def test_a_bucket_may_be_a_part_of_the_host(start_gateway, connect, tmp_path, name, keys):
    with S3Server(tmp_path / "s3", domain="s3.test") as server:
        more = {"env": {"HTTP_PROXY": server.endpoint}}
        uri = f"s3://{server.BUCKET}/{name}"
        if keys == "of the operator":
            host = {"aws_endpoint": f"http://{server.BUCKET}.s3.test", "aws_virtual_hosted_style_request": "true"}
            config = {"storage": {"options": server.options() | host}}
            client = connect(start_gateway(warehouse=f"s3://{server.BUCKET}", config=config, **more))
            uri = name
        else:
            config = {"table": {"uri-prefixes": [f"s3://{server.BUCKET}/"]}, "storage": {"client-options": True}}
            options = of_client(server) | {"s3-endpoint": "http://s3.test", "s3-virtual-hosted-style": "true"}
            client = connect(start_gateway(config=config, **more), options)
        committable = prepared(client, uri)
        assert not client.commit(committable).already_committed
        assert client.commit(committable).already_committed
        assert client.read(client.plan(uri)) == numbers(0, 10)
        assert [f for f in server.files("") if name in f]


def everything_told(gateway) -> str:
    return gateway.process.stdout() + gateway.process.log.read_text() + gateway.admin_get("/metrics")[1]


def hides(text: str | bytes) -> bool:
    """Whether neither the secret nor its encoding is there."""
    text = text if isinstance(text, bytes) else text.encode()
    forms = (SECRET.encode(), base64.b64encode(SECRET.encode())[:-4], SECRET.encode().hex().encode())
    return not any(form in text for form in forms)


def test_keys_of_a_client_are_refused_where_the_operator_does_not_allow_them(s3, start_without_keys, connect, name):
    gateway = start_without_keys(client_options=False)
    client = connect(gateway, of_client(s3))
    told, why = refusal(client.begin, f"s3://{s3.BUCKET}/{name}", numbers(0, 1).schema)
    assert told == "PERMISSION_DENIED"
    assert "storage.client-options" in why
    assert refused(client.plan, f"s3://{s3.BUCKET}/{name}")[0] == "PERMISSION_DENIED"
    assert hides(why + everything_told(gateway))


def test_keys_of_a_client_are_taken_where_the_operator_allows_it_and_are_printed_nowhere(
    s3, start_without_keys, connect, name
):
    gateway = start_without_keys(client_options=True)
    uri = f"s3://{s3.BUCKET}/{name}"
    client = connect(gateway, of_client(s3))
    committable = prepared(client, uri)
    assert not client.commit(committable).already_committed
    info = client.plan(uri)
    assert client.read(info) == numbers(0, 10)
    assert client.count(uri) == 10

    # Who has no key, or another, sees nothing of what is open now.
    wrong = connect(gateway, of_client(s3, secret="not the secret"))
    assert refusal(wrong.count, uri)[0] == "PERMISSION_DENIED"
    ticket = info.endpoints[0].ticket
    assert refused(lambda: wrong.flight.do_get(ticket).read_all())[0] == "PERMISSION_DENIED"
    none = connect(gateway)
    assert refusal(none.count, uri)[0] in ("PERMISSION_DENIED", "STORE_UNAVAILABLE")
    assert client.count(uri) == 10

    # A wrong option is told by its name.
    typo = connect(gateway, {**of_client(s3), "s3-secrets": SECRET})
    told, why = refusal(typo.count, uri)
    assert (told, "s3-secrets" in why) == ("INVALID_ARGUMENT", True)
    http = connect(gateway, {**of_client(s3), "s3-allow-http": "false"})
    assert "s3-allow-http" in refusal(http.count, uri)[1]

    assert hides(why + everything_told(gateway))
    assert all(hides(part) for part in (committable, info.serialize(), ticket.ticket))
    assert hides(str(client.describe(uri)) + str(client.versions(uri)))


def test_lgw_and_jobs_reach_the_store_with_the_keys_of_the_caller(s3, start_without_keys, connect, tmp_path, name):
    gateway = start_without_keys(client_options=True)
    uri = f"s3://{s3.BUCKET}/{name}"
    client = connect(gateway, of_client(s3))
    for n in range(3):
        client.commit(prepared(client, uri, n * 10, n * 10 + 10))
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    options = {**of_client(s3), "s3-secret-key": f"@{secret}"}
    flags = [part for option in options.items() for part in ("--storage-option", "=".join(option))]
    assert command.run(gateway.uri, *flags, "--output", "csv", "count", uri).stdout.split()[1].startswith("30,")
    command.run(gateway.uri, *flags, "compact", uri)
    assert client.describe(uri).num_fragments == 1
    by_environment = {"LANCE_GATEWAY_STORAGE_OPTIONS": ",".join(map("=".join, of_client(s3).items()))}
    command.run(gateway.uri, "cleanup", uri, "--keep", "1", env=by_environment)
    assert len(client.versions(uri)) == 1

    without = command.run(gateway.uri, "compact", uri, ok=False)
    assert without.returncode == 1
    assert any(told in without.stderr for told in ("(PERMISSION_DENIED)", "(STORE_UNAVAILABLE)"))
    wrong = command.run(gateway.uri, "--storage-option", SECRET, "count", uri, ok=False)
    assert (wrong.returncode, hides(wrong.stderr)) == (2, True)
    assert hides(everything_told(gateway))


def test_the_record_of_a_job_holds_no_key_and_its_repeat_brings_them(s3, start_without_keys, connect, name):
    gateway = start_without_keys(client_options=True, faults=True)
    uri = f"s3://{s3.BUCKET}/{name}"
    client = connect(gateway, of_client(s3))
    for n in range(3):
        client.commit(prepared(client, uri, n * 10, n * 10 + 10))
    gateway.hold("put.manifest")
    compaction = jobs_pb2.StartJobRequest(request_id=str(uuid.uuid4()), table=table(uri), compaction={})
    client.jobs.StartJob(compaction)
    gateway.reached("put.manifest")
    record = next(Path(gateway.warehouse).glob(f"_lance_gateway/jobs/*/{compaction.request_id}")).read_bytes()
    assert uri.encode() in record
    assert hides(record) and KEY.encode() not in record
    gateway.kill()
    client = connect(gateway.restart(), of_client(s3))
    known = client.jobs.GetJob(jobs_pb2.GetJobRequest(id=compaction.request_id)).job
    assert known.state == jobs_pb2.JOB_STATE_INTERRUPTED
    client.jobs.StartJob(compaction)
    assert client.end_of_job(compaction.request_id).state == jobs_pb2.JOB_STATE_SUCCEEDED
    assert client.describe(uri).num_fragments == 1


def test_a_flink_table_brings_its_keys_and_no_plan_shows_them(cluster, session, s3, start_without_keys, connect, name):
    gateway = start_without_keys(client_options=True)
    uri = f"s3://{s3.BUCKET}/{name}"
    keys = "".join(f", '{key}' = '{value}'" for key, value in of_client(s3).items())
    session.set("execution.runtime-mode", "batch")
    session.execute(
        f"CREATE TABLE t ({COLUMNS}) "
        f"WITH ('connector' = 'lance', 'path' = '{uri}', 'gateway.uri' = '{gateway.uri}'{keys})"
    )
    session.insert("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert session.query("SELECT id, word FROM t WHERE id > 1") == [(2, "b")]
    assert connect(gateway, of_client(s3)).count(uri) == 2
    for statement in ("SELECT * FROM t", "INSERT INTO t SELECT * FROM t"):
        assert hides(session.query(f"EXPLAIN {statement}")[0][0])
    assert hides(everything_told(gateway))
    logs = [log.read_bytes() for log in (cluster.work / "log").iterdir()]
    assert all(hides(log) for log in logs)


def test_a_flink_job_whose_taskmanager_is_killed_writes_each_row_once_and_another_reads_them(
    cluster, session, s3, start_on, connect, tmp_path, name
):
    gateway = start_on(s3)
    client = connect(gateway)
    for key, value in {
        "execution.runtime-mode": "streaming",
        "execution.checkpointing.interval": "300 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "200 ms",
        "parallelism.default": "2",
    }.items():
        session.set(key, value)
    inbox = Inbox(tmp_path / "inbox")
    inbox.declare(session, "src")
    session.execute(
        f"CREATE TABLE t ({COLUMNS}) WITH ('connector' = 'lance', 'path' = '{name}', 'gateway.uri' = '{gateway.uri}')"
    )
    job = session.submit("INSERT INTO t SELECT * FROM src")
    for start in range(0, 10_000, 2000):
        inbox.drop(start, start + 2000)
    eventually(lambda: rows_in(client, name) > 0, 60, "rows in the table")
    cluster.kill_taskmanager()
    cluster.start_taskmanager()
    for start in range(10_000, 20_000, 2000):
        inbox.drop(start, start + 2000)
    eventually(lambda: rows_in(client, name) >= 20_000, 90, "all rows in the table")
    cluster.cancel(job)
    assert client.scan(name).sort_by("id") == numbers(0, 20_000)

    session.set("execution.runtime-mode", "batch")
    assert session.query("SELECT COUNT(*), MIN(id), MAX(id) FROM t WHERE id >= 5000") == [(15_000, 5000, 19_999)]
