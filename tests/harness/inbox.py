"""What streaming jobs of the tests read, and how far they have come."""

from pathlib import Path

import grpc

from . import flink
from .process import eventually
from .wire import reason

COLUMNS = "id BIGINT, word STRING"


class Inbox:
    """A folder that a streaming job watches; a file that is dropped into it is read once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.folder.mkdir()
        self.files = 0

    def drop(self, start: int, stop: int) -> None:
        part = self.folder.with_name(f"{self.folder.name}-{self.files}.part")
        part.write_text("".join(f"{i},w{i}\n" for i in range(start, stop)))
        part.rename(self.folder / f"{self.files:05}.csv")
        self.files += 1

    def declare(self, session: flink.Session, name: str, watched: bool = True) -> None:
        watch = ", 'source.monitor-interval' = '50ms'" if watched else ""
        session.execute(
            f"CREATE TABLE {name} ({COLUMNS}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{self.folder.as_uri()}'{watch})"
        )


def rows_in(client, name: str) -> int:
    """0 while nobody has made the table: the first row does."""
    try:
        return client.count(name)
    except grpc.RpcError as e:
        if reason(e) != "TABLE_NOT_FOUND":
            raise
        return 0


def until_rows(cluster, client, job: str, name: str, rows: int) -> None:
    """Takes checkpoints until the table has that many rows."""

    def there():
        cluster.checkpoint(job)
        return rows_in(client, name) == rows

    eventually(there, 60, f"{rows} rows in {name}", every=0.2)
