"""Jobs of a real Flink cluster whose gateway, store, TaskManager or JobManager fails at a named point: rows once."""

import pytest

from harness import flink, paths
from harness.inbox import Inbox, rows_in, until_rows
from harness.process import eventually
from harness.rows import numbers

# Where a checkpoint is struck, and over which store.
IN_A_CHECKPOINT = (
    ("put.prepared", "s3"),
    ("put.manifest", "disk"),
    ("put.manifest.done", "s3"),
    ("commit.reply", "disk"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Four slots, checkpoints that stay when their job is gone, and no long wait for a JobManager that is dead."""
    options = {
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "heartbeat.timeout": "8 s",
    }
    work = tmp_path_factory.mktemp("flink")
    with flink.Cluster(work, jars=(paths.connector_jar(),), slots=4, options=options) as cluster:
        yield cluster


@pytest.fixture
def gateway(request, start_gateway):
    """Over a folder, or where a test asks for it over S3."""
    if getattr(request, "param", "disk") == "disk":
        return start_gateway(faults=True)
    s3 = request.getfixturevalue("s3")
    config = {"storage": {"options": s3.options()}}
    return start_gateway(warehouse=f"s3://{s3.BUCKET}/flink-faults", config=config, faults=True)


def on(*pairs: tuple[str, str], of: str):
    """One parameter of a test, each with the store that it is tried on."""
    return pytest.mark.parametrize((of, "gateway"), pairs, indirect=["gateway"])


@pytest.fixture
def client(gateway, connect):
    return connect(gateway)


@pytest.fixture
def busy(session, streaming):
    """As `streaming`, but checkpoints come by themselves."""
    session.set("execution.checkpointing.interval", "200 ms")
    session.set("execution.checkpointing.tolerable-failed-checkpoints", "1000")


@pytest.fixture
def job(session, declare, inbox, submit):
    """Starts the test's job: from the inbox into the table."""

    def start(parallelism: int = 2, state: str | None = None) -> str:
        session.set("parallelism.default", str(parallelism))
        if state:
            session.set("execution.state-recovery.path", state)
        return submit("INSERT INTO t SELECT * FROM src")

    inbox.declare(session, "src")
    declare()
    return start


def held(gateway, inbox, point: str, start: int, stop: int) -> None:
    """More rows come, and their checkpoint stands still at a point."""
    gateway.hold(point)
    inbox.drop(start, stop)
    gateway.reached(point)


def until(client, name: str, rows: int) -> None:
    eventually(lambda: rows_in(client, name) >= rows, 90, f"{rows} rows in {name}")


def is_there_once(client, name: str, start: int, stop: int) -> None:
    assert client.scan(name).sort_by("id") == numbers(start, stop)
    # A version without new rows would be an empty commit.
    rows = [v.num_rows for v in reversed(client.versions(name))]
    assert rows == sorted(set(rows)), rows


@on(*IN_A_CHECKPOINT, of="point")
def test_a_gateway_killed_in_a_checkpoint_leaves_rows_once(gateway, client, connect, busy, job, inbox, name, point):
    job()
    inbox.drop(0, 5)
    until(client, name, 5)
    held(gateway, inbox, point, 5, 10)
    gateway.kill()
    client = connect(gateway.restart())
    inbox.drop(10, 15)
    until(client, name, 15)
    is_there_once(client, name, 0, 15)


@on(("false", "disk"), ("true", "s3"), of="unaligned")
def test_a_taskmanager_killed_in_mid_checkpoint_leaves_rows_once(
    cluster, session, gateway, client, busy, job, inbox, name, unaligned
):
    session.set("execution.checkpointing.unaligned.enabled", unaligned)
    running = job(parallelism=4)
    inbox.drop(0, 5)
    until(client, name, 5)
    held(gateway, inbox, "put.prepared", 5, 2_000)
    cluster.kill_taskmanager()
    gateway.release("put.prepared")
    cluster.start_taskmanager()
    until(client, name, 2_000)
    is_there_once(client, name, 0, 2_000)
    assert cluster.get(f"/jobs/{running}/checkpoints")["counts"]["restored"] >= 1


@on(("put.prepared", "disk"), ("put.manifest.done", "s3"), of="point")
def test_a_jobmanager_killed_in_mid_checkpoint_leaves_rows_once(
    cluster, gateway, client, busy, job, inbox, name, point
):
    first = job()
    inbox.drop(0, 5)
    until(client, name, 5)
    held(gateway, inbox, point, 5, 10)
    cluster.restart_jobmanager()
    gateway.release(point)
    job(state=cluster.retained_checkpoint(first))
    inbox.drop(10, 15)
    until(client, name, 15)
    is_there_once(client, name, 0, 15)


def test_a_commit_that_landed_unseen_is_known_to_a_new_job_at_another_parallelism(
    cluster, gateway, client, connect, busy, job, inbox, name
):
    first = job(parallelism=1)
    inbox.drop(0, 5)
    until(client, name, 5)
    held(gateway, inbox, "put.manifest.done", 5, 10)
    gateway.kill()
    cluster.cancel(first)
    client = connect(gateway.restart())
    assert rows_in(client, name) == 10
    versions = client.versions(name)
    job(parallelism=4, state=cluster.retained_checkpoint(first))
    inbox.drop(10, 12)
    until(client, name, 12)
    is_there_once(client, name, 0, 12)
    assert client.versions(name)[-len(versions) :] == versions


def test_a_job_that_is_rescaled_from_1_to_4_to_1_by_savepoints_leaves_rows_once(
    cluster, client, streaming, job, inbox, name
):
    state, rows = None, 0
    for parallelism in (1, 4, 1):
        running = job(parallelism, state)
        for _ in range(4):
            inbox.drop(rows, rows + 50)
            rows += 50
        until_rows(cluster, client, running, name, rows)
        state = cluster.stop_with_savepoint(running)
    is_there_once(client, name, 0, rows)


def test_a_savepoint_of_a_job_that_goes_on_is_restored_without_loss(cluster, client, streaming, job, inbox, name):
    first = job()
    inbox.drop(0, 5)
    until_rows(cluster, client, first, name, 5)
    savepoint = cluster.savepoint(first)
    cluster.cancel(first)
    second = job(state=savepoint)
    inbox.drop(5, 10)
    until_rows(cluster, client, second, name, 10)
    is_there_once(client, name, 0, 10)


def test_a_rewind_with_other_rows_under_the_same_checkpoint_numbers_skips_nothing(
    cluster, client, streaming, job, inbox, name
):
    first = job()
    inbox.drop(0, 5)
    until_rows(cluster, client, first, name, 5)
    savepoint = cluster.savepoint(first)
    inbox.drop(5, 10)
    until_rows(cluster, client, first, name, 10)
    cluster.cancel(first)

    # What came after the savepoint is another thing now.
    (inbox.folder / "00001.csv").unlink()
    second = job(state=savepoint)
    inbox.drop(10, 20)
    until_rows(cluster, client, second, name, 20)
    is_there_once(client, name, 0, 20)


def test_a_restart_without_state_whose_checkpoints_begin_at_1_again_skips_nothing(
    cluster, client, streaming, job, inbox, name
):
    first = job()
    for start in range(5):
        inbox.drop(start, start + 1)
        until_rows(cluster, client, first, name, start + 1)
    cluster.cancel(first)
    for file in inbox.folder.iterdir():
        file.unlink()

    second = job()
    versions = len(client.versions(name))
    for start in range(5, 8):
        inbox.drop(start, start + 1)
        until_rows(cluster, client, second, name, start + 1)
    is_there_once(client, name, 0, 8)
    assert len(client.versions(name)) == versions + 3


def test_a_checkpoint_that_expires_gives_its_rows_to_the_next(
    cluster, session, gateway, client, busy, job, inbox, name
):
    session.set("execution.checkpointing.timeout", "2 s")
    running = job()
    inbox.drop(0, 5)
    until(client, name, 5)
    held(gateway, inbox, "put.prepared", 5, 10)
    failed = lambda: cluster.get(f"/jobs/{running}/checkpoints")["counts"]["failed"]  # noqa: E731
    eventually(failed, 60, "a checkpoint that expires")
    gateway.release("put.prepared")
    inbox.drop(10, 15)
    until(client, name, 15)
    is_there_once(client, name, 0, 15)


def test_subtasks_that_have_finished_beside_others_that_run_leave_rows_once_over_a_restart(
    cluster, session, client, declare, busy, submit, inbox, tmp_path, name
):
    inbox.declare(session, "src")
    declare()
    few = Inbox(tmp_path / "few")
    few.drop(0, 5)
    few.declare(session, "few", watched=False)
    submit("INSERT INTO t SELECT * FROM few UNION ALL SELECT * FROM src", running=False)
    until(client, name, 5)
    inbox.drop(5, 10)
    until(client, name, 10)
    cluster.kill_taskmanager()
    cluster.start_taskmanager()
    inbox.drop(10, 15)
    until(client, name, 15)
    is_there_once(client, name, 0, 15)


def test_a_batch_job_whose_committer_fails_alone_leaves_rows_once(
    cluster, session, gateway, client, declare, batch, submit, inbox, name
):
    session.set("restart-strategy.type", "fixed-delay")
    session.set("restart-strategy.fixed-delay.attempts", "1000")
    session.set("restart-strategy.fixed-delay.delay", "200 ms")
    declare()
    client.begin(name, numbers(0, 1).schema)
    for start in range(0, 40, 10):
        inbox.drop(start, start + 10)
    inbox.declare(session, "src", watched=False)
    gateway.hold("put.prepared")
    running = submit("INSERT INTO t SELECT * FROM src", running=False)
    gateway.reached("put.prepared")
    staged = gateway.warehouse / f"{name}.lance" / "data"
    away = staged.rename(staged.with_name("away"))
    gateway.release("put.prepared")
    eventually(lambda: "STAGED_FILE_MISSING" in cluster.job_error(running), 90, "the failure of the committer")
    away.rename(staged)
    cluster.wait(running)
    assert client.scan(name).sort_by("id") == numbers(0, 40)


def test_a_store_that_takes_nothing_more_fails_the_job_with_its_reason_and_is_made_good_after_the_repair(
    cluster, gateway, client, declare, busy, job, inbox, name
):
    running = job()
    inbox.drop(0, 5)
    until(client, name, 5)
    gateway.fail("put.prepared", times=1_000_000)
    inbox.drop(5, 10)
    eventually(lambda: "prepared commit" in cluster.job_error(running), 120, "the reason in the job's exceptions")
    assert rows_in(client, name) == 5
    gateway.release("put.prepared")
    until(client, name, 10)
    is_there_once(client, name, 0, 10)


@on(("taskmanager", "disk"), ("gateway", "s3"), of="die")
def test_an_overwrite_at_parallelism_4_that_is_killed_in_mid_job_holds_exactly_its_own_rows(
    cluster, session, gateway, client, connect, busy, declare, submit, inbox, name, die
):
    client.put(name, numbers(10_000, 10_100))
    session.set("parallelism.default", "4")
    inbox.declare(session, "src")
    declare(write__mode="overwrite")
    running = submit("INSERT INTO t SELECT * FROM src")
    held(gateway, inbox, "put.manifest", 0, 500)
    # Until the first commit readers see the old rows.
    assert client.scan(name) == numbers(10_000, 10_100)
    if die == "taskmanager":
        cluster.kill_taskmanager()
        gateway.release("put.manifest")
        cluster.start_taskmanager()
    else:
        gateway.kill()
        client = connect(gateway.restart())
    eventually(lambda: client.scan(name).sort_by("id") == numbers(0, 500), 90, "the new rows alone")
    inbox.drop(500, 1_000)
    until(client, name, 1_000)
    assert client.scan(name).sort_by("id") == numbers(0, 1_000)
    ours = [v for v in client.versions(name) if v.properties.get("flink.job-id") == running]
    assert len(ours) == len(client.versions(name)) - 2, "each version of the run tells its job"


# Changes by key: the last digit of the ids, and how often it came, unless that was a multiple of three.

COUNTS = "k BIGINT, n BIGINT, total BIGINT, PRIMARY KEY (k) NOT ENFORCED"
COUNT = "INSERT INTO t SELECT id % 10, COUNT(*), SUM(id) FROM src GROUP BY id % 10 HAVING COUNT(*) % 3 <> 0"


@pytest.fixture
def upserts(session, declare, inbox, submit):
    """Starts the test's job of changes, in which rows come, are updated and go again."""

    def start(parallelism: int = 2, state: str | None = None) -> str:
        session.set("parallelism.default", str(parallelism))
        if state:
            session.set("execution.state-recovery.path", state)
        return submit(COUNT)

    inbox.declare(session, "src")
    declare(COUNTS)
    return start


def counts(stop: int) -> list[dict]:
    ids = [range(k, stop, 10) for k in range(10)]
    return [{"k": k, "n": len(of), "total": sum(of)} for k, of in enumerate(ids) if len(of) % 3]


def until_counts(client, name: str, stop: int) -> None:
    def there():
        return rows_in(client, name) == len(counts(stop)) and (
            client.scan(name).sort_by("k").to_pylist() == counts(stop)
        )

    eventually(there, 90, f"the counts of {stop} ids in {name}")


@on(*IN_A_CHECKPOINT, of="point")
def test_a_gateway_killed_in_a_checkpoint_of_changes_leaves_what_the_last_of_each_key_says(
    gateway, client, connect, busy, upserts, inbox, name, point
):
    upserts()
    inbox.drop(0, 25)
    until_counts(client, name, 25)
    held(gateway, inbox, point, 25, 37)
    gateway.kill()
    client = connect(gateway.restart())
    until_counts(client, name, 37)
    inbox.drop(37, 42)
    until_counts(client, name, 42)


@on(("false", "disk"), ("true", "s3"), of="unaligned")
def test_a_taskmanager_killed_in_a_checkpoint_of_changes_leaves_what_the_last_of_each_key_says(
    cluster, session, gateway, client, busy, upserts, inbox, name, unaligned
):
    session.set("execution.checkpointing.unaligned.enabled", unaligned)
    running = upserts(parallelism=4)
    inbox.drop(0, 25)
    until_counts(client, name, 25)
    held(gateway, inbox, "put.prepared", 25, 2_000)
    cluster.kill_taskmanager()
    gateway.release("put.prepared")
    cluster.start_taskmanager()
    until_counts(client, name, 2_000)
    assert cluster.get(f"/jobs/{running}/checkpoints")["counts"]["restored"] >= 1


def test_a_merge_that_landed_unseen_is_known_to_a_new_job_at_another_parallelism(
    cluster, gateway, client, connect, busy, upserts, inbox, name
):
    first = upserts(parallelism=1)
    inbox.drop(0, 25)
    until_counts(client, name, 25)
    held(gateway, inbox, "put.manifest.done", 25, 37)
    gateway.kill()
    cluster.cancel(first)
    client = connect(gateway.restart())
    assert client.scan(name).sort_by("k").to_pylist() == counts(37)
    versions = client.versions(name)
    upserts(parallelism=4, state=cluster.retained_checkpoint(first))
    inbox.drop(37, 42)
    until_counts(client, name, 42)
    assert client.versions(name)[-len(versions) :] == versions
