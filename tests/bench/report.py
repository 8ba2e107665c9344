"""What was measured: a table for people, JSON for machines."""

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness import paths

FOLDER = paths.TARGET / "bench"


@dataclass
class Line:
    """One measurement: ours beside its reference."""

    metric: str
    what: str
    ours: float
    reference: float | None
    ratio: float | None
    goal: str
    unit: str
    runs: dict[str, list[float]] = field(default_factory=dict)


def median(values: list[float]) -> float:
    return statistics.median(values)


def faster(metric: str, what: str, ours: list[float], reference: list[float], goal: float | None) -> Line:
    """Ratio of speeds: reference time over our time; 1 is as fast, more is faster."""
    o, r = median(ours), median(reference)
    text = f">= {goal}" if goal else ""
    return Line(metric, what, o, r, r / o, text, "s", {"ours": ours, "reference": reference})


def longer(metric: str, what: str, ours: list[float], reference: list[float], goal: float) -> Line:
    """Ratio of times: our time over the reference's."""
    o, r = median(ours), median(reference)
    return Line(metric, what, o, r, o / r, f"<= {goal}", "s", {"ours": ours, "reference": reference})


def more(metric: str, what: str, ours: list[float], reference: list[float], goal: float) -> Line:
    """Our time beside the reference's, which it may be longer than by `goal` seconds."""
    o, r = median(ours), median(reference)
    return Line(metric, what, o, r, o / r, f"<= +{goal:g} s", "s", {"ours": ours, "reference": reference})


def rate(metric: str, what: str, ours: list[float], reference: list[float], goal: float | None, unit: str) -> Line:
    """Ratio of what is done in a second."""
    o, r = median(ours), median(reference)
    text = f">= {goal}" if goal else ""
    return Line(metric, what, o, r, o / r, text, unit, {"ours": ours, "reference": reference})


def plain(metric: str, what: str, values: list[float], goal: str, unit: str) -> Line:
    return Line(metric, what, median(values), None, None, goal, unit, {"ours": values})


def save(name: str, lines: list[Line]) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({"benchmark": name, **machine, "lines": [asdict(line) for line in lines]}, indent=1))
    return path


def show(lines: list[Line]) -> None:
    table = [("metric", "what", "ours", "reference", "ratio", "goal", "min..max of ours")]
    for line in lines:
        number = "{:,.4g}" if line.unit == "s" else "{:,.0f}"
        ours = f"{number} {line.unit}".format(line.ours)
        reference = "" if line.reference is None else number.format(line.reference)
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
        spread = f"{number}..{number}".format(min(line.runs["ours"]), max(line.runs["ours"]))
        table.append((line.metric, line.what, ours, reference, ratio, line.goal, spread))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip(), flush=True)
