"""The statements of the demo."""

from harness import data
from harness.gateway import Gateway

COLUMNS = "id BIGINT, word STRING, embedding ARRAY<FLOAT>"


def words() -> str:
    """The source: CSV files, read by Flink's own file connector."""
    return f"""CREATE TABLE words ({COLUMNS}) WITH (
  'connector' = 'filesystem',
  'path' = '{data.glove_csv().as_uri()}',
  'format' = 'csv',
  'csv.array-element-delimiter' = ';'
)"""


def vectors(gateway: Gateway) -> str:
    """The Lance table, by its name in the warehouse of the gateway."""
    return f"""CREATE TABLE vectors ({COLUMNS}) WITH (
  'connector' = 'lance',
  'path' = 'vectors',
  'gateway.uri' = '{gateway.uri}'
)"""


INSERT = "INSERT INTO vectors SELECT * FROM words"
COUNT = "SELECT COUNT(*) FROM vectors"
FILTER = "SELECT id, word, embedding[1] AS x1 FROM vectors WHERE word = 'king' OR (id >= 7 AND id < 10)"
FILTER_ROWS = 4

PYTHON = """import pyarrow.flight as flight
client = flight.connect("{uri}")
info = client.get_flight_info(flight.FlightDescriptor.for_path("vectors"))
print(sum(client.do_get(e.ticket).read_all().num_rows for e in info.endpoints))"""
