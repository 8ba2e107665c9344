"""The real service, as a child process."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

from . import paths
from .process import Process, eventually

READY = re.compile(r"^lance-gateway \S+ ready: (?P<where>.*)$", re.MULTILINE)


class Gateway:
    """Starts on free ports; `config` is what a configuration file holds. With `faults`, tests may hold and break it."""

    def __init__(
        self,
        work: Path,
        warehouse: str | Path | None = None,
        config: dict | None = None,
        listen: tuple[str, ...] = ("127.0.0.1:0",),
        env: dict[str, str] | None = None,
        outlive: bool = False,
        faults: bool = False,
    ):
        self.work = Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.warehouse = warehouse or self.work / "warehouse"
        self.config = config
        self.listen = listen
        self.env = env or {}
        self.outlive = outlive
        self.faults = faults
        self.process: Process | None = None
        self.address = ""  # HOST:PORT
        self.admin = ""

    def start(self, within: float = 60.0) -> "Gateway":
        argv: list = [paths.gateway_binary(), "--warehouse", str(self.warehouse), "--admin-listen", "127.0.0.1:0"]
        for address in self.listen:
            argv += ["--listen", address]
        if self.faults:
            argv += ["--faults"]
        if self.config is not None:
            file = self.work / "gateway.yaml"
            file.write_text(json.dumps(self.config))  # every JSON document is a YAML document
            argv += ["--config", file]
        self.process = Process(argv, self.work / "gateway.log", env=self.env, outlive=self.outlive)

        def ready():
            self.process.check_alive()
            return READY.search(self.process.stdout())

        where = eventually(ready, within, "the ready line of the gateway")["where"]
        places = dict(place.strip().split(" ", 1) for place in where.split(","))
        self.address = places["grpc"]
        self.admin = places["admin"]
        # A restart comes back where clients look for it.
        self.listen = (self.address, *(a for a in self.listen if a.startswith("unix:")))
        return self

    @property
    def uri(self) -> str:
        return f"grpc://{self.address}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def rss(self) -> int:
        return self.process.rss()

    def admin_get(self, path: str) -> tuple[int, str]:
        """Status and body of the admin port."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=5) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    # Fault points: see server/lake/src/faults.

    def hold(self, point: str, times: int = 1) -> None:
        """The next `times` that come to the point wait there until it is released."""
        self._fault(point, "hold", times)

    def fail(self, point: str, times: int = 1) -> None:
        """The next `times` that come to the point get an error, as if the store had answered 500."""
        self._fault(point, "fail", times)

    def release(self, point: str) -> None:
        self._fault(point, "pass", 0)

    def _fault(self, point: str, action: str, times: int) -> None:
        url = f"http://{self.admin}/faults/{point}?times={times}"
        urllib.request.urlopen(urllib.request.Request(url, action.encode(), method="PUT"), timeout=5).close()

    def reached(self, point: str, times: int = 1, within: float = 60.0) -> None:
        """Waits until the point was reached that often since it was set."""
        urllib.request.urlopen(f"http://{self.admin}/faults/{point}?times={times}", timeout=within).close()

    def metric(self, name: str, **labels: str) -> float:
        """Sum over the samples that carry the labels."""
        _, page = self.admin_get("/metrics")
        wanted = [f'{k}="{v}"' for k, v in labels.items()]
        samples = [line for line in page.splitlines() if re.match(rf"{name}[{{ ]", line)]
        return sum(float(s.rsplit(" ", 1)[1]) for s in samples if all(w in s for w in wanted))

    def stop(self, within: float = 30.0) -> int:
        return self.process.terminate(within)

    def kill(self) -> int:
        return self.process.kill()

    def restart(self) -> "Gateway":
        """Again, on the same ports and the same warehouse."""
        return self.start()

    def __enter__(self) -> "Gateway":
        return self if self.process else self.start()

    def __exit__(self, *_) -> None:
        self.process.terminate()
