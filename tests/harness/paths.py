"""Where things are. Everything that is downloaded or made at run time lives below CACHE."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("GATEWAY_CACHE") or ROOT / ".cache").resolve()
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


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


def connector_jar() -> Path:
    """The shaded jar for Flink 2.1."""
    folder = ROOT / "client-java" / "flink" / "lance-flink-2.1" / "target"
    wrong = ("original-", "-sources", "-javadoc", "-tests")
    jars = [p for p in folder.glob("lance-flink-2.1-*.jar") if not any(w in p.name for w in wrong)]
    if len(jars) != 1:
        raise FileNotFoundError(
            f"one lance-flink-2.1-*.jar is expected in {folder}, found {len(jars)}: run `make build`"
        )
    return jars[0]
