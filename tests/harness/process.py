"""Child processes that end with their parent, and waiting without guessing how long."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class Gone(RuntimeError):
    """A process ended that should be running."""


def eventually(check: Callable[[], T], within: float = 30.0, what: str = "", every: float = 0.05) -> T:
    """The first true answer of `check`; asks again until `within` seconds are over."""
    end = time.monotonic() + within
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"{what or check.__doc__ or 'it'} did not happen within {within:g} s")
        time.sleep(every)


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def clean_environment() -> dict[str, str]:
    """Ours without the options of a gateway: a test says itself what it sets."""
    return {k: v for k, v in os.environ.items() if not k.startswith("LANCE_GATEWAY_")}


def _dying_with_parent(argv: list[str]) -> list[str]:
    """The kernel ends it with us, even if we are killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else argv


class Process:
    """One child in its own session, so that Ctrl-C reaches us and not it: we stop it in order.

    With `outlive` it stays when we end.
    """

    def __init__(self, argv: list[str | Path], log: Path, env: dict[str, str] | None = None, outlive: bool = False):
        self.name = Path(argv[0]).name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(a) for a in argv]
        # Two files: the ready line is read from stdout, and must not be cut by a log line.
        self.out = log.with_suffix(".out")
        with open(log, "ab") as err, open(self.out, "wb") as out:
            self.popen = subprocess.Popen(
                command if outlive else _dying_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**clean_environment(), **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def stdout(self) -> str:
        return self.out.read_text(errors="replace")

    def check_alive(self) -> None:
        code = self.popen.poll()
        if code is not None:
            raise Gone(f"{self.name} ended with {code}:\n{self.tail()}")

    def tail(self, lines: int = 30) -> str:
        text = self.stdout() + self.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def signal(self, number: int) -> None:
        """To the process and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def terminate(self, within: float = 30.0) -> int:
        """SIGTERM, and SIGKILL if that is not enough. The exit code."""
        if self.popen.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                self.popen.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.popen.wait()

    def kill(self) -> int:
        self.signal(signal.SIGKILL)
        return self.popen.wait()

    def rss(self) -> int:
        """Resident bytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise Gone(f"{self.name} has no memory any more")


def peak_until_quiet(value: Callable[[], float], noise: float, quiet: float = 1.0, within: float = 60.0) -> float:
    """The highest value that was seen, once none has been `noise` above it for `quiet` seconds."""
    highest = value()
    since = time.monotonic()

    def rested():
        nonlocal highest, since
        now = value()
        if now > highest + noise:
            since = time.monotonic()
        highest = max(highest, now)
        return time.monotonic() - since > quiet

    eventually(rested, within, "rest")
    return highest
