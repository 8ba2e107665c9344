"""`make bench [BENCH=name,name]`."""

import sys

from . import changes, flink_rows, merges, report, rows, search, upkeep, writers

BENCHMARKS = {
    "start": rows.start,
    "first": rows.first,
    "scan": rows.scan,
    "put": rows.put,
    "commit": writers.commit,
    "writers": writers.memory,
    "merge": merges.merge,
    "feed": changes.feed,
    "sustained": changes.sustained,
    "lookup": search.lookup,
    "knn": search.knn,
    "bulk": search.bulk,
    "qps": search.qps,
    "index": search.index,
    "busy": search.busy,
    "flink": flink_rows.run,
    "upkeep": upkeep.run,
}


def main() -> int:
    wanted = [name for arg in sys.argv[1:] for name in arg.split(",")] or list(BENCHMARKS)
    if unknown := [w for w in wanted if w not in BENCHMARKS]:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in wanted:
        print(f"\n{name}", flush=True)
        lines = BENCHMARKS[name]()
        report.show(lines)
        print(f"-> {report.save(name, lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
