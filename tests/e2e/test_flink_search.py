"""The search functions of Flink on a real cluster, by our names and by those of other connectors."""

import re
import subprocess

import pyarrow as pa
import pytest

from harness import flink, paths
from harness.process import clean_environment

PAGE = (paths.ROOT / "docs" / "flink-search.md").read_text()
OURS = "io.lancegateway.flink.VectorSearchFunction"
ALIAS = "org.apache.flink.connector.lance.table.LanceVectorSearchFunction"


def statements() -> list[str]:
    """Those of the page, in their order, without comments; Flink has VECTOR_SEARCH of its own since 2.2."""
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    found = [s.strip() for s in re.sub(r"--.*", "", "\n".join(blocks)).split(";")]
    return [s for s in found if s and "VECTOR_SEARCH(TABLE" not in s]


def cluster_with(work, gateway, *jars):
    """Its processes find the gateway as beside a sidecar: no statement names it."""
    cluster = flink.Cluster(work, jars=jars, slots=1)
    cluster.env["LANCE_GATEWAY_URI"] = gateway.uri
    return cluster


def test_what_the_page_shows_works_from_lib(tmp_path, start_gateway):
    gateway = start_gateway()
    jars = (paths.connector_jar(), paths.aliases_jar())
    with cluster_with(tmp_path / "flink", gateway, *jars) as cluster, cluster.session() as session:
        session.set("execution.runtime-mode", "batch")
        session.set("table.dml-sync", "true")
        answers = [(s, session.execute(s).rows) for s in statements()]
    near, cosine, lateral, text, several, both, alias = [rows for s, rows in answers if s.startswith("SELECT")]
    assert [word for word, _ in near] == ["cat", "dog"]
    assert near[0][1] == pytest.approx(0.01)
    assert cosine == [("dog",), ("car",)]
    assert sorted((name, word) for name, word, _ in lateral) == [("pet", "cat"), ("vehicle", "car")]
    assert sorted(word for word, _ in text) == ["car", "cat", "dog"]
    assert [word for (word,) in several] == ["dog", "cat"]
    assert [word for word, _ in both] == ["dog", "cat"]
    assert alias == [(1, "cat")]


@pytest.mark.parametrize("name", [OURS, ALIAS], ids=["ours", "alias"])
def test_a_jar_that_the_statement_names_is_enough(connectorless, client, gateway, name):
    rows = pa.table({"Id": [7, 8], "embedding": pa.array([[1.0, 0.0], [0.0, 1.0]], pa.list_(pa.float32(), 2))})
    table = f"named_{name.rpartition('.')[2]}"
    client.put(table, rows)
    jars = f"JAR '{paths.connector_jar()}'" + (f", JAR '{paths.aliases_jar()}'" if name == ALIAS else "")
    with connectorless.session() as session:
        session.execute(f"CREATE TEMPORARY FUNCTION vector_search AS '{name}' LANGUAGE JAVA USING {jars}")
        query = f"SELECT `Id`, _distance FROM TABLE(vector_search('{table}', 'embedding', ARRAY[0.0, 2.0], 1))"
        assert session.query(query) == [(8, 1.0)]
        with pytest.raises(flink.FlinkError, match="it has Id, embedding"):
            session.query(query.replace("'embedding'", "'Embedding'"))
        with pytest.raises(flink.FlinkError, match=r"INVALID_ARGUMENT.*2"):
            session.query(query.replace("ARRAY[0.0, 2.0]", "ARRAY[0.0, 2.0, 3.0]"))


@pytest.fixture(scope="module")
def connectorless(tmp_path_factory, gateway):
    with cluster_with(tmp_path_factory.mktemp("connectorless"), gateway) as cluster:
        yield cluster


PROGRAM = """
import java.util.List;
import org.apache.flink.connector.lance.LanceVectorSearch;
import org.apache.flink.connector.lance.config.LanceOptions.MetricType;

public class Program {
    public static void main(String[] args) throws Exception {
        LanceVectorSearch search = LanceVectorSearch.builder()
            .datasetPath(args[0])
            .columnName("embedding")
            .metricType(MetricType.COSINE)
            .nprobes(20)
            .ef(100)
            .refineFactor(2)
            .build();
        search.open();
        List<LanceVectorSearch.SearchResult> results = search.search(new float[] {0f, 3f}, 2);
        for (LanceVectorSearch.SearchResult result : results) {
            System.out.println(result.getRowData().getLong(0) + " " + result.getDistance());
        }
        System.out.println(search.getRowType().asSummaryString());
        System.out.println(search.search(new float[] {0f, 3f}, 2, "id < 8").size());
        search.close();
    }
}
"""


def test_a_program_for_another_connector_searches_unchanged(gateway, client, name, tmp_path):
    client.put(
        name, pa.table({"id": [7, 8], "embedding": pa.array([[1.0, 0.0], [0.0, 1.0]], pa.list_(pa.float32(), 2))})
    )
    (tmp_path / "Program.java").write_text(PROGRAM)
    jars = [*(flink.prepare() / "lib").glob("*.jar"), paths.connector_jar(), paths.aliases_jar()]
    argv = ["java", "-cp", ":".join(map(str, jars)), str(tmp_path / "Program.java"), name]
    env = {**clean_environment(), "LANCE_GATEWAY_URI": gateway.uri}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "8 0.0",
        "7 1.0",
        "ROW<`id` BIGINT, `embedding` ARRAY<FLOAT>> NOT NULL",
        "1",
    ]
