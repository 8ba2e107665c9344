"""What the README shows works as it is written there, in its order."""

import os
import re
import subprocess
import sys

from harness import paths
from harness.process import clean_environment

README = (paths.ROOT / "README.md").read_text()
USE = README[README.index("## Use it") : README.index("## Read on")]


def blocks(language: str) -> list[str]:
    """The code of the part "Use it" in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", USE, re.MULTILINE | re.DOTALL)


def statements(sql: str) -> list[str]:
    """One each, without comments."""
    return [s.strip() for s in re.sub(r"--.*", "", sql).split(";") if s.strip()]


def test_the_part_use_it_works_from_top_to_bottom(session, start_gateway, connect, tmp_path):
    start, lgw = blocks("sh")
    assert start == "lance-gateway\n"
    gateway = start_gateway()
    client = connect(gateway)

    (sql,) = blocks("sql")
    assert sql.count("'connector' = 'lance'") == 1
    for statement in statements(
        sql.replace("'connector' = 'lance'", f"'connector' = 'lance', 'gateway.uri' = '{gateway.uri}'")
    ):
        last = session.execute(statement)
    assert last.rows == [(1, "Hello World", [0.1, 0.2, 0.3, 0.4])]
    assert client.count("vectors") == 1

    def run(*argv: str) -> str:
        path = f"{paths.lgw_binary().parent}:{os.environ['PATH']}"
        env = {**clean_environment(), "LANCE_GATEWAY_URI": gateway.uri, "PATH": path}
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (python,) = blocks("python")
    assert "grpc://127.0.0.1:8815" in python
    printed = run(sys.executable, "-c", python.replace("grpc://127.0.0.1:8815", gateway.uri))
    assert "id: int64" in printed and '[["a","b"]]' in re.sub(r"\s", "", printed)

    printed = run("bash", "-euc", lgw)
    assert "\n id  content  embedding\n  2  b        NULL\n" in printed
    assert client.scan("pages").to_pylist() == [{"id": 2, "content": "B", "embedding": None}]


def test_the_page_about_merges_works_from_top_to_bottom(start_gateway, connect):
    gateway = start_gateway()
    (python,) = re.findall(r"^```python\n(.*?)^```", (paths.ROOT / "docs/merge.md").read_text(), re.M | re.S)
    python = python.replace("grpc://127.0.0.1:8815", gateway.uri)
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "'num_inserted': 1, 'num_updated': 1" in done.stdout
    people = connect(gateway).scan("people").sort_by("id").to_pylist()
    assert people == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": "Cy"}]


def test_what_was_built_is_where_the_readme_says():
    for place in ("target/debug/lance-gateway", "target/debug/lgw", paths.connector_jar().relative_to(paths.ROOT)):
        assert f"`{place}`" in USE
