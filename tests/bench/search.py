"""Searches beside Lance in process, on the same table and index: M5 one after the other, M6 many on one stream, M7
several at once, with the curve of recall and speed. And lookups by keys, builds of indexes, and commits beside them."""

import json
from statistics import quantiles

from harness.gateway import Gateway

from . import curve, report, vectors
from .rows import WORK, measure, serving_folder
from .vectors import Prepared, prepared

RECALL = 0.95
IN_FLIGHT = (1, 2, 4, 8)
# The curve: as many as there are cores of the machine that the goals are for.
CURVE_IN_FLIGHT = 2
NPROBES = (2, 4, 8, 16, 32)
REFINE_FACTORS = (0, 2, 5, 10)
# Queries of one point.
CURVE_QUERIES = 250
# Queries that are compared with every vector.
FEW = 50


def effort(nprobes: int, refine_factor: int | None) -> list[str]:
    refine = ["--refine-factor", str(refine_factor)] if refine_factor else []
    return ["--nprobes", str(nprobes), *refine]


def along_the_curve(gateway: Gateway, of: Prepared) -> dict:
    table = of.vectors.table
    lists = {"--nprobes": NPROBES, "--refine-factors": REFINE_FACTORS}
    more = [arg for name, values in lists.items() for arg in (name, ",".join(map(str, values)))]
    measured = measure(
        gateway, "curve", table, of.queries, "--first", CURVE_QUERIES, "--in-flight", CURVE_IN_FLIGHT, *more, runs=2
    )
    of.curve.write_text(json.dumps(measured, indent=1))
    return measured


def rate(measured: dict, point: dict, side: str) -> float:
    """Queries per second."""
    return measured["queries"] / report.median(point["seconds"][side])


def best(measured: dict, side: str) -> dict:
    """The fastest of those that find enough."""
    good = [point for point in measured["points"] if point["recall"][side] >= RECALL]
    if not good:
        raise AssertionError(f"no point of the curve reaches a recall of {RECALL}")
    return max(good, key=lambda point: rate(measured, point, side))


def operating_point(gateway: Gateway, of: Prepared) -> list[str]:
    """The least effort in process that finds enough, of the last curve."""
    measured = json.loads(of.curve.read_text()) if of.curve.exists() else along_the_curve(gateway, of)
    point = best(measured, "in_process")
    return effort(point["nprobes"], point["refine_factor"])


def knn() -> list[report.Line]:
    lines = []
    for name in vectors.TABLES:
        of = prepared(name)
        with serving_folder(of.warehouse) as gateway:
            args = [of.vectors.table, of.queries, "--also", gateway.socket_uri, *operating_point(gateway, of)]
            m = measure(gateway, "knn", *args, runs=3)
        seconds, recall = m["seconds"], m["recall"]
        what = f"KNN {name}, recall {recall['gateway']:.3f} of {recall['in_process']:.3f}"
        lines.append(report.more("M5", f"{what}, TCP", seconds["gateway"], seconds["in_process"], 0.0005))
        lines.append(report.more("M5", f"{what}, Unix socket", seconds["also"], seconds["in_process"], 0.0005))
    return lines


def bulk() -> list[report.Line]:
    lines = []
    for name in vectors.TABLES:
        of = prepared(name)
        with serving_folder(of.warehouse) as gateway:
            point = operating_point(gateway, of)
            ways = {
                f"index, recall {RECALL}": point,
                f"index, {point[1]} partitions, not refined": point[:2],
                "no index": ["--first", FEW],
            }
            for way, args in ways.items():
                m = measure(gateway, "bulk", of.vectors.table, of.queries, *args, runs=5)
                lines.append(report.faster("M6", f"one stream over calls, {name}, {way}", m["bulk"], m["unary"], 3))
    return lines


def qps() -> list[report.Line]:
    lines = []
    for name in vectors.TABLES:
        of = prepared(name)
        with serving_folder(of.warehouse) as gateway:
            measured = along_the_curve(gateway, of)
            point = operating_point(gateway, of)
            args = [of.vectors.table, of.queries, *point, "--in-flight", ",".join(map(str, IN_FLIGHT))]
            m = measure(gateway, "qps", *args, runs=5)
        for at in m["points"]:
            rates = [[m["queries"] / time for time in at["seconds"][side]] for side in ("gateway", "in_process")]
            what = f"QPS {name}, {at['in_flight']} in flight, recall {at['recall']['gateway']:.3f}"
            lines.append(report.rate("M7", what, *rates, 0.9, "queries/s"))
        sides = [[rate(measured, best(measured, side), side)] for side in ("gateway", "in_process")]
        what = f"QPS {name}, the best of the curve at recall {RECALL}"
        lines.append(report.rate("M7", what, *sides, 0.9, "queries/s"))
        saved = report.FOLDER / f"curve-{name}.json"
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.write_text(json.dumps(measured, indent=1))
        curve.draw(name, measured, saved.with_suffix(".svg"))
    return lines


def lookup() -> list[report.Line]:
    of = prepared("glove")
    lines = []
    with serving_folder(of.warehouse) as gateway:
        for keys, in_flight in ((1, 1), (1, 16), (100, 4)):
            args = {"--batches": 400, "--keys": keys, "--in-flight": in_flight}
            m = measure(gateway, "lookup", of.vectors.table, *(a for pair in args.items() for a in pair), runs=5)
            rates = [[m["keys"] / time for time in m[side]] for side in ("gateway", "in_process")]
            what = f"lookups glove, batches of {keys}, {in_flight} in flight"
            lines.append(report.rate("", what, *rates, None, "keys/s"))
    return lines


def building(of: Prepared) -> list:
    """A table to build indexes of, and which."""
    parts = {"--partitions": vectors.PARTITIONS, "--sub-vectors": of.vectors.sub_vectors}
    return [of.vectors.table, *(arg for pair in parts.items() for arg in pair)]


def index() -> list[report.Line]:
    lines = []
    for name in vectors.TABLES:
        of = prepared(name)
        folder = WORK / "index"
        vectors.linked(of.path, folder / of.path.name)
        with serving_folder(folder) as gateway:
            m = measure(gateway, "index", *building(of), runs=2)
        lines.append(report.longer("", f"build of IVF_PQ, {name}", m["gateway"], m["in_process"], 1.05))
    return lines


def busy() -> list[report.Line]:
    of = prepared("clustered")
    folder = WORK / "index"
    vectors.linked(of.path, folder / of.path.name)
    with serving_folder(folder) as gateway:
        m = measure(gateway, "busy", *building(of), runs=2)
    lines = []
    for percent in (50, 99):
        beside, alone = (quantiles(m[side], n=100)[percent - 1] for side in ("beside", "alone"))
        what = f"p{percent} of {len(m['beside'])} commits beside builds, over alone"
        lines.append(
            report.Line(
                "", what, beside, alone, beside / alone, "", "s", {"ours": m["beside"], "reference": m["alone"]}
            )
        )
    return lines
