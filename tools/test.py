"""Runs every suite, keeps the logs in target/test, and ends with one line: N passed, N failed."""

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

LOGS = paths.TARGET / "test"
TEST_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;")


@dataclass
class Outcome:
    """Of one suite."""

    passed: int = 0
    failed: int = 0
    seconds: float = 0.0


def follow(name: str, argv: list, shown: re.Pattern, env: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """Runs with all output in the log; what matches `shown` is printed as it comes. Exit code and lines."""
    lines = []
    log = LOGS / f"{name}.log"
    with open(log, "w") as file:
        child = subprocess.Popen(
            [str(a) for a in argv],
            cwd=paths.ROOT,
            env={**clean_environment(), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for line in child.stdout:
            file.write(line)
            lines.append(line.rstrip("\n"))
            if shown.search(line):
                print("  " + line.rstrip("\n"), flush=True)
        return child.wait(), lines


def junit(reports: list[Path]) -> Outcome:
    """Sum over JUnit reports; skipped tests count as neither."""
    outcome = Outcome()
    for report in reports:
        root = ET.parse(report).getroot()
        for case in root.iter("testcase"):
            if case.find("skipped") is not None:
                continue
            bad = case.find("failure") is not None or case.find("error") is not None
            outcome.failed += bad
            outcome.passed += not bad
    return outcome


def rust() -> tuple[int, Outcome]:
    shown = re.compile(r"^\s+(Compiling|Running|Doc-tests) |^test result|^test .* FAILED$|^error|panicked at")
    code, lines = follow("rust", ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"], shown)
    outcome = Outcome()
    for line in lines:
        if match := TEST_RESULT.match(line):
            outcome.passed += int(match[1])
            outcome.failed += int(match[2])
    return code, outcome


def java() -> tuple[int, Outcome]:
    folders = ("surefire-reports", "failsafe-reports")
    old = [p for f in folders for p in (paths.ROOT / "client-java").rglob(f"target/{f}")]
    for folder in old:
        shutil.rmtree(folder)
    shown = re.compile(r"Tests run:|BUILD|ERROR|Building lance")
    # Modules beside each other: their tests mostly wait, for checkpoints.
    argv = ["tools/mvn", "verify", "-fae", "-T", "1C"]
    code, _ = follow("java", argv, shown, env={"LANCE_GATEWAY_BIN": str(paths.gateway_binary())})
    reports = [p for f in folders for p in (paths.ROOT / "client-java").rglob(f"target/{f}/TEST-*.xml")]
    return code, junit(reports)


def e2e() -> tuple[int, Outcome]:
    report = LOGS / "e2e.xml"
    report.unlink(missing_ok=True)
    # Two at once, each with a gateway and a cluster of its own: most of the time goes by in waiting for checkpoints.
    beside = ("-n", "2", "--dist", "loadfile")
    argv = [sys.executable, "-m", "pytest", "-v", "--color=no", *beside, f"--junitxml={report}", "tests/e2e"]
    code, _ = follow("e2e", argv, re.compile(r"PASSED|FAILED|ERROR|^E  "), env={"PYTHONUNBUFFERED": "1"})
    return code, junit([report] if report.exists() else [])


SUITES = {"rust": rust, "java": java, "e2e": e2e}


def main() -> int:
    wanted = sys.argv[1:] or list(SUITES)
    if unknown := [w for w in wanted if w not in SUITES]:
        print(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    total = Outcome()
    for name in wanted:
        print(f"{name}: the whole output goes to {LOGS / name}.log", flush=True)
        start = time.monotonic()
        try:
            code, outcome = SUITES[name]()
        except (OSError, ET.ParseError) as e:
            print(f"  {e}")
            code, outcome = 1, Outcome()
        # A suite that crashed, or in which nothing ran, has failed even if no test says so.
        if outcome.failed == 0 and (code != 0 or outcome.passed == 0):
            print(f"  {name} ended with exit code {code} after {outcome.passed} tests: counted as a failure")
            outcome.failed = 1
        outcome.seconds = time.monotonic() - start
        print(f"{name}: {outcome.passed} passed, {outcome.failed} failed in {outcome.seconds:.0f} s", flush=True)
        total.passed += outcome.passed
        total.failed += outcome.failed
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
