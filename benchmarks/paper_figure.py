"""The Delta Lake paper's figure on metadata: how long a first selective query takes as partitions grow.

    python -m benchmarks.paper_figure [--partitions 1000 --partitions 10000] [--engine deltaward] [--runs 3]
    python -m benchmarks.paper_figure --plot

Tables of 1,000 to 1,000,000 partitions with one file each (paper, section 6.1); each query reads the ten rows
of one partition, in a process of its own that has run the same query on a small table before. Writes
`benchmarks/results/bench-paper-figure.json` after each table; `--plot` draws it to `paper-figure.svg` beside
it and needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contestant import ROOT, Contestant
from benchmarks.partitioned_table import ROWS_PER_FILE, partitioned_table

RESULT = ROOT / "benchmarks" / "results" / "bench-paper-figure.json"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 10
ENGINES = {
    "deltaward": "deltaward",
    "deltalake": "deltalake",
    "delta_spark": "delta-spark",
    "parquet_files": "Parquet (pyarrow)",
    "spark_plain": "Parquet (Spark)",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--partitions", type=int, action="append")
    parser.add_argument("--engine", choices=list(ENGINES), action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one query")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--plot", action="store_true", help="draw what was measured")
    options = parser.parse_args()
    if options.plot:
        draw(json.loads(options.output.read_text()), options.output.with_name("paper-figure.svg"))
        return 0
    report: dict[str, Any] = {
        "command": "python -m benchmarks.paper_figure " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "platform": platform.machine()},
        "packages": {name: version(name) for name in ("pyarrow", "deltalake", "pyspark")},
        "partitions": {},
    }
    for size in options.partitions or SIZES:
        table = partitioned_table(options.cache, size)
        found = {
            engine: [first_query(engine, table, size, run, options) for run in range(options.runs)]
            for engine in options.engine or ENGINES
        }
        report["partitions"][str(size)] = found
        options.output.write_text(json.dumps(report, indent=1) + "\n")
        shown = ", ".join(f"{engine} {_shown(times)}" for engine, times in found.items())
        print(f"{size} partitions: {shown}", flush=True)
    return 0


def first_query(
    engine: str, table: Path, partitions: int, run: int, options: argparse.Namespace
) -> float | None:
    """Seconds; None when the query did not end in time."""
    small = partitioned_table(options.cache, WARM_UP)
    with Contestant(engine, log=options.cache / "workers.log") as contestant:
        contestant.time("first_query", uri=str(small), column="p", value=3)
        watchdog = threading.Timer(options.timeout, contestant.kill)
        watchdog.start()
        try:
            value = (partitions * (run + 1)) // (options.runs + 1)
            timing = contestant.time("first_query", uri=str(table), column="p", value=value)
        except RuntimeError:
            if watchdog.is_alive():
                raise
            return None
        finally:
            watchdog.cancel()
    if timing.value != ROWS_PER_FILE:
        raise AssertionError(f"{engine} found {timing.value} rows")
    return round(timing.seconds, 4)


def _shown(times: list[float | None]) -> str:
    ended = [one for one in times if one is not None]
    return f"{median(ended):.3f} s" if ended else "out of time"


def draw(report: dict[str, Any], path: Path) -> None:
    """One line for each engine, both axes logarithmic; what ran out of time has no point."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deltaward"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.2))
    for engine, label in ENGINES.items():
        points = [
            (int(size), median([one for one in found[engine] if one is not None]))
            for size, found in report["partitions"].items()
            if any(one is not None for one in found.get(engine, ()))
        ]
        if points:
            late = [
                int(size) for size, found in report["partitions"].items() if None in found.get(engine, ())
            ]
            # What did not end has no point, which is not to look like a choice.
            more = f" (out of time at {min(late):,})" if late else ""
            axes.plot(*zip(*sorted(points), strict=True), marker="o", label=label + more)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="partitions, one file each",
        ylabel="first selective query, seconds",
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
