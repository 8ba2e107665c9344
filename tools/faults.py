"""Runs each test that docs/guarantees.md names, and prints its table with the results."""

import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from test import LOGS, follow

from harness import paths

GUARANTEES = paths.ROOT / "docs" / "guarantees.md"
ROW = re.compile(r"^\| (?P<fault>.+?) \| (?P<promise>.+?) \| (?P<shown>.+?) \|$")
SHOWN = re.compile(r"`([^`]+)`")
RUST_RESULT = re.compile(r"^test (?:\S+::)?(\w+)(?: - should panic)? \.\.\. (ok|FAILED)")


@dataclass
class Fault:
    """A row of the table. A test is the name of its file or class, and its own; a file alone means all of its tests."""

    fault: str
    promise: str
    tests: list[tuple[str, str]] = field(default_factory=list)


def faults() -> Iterator[Fault]:
    rows = [match for line in GUARANTEES.read_text().splitlines() if (match := ROW.match(line))]
    for row in rows[1:]:
        fault = Fault(row["fault"], row["promise"])
        place = ""
        for shown in SHOWN.findall(row["shown"]):
            # `file: test`, and then `test` for further ones of the same file.
            before, colon, test = shown.partition(": ")
            if colon:
                place, name = before, test
            elif re.search(r"\.(rs|py)$|(Test|ITCase)$", shown):
                place, name = shown, ""
            else:
                name = shown
            fault.tests.append((place.rsplit("/", 1)[-1], name))
        yield fault


Results = dict[str, dict[str, bool]]


def rust(tests: set[tuple[str, str]]) -> Results:
    """By name alone: cargo does not say in which file a test is."""
    names = {name for _, name in tests if name}
    if any(not name for _, name in tests):
        names = set()  # a whole file: everything
    argv = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", "--", *sorted(names)]
    _, lines = follow("faults-rust", argv, re.compile(r"^\s+(Compiling|Running) |FAILED$|^error"))
    found = {match[1]: match[2] == "ok" for line in lines if (match := RUST_RESULT.match(line))}
    return defaultdict(lambda: found)


def java(tests: set[tuple[str, str]]) -> Results:
    classes = defaultdict(set)
    for place, name in tests:
        classes[place].add(name)
    wanted = [c if "" in names else f"{c}#{'+'.join(sorted(names))}" for c, names in sorted(classes.items())]
    none = ["-Dsurefire.failIfNoSpecifiedTests=false", "-Dfailsafe.failIfNoSpecifiedTests=false"]
    unit = ",".join(w for w in wanted if "ITCase" not in w) or "NoTest"
    cluster = ",".join(w for w in wanted if "ITCase" in w) or "NoITCase"
    goal = ["tools/mvn", "verify", "-fae", "-pl", ":lance-flink-2.1", "-am"]
    argv = [*goal, f"-Dtest={unit}", f"-Dit.test={cluster}", *none]
    for report in (paths.ROOT / "client-java").rglob("TEST-*.xml"):
        report.unlink()
    env = {"LANCE_GATEWAY_BIN": str(paths.gateway_binary())}
    follow("faults-java", argv, re.compile(r"Tests run:|BUILD|ERROR"), env=env)
    return junit((paths.ROOT / "client-java").rglob("TEST-*.xml"))


def e2e(tests: set[tuple[str, str]]) -> Results:
    report = LOGS / "faults-e2e.xml"
    report.unlink(missing_ok=True)
    wanted = sorted(f"tests/e2e/{place}::{name}".removesuffix("::") for place, name in tests)
    argv = [sys.executable, "-m", "pytest", "-v", "--color=no", f"--junitxml={report}", *wanted]
    follow("faults-e2e", argv, re.compile(r"PASSED|FAILED|ERROR|^E  "), env={"PYTHONUNBUFFERED": "1"})
    return junit([report] if report.exists() else [])


def junit(reports) -> Results:
    """Of each class or file, and over its parameters: passed if all of them passed."""
    results: Results = defaultdict(dict)
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):
            place = case.get("classname").rsplit(".", 1)[-1]
            name = re.split(r"[\[({]", case.get("name"))[0]
            passed = all(case.find(bad) is None for bad in ("failure", "error", "skipped"))
            results[place][name] = results[place].get(name, True) and passed
    return results


def suite(place: str):
    return rust if place.endswith(".rs") else e2e if place.endswith(".py") else java


def main() -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    rows = list(faults())
    tests = defaultdict(set)
    for row in rows:
        for place, name in row.tests:
            tests[suite(place)].add((place, name))
    results = {}
    for run, wanted in tests.items():
        print(
            f"{run.__name__}: {len(wanted)} tests; the whole output goes to {LOGS}/faults-{run.__name__}.log",
            flush=True,
        )
        results[run] = run(wanted)

    def passed(place: str, name: str) -> bool:
        found = results[suite(place)][place.removesuffix(".py")]
        return bool(found) and all(found.values()) if not name else found.get(name, False)

    width = max(len(row.fault) for row in rows)
    failed = 0
    for row in rows:
        bad = [f"{place}: {name}" for place, name in row.tests if not passed(place, name)]
        failed += bool(bad)
        print(f"{'FAILED' if bad else 'held  '}  {row.fault:<{width}}  {row.promise}")
        for test in bad:
            print(f"          {test}")
    print(f"{len(rows) - failed} of {len(rows)} guarantees held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
