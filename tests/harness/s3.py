"""A real S3 server: versitygw over a local folder. Its writes are atomic under If-None-Match, and it checks keys."""

import urllib.error
import urllib.request
from pathlib import Path

import pyarrow.fs as fs

from . import paths
from .process import Process, eventually, free_port

KEY = "test-access-key"
SECRET = "test-secret-key-never-to-be-printed"
REGION = "us-east-1"


def server_binary() -> Path:
    """Built by `make setup`."""
    path = paths.CACHE / "bin" / "versitygw"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make setup`")
    return path


class S3Server:
    """One server on a port of its own, with one bucket. What it acknowledged outlives its death."""

    BUCKET = "tables"

    def __init__(self, work: Path, domain: str | None = None):
        """With a domain, its buckets are also hosts below it: as a proxy the server takes requests to such names."""
        self.work = Path(work)
        self.domain = domain
        self.port = free_port()
        self.process: Process | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def options(self, secret: str = SECRET) -> dict[str, str]:
        """Storage options for the gateway and for Lance."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_region": REGION,
            "aws_access_key_id": KEY,
            "aws_secret_access_key": secret,
            "allow_http": "true",
        }

    def start(self) -> "S3Server":
        data = self.work / "data"
        data.mkdir(parents=True, exist_ok=True)
        argv = [server_binary(), "--quiet", "--port", f"127.0.0.1:{self.port}", "--region", REGION]
        argv += ["--virtual-domain", self.domain] if self.domain else []
        argv += ["posix", data]
        env = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        self.process = Process(argv, self.work / "s3.log", env=env)
        eventually(self._answers, 60, "an answer of the S3 server")
        self.client().create_dir(self.BUCKET)
        return self

    def _answers(self) -> bool:
        self.process.check_alive()
        try:
            urllib.request.urlopen(self.endpoint, timeout=5)
        except urllib.error.HTTPError:  # it asks for a signature
            return True
        except OSError:
            return False
        return True

    def client(self) -> fs.S3FileSystem:
        """The store as a file system, beside the gateway."""
        return fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region=REGION,
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
            allow_bucket_creation=True,
        )

    def files(self, folder: str) -> list[str]:
        """Keys below a folder of the bucket."""
        selector = fs.FileSelector(f"{self.BUCKET}/{folder}", allow_not_found=True, recursive=True)
        return [f.path for f in self.client().get_file_info(selector) if f.is_file]

    def kill(self) -> None:
        """kill -9: every connection is cut."""
        self.process.kill()

    def __enter__(self) -> "S3Server":
        return self.start()

    def __exit__(self, *_) -> None:
        self.process.terminate(within=5)
