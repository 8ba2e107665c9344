"""`make down`: stops what `make up` left running. The tables stay in .cache/up/warehouse."""

import json
import sys

import psutil

from harness import paths

WORK = paths.CACHE / "up"
STATE = WORK / "state.json"


def _ours(pid: int) -> psutil.Process | None:
    """The process, if it is still the one that we started and not another that got its number."""
    try:
        process = psutil.Process(pid)
        ours = str(WORK) in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE
        return process if ours else None
    except psutil.Error:
        return None


def running() -> dict | None:
    """What `make up` left, if all of it still runs."""
    if not STATE.exists():
        return None
    state = json.loads(STATE.read_text())
    return state if all(_ours(pid) for pid in state["pids"]) else None


def main() -> int:
    if not STATE.exists():
        return 0
    processes = [p for p in map(_ours, json.loads(STATE.read_text())["pids"]) if p]
    for process in processes:
        process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=30)
    for process in alive:
        process.kill()
    STATE.unlink()
    print(f"stopped {len(processes)} processes; the tables are still in {WORK}/warehouse")
    return 0


if __name__ == "__main__":
    sys.exit(main())
