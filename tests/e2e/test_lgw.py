"""The command line against a real gateway: what it prints, where, and how it ends."""

import csv
import io
import json
import os
import signal
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import lgw as command
from harness import paths
from harness.process import clean_environment
from harness.rows import numbers


@pytest.fixture
def lgw(gateway):
    """Runs `lgw`; the answer has returncode, stdout and stderr."""

    def run(*args: object, ok: bool = True, uri: str = gateway.uri) -> subprocess.CompletedProcess[str]:
        return command.run(uri, *args, ok=ok)

    return run


def as_json(done: subprocess.CompletedProcess):
    return json.loads(done.stdout)


def as_rows(done: subprocess.CompletedProcess) -> list[dict]:
    """Rows are JSON lines, so that a stream of them can be read as it comes."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_status_tells_health_version_and_limits(lgw):
    status = as_json(lgw("status", "--output", "json"))
    assert status["state"] == "serving"
    assert status["limits"]["max_message_bytes"] >= 64 << 20
    assert "serving" in lgw("status").stdout


def test_a_table_is_created_described_listed_and_dropped(lgw, name):
    lgw("create", name, "--schema", "id BIGINT NOT NULL, content STRING, embedding FLOAT[4]", "--primary-key", "id")
    described = as_json(lgw("--output", "json", "describe", name))
    assert [c["name"] for c in described["columns"]] == ["id", "content", "embedding"]
    assert described["primary_key"] == ["id"]
    assert not described["columns"][0]["nullable"]
    assert name in [t["name"] for t in as_json(lgw("--output", "json", "tables"))]
    lgw("drop", name, "--yes")
    assert name not in [t["name"] for t in as_json(lgw("--output", "json", "tables"))]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow"])
def test_files_of_each_kind_go_in_and_come_out(lgw, client, name, tmp_path, kind):
    rows = numbers(0, 500)
    client.put(f"{name}_source", rows)
    file = tmp_path / f"rows.{kind}"
    lgw("scan", f"{name}_source", "--to", file)
    lgw("put", name, file, "--create")
    assert client.scan(name).sort_by("id") == rows


def test_put_appends_and_overwrites_and_prints_its_version(lgw, client, name, tmp_path):
    file = tmp_path / "rows.parquet"
    pq.write_table(numbers(0, 10), file)
    lgw("put", name, file, "--create")
    second = as_json(lgw("--output", "json", "put", name, file))
    assert second["version"] == client.versions(name)[0].version
    assert client.count(name) == 20
    pq.write_table(numbers(100, 105), file)
    lgw("put", name, file, "--mode", "overwrite")
    assert client.scan(name) == numbers(100, 105)


def test_scan_filters_projects_limits_and_reads_old_versions_in_every_output(lgw, client, name):
    first = client.put(name, numbers(0, 10)).version
    client.put(name, numbers(10, 20))
    rows = as_rows(lgw("--output", "json", "scan", name, "--filter", "id >= 8", "--limit", "2", "--columns", "word"))
    assert rows == [{"word": "w8"}, {"word": "w9"}]
    read = list(csv.DictReader(io.StringIO(lgw("--output", "csv", "scan", name, "--version", first).stdout)))
    assert [int(r["id"]) for r in read] == list(range(10))
    assert "w3" in lgw("scan", name, "--limit", "5").stdout
    assert as_rows(lgw("--output", "json", "scan", name, "--limit", "0")) == []


def test_count_versions_and_commits(lgw, client, name):
    client.put(name, numbers(0, 10))
    client.put(name, numbers(10, 30))
    assert as_json(lgw("--output", "json", "count", name))["num_rows"] == 30
    assert as_json(lgw("--output", "json", "count", name, "--filter", "id < 5"))["num_rows"] == 5
    versions = as_json(lgw("--output", "json", "versions", name))
    assert [v["version"] for v in versions] == [v.version for v in client.versions(name)]
    assert versions[0]["num_rows"] == 30
    assert len(as_json(lgw("--output", "json", "commits", name))) >= 2


def test_results_go_to_stdout_and_notes_to_stderr(lgw, client, name):
    client.put(name, numbers(0, 10))
    done = lgw("--output", "json", "scan", name)
    assert as_rows(done) == numbers(0, 10).to_pylist()
    assert done.stderr != ""
    assert lgw("--output", "json", "--quiet", "scan", name).stderr == ""


def test_a_refusal_ends_with_1_and_its_reason(lgw, name):
    done = lgw("describe", name, ok=False)
    assert done.returncode == 1
    assert done.stdout == "" and name in done.stderr and "TABLE_NOT_FOUND" in done.stderr
    told = json.loads(lgw("--output", "json", "describe", name, ok=False).stderr)
    assert told["error"]["reason"] == "TABLE_NOT_FOUND"


def test_wrong_usage_ends_with_2(lgw, name):
    assert lgw("scan", ok=False).returncode == 2
    assert lgw("frobnicate", ok=False).returncode == 2
    assert lgw("create", name, ok=False).returncode == 2
    assert lgw("create", name, "--schema", "id NOTATYPE", ok=False).returncode == 2


def test_a_gateway_that_is_not_there_is_named_and_ends_with_1(lgw):
    done = lgw("--timeout", "5s", "status", ok=False, uri="grpc://127.0.0.1:9")
    assert done.returncode == 1 and "127.0.0.1:9" in done.stderr


def test_a_table_is_not_dropped_without_a_yes_where_nobody_can_be_asked(lgw, client, name):
    client.put(name, numbers(0, 1))
    assert lgw("drop", name, ok=False).returncode in (1, 2)
    assert client.count(name) == 1


def test_a_file_with_a_value_that_does_not_fit_changes_nothing(lgw, client, name, tmp_path):
    client.put(name, numbers(0, 3))
    file = tmp_path / "rows.csv"
    file.write_text("id,word\n7,ok\nseven,bad\n")
    done = lgw("put", name, file, ok=False)
    assert done.returncode == 1 and "rows.csv" in done.stderr and "seven" in done.stderr
    assert client.count(name) == 3


def test_a_reader_that_closes_early_is_no_failure(lgw, client, gateway, name):
    client.put(name, pa.table({"text": ["x" * 1000] * 20_000}))
    argv = [str(paths.lgw_binary()), "--uri", gateway.uri, "--quiet", "--output", "csv", "scan", name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=clean_environment()) as scan:
        os.read(scan.stdout.fileno(), 100)
        scan.stdout.close()
        assert scan.wait(30) in (0, 141)


def test_lgw_merges_deletes_and_updates(lgw, name, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 1, "word": "a"}\n{"id": 2, "word": "b"}\n')
    first = as_json(lgw("put", name, file, "--mode", "merge", "--on", "id", "--create", "--output", "json"))
    assert (first["num_inserted"], first["num_updated"]) == (2, 0)
    file.write_text('{"id": 2, "word": "B"}\n{"id": 3, "word": "c"}\n')
    second = as_json(lgw("put", name, file, "--mode", "merge", "--output", "json"))
    assert (second["num_inserted"], second["num_updated"]) == (1, 1)
    updated = as_json(lgw("update", name, "--set", "word=upper(word)", "--filter", "id = 3", "--output", "json"))
    assert updated["num_rows"] == 1
    deleted = as_json(lgw("delete", name, "--filter", "id = 1", "--output", "json"))
    assert deleted["num_rows"] == 1
    found = as_rows(lgw("scan", name, "--output", "json"))
    assert sorted(found, key=lambda row: row["id"]) == [{"id": 2, "word": "B"}, {"id": 3, "word": "C"}]


def test_lgw_merges_only_the_columns_that_a_file_has(lgw, client, name, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 1, "word": "a", "size": 10}\n{"id": 2, "word": "b", "size": 20}\n')
    lgw("put", name, file, "--mode", "merge", "--on", "id", "--create")
    file.write_text('{"id": 2, "word": "B"}\n{"id": 3, "word": "c"}\n')
    lgw("put", name, file, "--mode", "merge")
    assert client.scan(name).sort_by("id").to_pylist() == [
        {"id": 1, "word": "a", "size": 10},
        {"id": 2, "word": "B", "size": 20},
        {"id": 3, "word": "c", "size": None},
    ]
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": 1, "size": 11}\n')
    refused = lgw("put", name, file, other, "--mode", "merge", ok=False)
    assert refused.returncode == 1 and "different columns" in refused.stderr
    file.write_text('{"id": 1, "nope": 1}\n')
    refused = lgw("put", name, file, "--mode", "merge", ok=False)
    assert refused.returncode == 1 and "'nope'" in refused.stderr
    assert client.count(name, "size = 10") == 1


def test_changes_are_read_and_followed_as_lines(lgw, client, gateway, name, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 1, "word": "a"}\n{"id": 2, "word": "b"}\n')
    lgw("put", name, file, "--mode", "merge", "--on", "id", "--create")
    lgw("update", name, "--set", "word=upper(word)", "--filter", "id = 2")
    lgw("delete", name, "--filter", "id = 1")
    last = client.describe(name).version
    found = as_rows(lgw("changes", name, "--after", "0", "--columns", "id,word", "--output", "json"))
    kinds = [(row["_change_kind"], row["id"], row["word"]) for row in found]
    assert kinds == [(0, 1, "a"), (0, 2, "b"), (1, 2, "b"), (2, 2, "B"), (3, 1, "a")]
    assert [row["_commit_version"] for row in found] == sorted(row["_commit_version"] for row in found)
    assert as_rows(lgw("changes", name, "--output", "json")) == []
    initial = as_rows(lgw("changes", name, "--after-oldest", "--initial", "--to", last - 2, "--output", "json"))
    assert sorted(row["id"] for row in initial) == [1, 2]
    lgw("changes", name, "--after", "0", "--out", tmp_path / "changes.parquet", "--hold", "copy")
    assert pq.read_table(tmp_path / "changes.parquet").num_rows == 5
    for i in range(3):
        client.put(name, pa.table({"id": [10 + i], "word": ["later"]}))
    lgw("cleanup", name, "--keep", "1")
    assert [row["id"] for row in as_rows(lgw("changes", name, "--after", last, "--output", "json"))] == [10, 11, 12]
    refused = lgw("changes", name, "--after", "1", ok=False)
    assert refused.returncode == 1 and "version 1" in refused.stderr and f"is {last}" in refused.stderr
    assert lgw("changes", name, "--follow", ok=False).returncode == 2

    argv = [str(paths.lgw_binary()), "--uri", gateway.uri, "--output", "json", "changes", name, "--follow"]
    more = ["--after", str(last + 2)]
    with subprocess.Popen([*argv, *more], stdout=subprocess.PIPE, env=clean_environment(), text=True) as follow:
        assert json.loads(follow.stdout.readline())["id"] == 12
        client.delete(name, "id = 2")
        row = json.loads(follow.stdout.readline())
        assert (row["_change_kind"], row["id"]) == (3, 2)
        follow.send_signal(signal.SIGINT)
        assert follow.wait(30) == 130
