"""The command line as people run it."""

import subprocess

from . import paths
from .process import clean_environment


def run(
    uri: str, *args: object, ok: bool = True, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The answer has returncode, stdout and stderr."""
    done = subprocess.run(
        [str(paths.lgw_binary()), *map(str, args)],
        env={**clean_environment(), "LANCE_GATEWAY_URI": uri, **(env or {})},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    if ok:
        assert done.returncode == 0, done.stderr
    return done
