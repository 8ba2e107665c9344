"""Where things are. Everything that is downloaded or made at run time lives below CACHE."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("GATEWAY_CACHE") or ROOT / ".cache").resolve()
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


# The release whose cluster runs; `make matrix` tries others.
FLINK_VERSION = os.environ.get("FLINK_VERSION") or "2.1.3"


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process at a time makes a thing of the cache; tests run in several."""
    folder = CACHE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built(name: str) -> Path:
    """A program that cargo built. GATEWAY_PROFILE=release takes the optimised one."""
    folder = os.environ.get("GATEWAY_PROFILE", "debug")
    path = TARGET / folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make build`")
    return path


def gateway_binary() -> Path:
    """The service."""
    override = os.environ.get("GATEWAY_BIN")
    return Path(override).resolve() if override else built("lance-gateway")


def lgw_binary() -> Path:
    """The command-line tool."""
    override = os.environ.get("LGW_BIN")
    return Path(override).resolve() if override else built("lgw")


def minor(version: str) -> str:
    """2.1 of 2.1.3: the releases that one connector serves."""
    return version.rpartition(".")[0]


def connector_jar() -> Path:
    """The shaded jar for the release of Flink that runs."""
    return _jar(f"lance-flink-{minor(FLINK_VERSION)}")


def aliases_jar() -> Path:
    """The names of other connectors, for all releases of Flink."""
    return _jar("lance-flink-aliases")


def _jar(name: str) -> Path:
    folder = ROOT / "client-java" / "flink" / name / "target"
    wrong = ("original-", "-sources", "-javadoc", "-tests")
    jars = [p for p in folder.glob(f"{name}-*.jar") if not any(w in p.name for w in wrong)]
    if len(jars) != 1:
        raise FileNotFoundError(f"one {name}-*.jar is expected in {folder}, found {len(jars)}: run `make build`")
    return jars[0]
