"""`make matrix`: a real cluster of every supported Flink and Java runs the demo's job and the tests that kill it.

Before that, all of the connector's own tests run on the Flinks on which `make test` leaves some out.

Ends with a table, and one line: N passed, N failed. FLINK_VERSION and FLINK_JAVA narrow it.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from harness import paths
from harness.process import clean_environment

# The oldest and the newest patch release that each connector is for, and what Java they run on.
RELEASES = {
    "1.20.1": ("11", "17", "21"),
    "1.20.5": ("11", "17", "21"),
    "2.1.3": ("17", "21"),
    "2.2.1": ("17", "21"),
    "2.3.0": ("17", "21"),
}
# Where `make test` leaves out some of the connector's own tests.
LEFT_OUT = ("1.20", "2.2", "2.3")
# Kills and restarts, and what differs most between releases: types, and the native code of a Unix socket.
TESTS = "killed or restart or every_type or unix_socket"
LOGS = paths.TARGET / "matrix"


@dataclass
class Result:
    """Of one cluster."""

    flink: str
    java: str
    demo: str
    passed: int
    failed: int
    seconds: float


def run(argv: list[str], log: Path, env: dict[str, str]) -> tuple[int, str]:
    """Exit code and output, which is kept."""
    with open(log, "w") as file:
        code = subprocess.call(
            argv, cwd=paths.ROOT, env={**clean_environment(), **env}, stdout=file, stderr=subprocess.STDOUT
        )
    return code, log.read_text(errors="replace")


def counted(report: Path) -> tuple[int, int]:
    """Tests that passed and that failed; a skipped one has not passed."""
    if not report.exists():
        return 0, 0
    cases = list(ET.parse(report).getroot().iter("testcase"))
    passed = sum(1 for c in cases if all(c.find(bad) is None for bad in ("failure", "error", "skipped")))
    return passed, len(cases) - passed


def shared_tests() -> tuple[int, int]:
    """All of the connector's own tests with a cluster, of which `make test` leaves some out."""
    modules = [f"lance-flink-{minor}" for minor in LEFT_OUT]
    reports = [paths.ROOT / "client-java" / "flink" / m / "target" / "failsafe-reports" for m in modules]
    for folder in reports:
        shutil.rmtree(folder, ignore_errors=True)
    only = ["-pl", ",".join(f":{m}" for m in modules), "-am", "-Dflink.tests.left-out=none"]
    no_unit_tests = ["-Dtest=none", "-Dsurefire.failIfNoSpecifiedTests=false"]
    env = {"LANCE_GATEWAY_BIN": str(paths.gateway_binary())}
    code, _ = run(["tools/mvn", "verify", "-fae", *only, *no_unit_tests], LOGS / "shared-tests.log", env)
    counts = [counted(report) for folder in reports for report in folder.glob("TEST-*.xml")]
    passed, failed = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return passed, failed or int(code != 0 or passed == 0)


def attempt(flink: str, java: str) -> Result:
    """Both on one release of Flink and of Java."""
    start = time.monotonic()
    env = {"FLINK_VERSION": flink, "FLINK_JAVA": java}
    logs = LOGS / f"flink-{flink}-java-{java}"
    logs.mkdir(parents=True, exist_ok=True)
    code, output = run([sys.executable, "-u", "-m", "demo"], logs / "demo.log", env)
    rate = re.search(r"([\d,]+ rows) in ([\d.]+ s)", output)
    demo = f"{rate[1]} in {rate[2]}" if code == 0 and rate else "failed"
    report = logs / "tests.xml"
    report.unlink(missing_ok=True)
    pytest = [sys.executable, "-m", "pytest", "-v", "--color=no", f"--junitxml={report}", "-k", TESTS]
    code, _ = run([*pytest, "tests/e2e/test_flink.py"], logs / "tests.log", env)
    passed, failed = counted(report)
    if failed == 0 and (code != 0 or passed == 0):
        failed = 1
    return Result(flink, java, demo, passed, failed, time.monotonic() - start)


def main() -> int:
    wanted = os.environ.get("FLINK_VERSION"), os.environ.get("FLINK_JAVA")
    pairs = [
        (flink, java)
        for flink, javas in RELEASES.items()
        for java in javas
        if wanted[0] in (None, "", flink) and wanted[1] in (None, "", java)
    ]
    if not pairs:
        known = "; ".join(f"{flink} on {', '.join(javas)}" for flink, javas in RELEASES.items())
        print(f"there is no such pair; there are {known}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"{len(pairs)} clusters; the whole output goes to {LOGS}", flush=True)
    shared = (0, 0)
    if not any(wanted):
        shared = shared_tests()
        on = ", ".join(LEFT_OUT)
        print(f"  the connector's tests on Flink {on}: {shared[0]} passed, {shared[1]} failed", flush=True)
    results = []
    for flink, java in pairs:
        result = attempt(flink, java)
        results.append(result)
        print(
            f"  Flink {flink} on Java {java}: demo {result.demo}; {result.passed} tests passed, "
            f"{result.failed} failed in {result.seconds:.0f} s",
            flush=True,
        )
    print("\n| Flink | Java | Demo | Tests |\n|---|---|---|---|")
    for r in results:
        print(f"| {r.flink} | {r.java} | {r.demo} | {r.passed} passed, {r.failed} failed |")
    passed = shared[0] + sum(r.passed + (r.demo != "failed") for r in results)
    failed = shared[1] + sum(r.failed + (r.demo == "failed") for r in results)
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
