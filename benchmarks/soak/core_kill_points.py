"""Every kill point of every operation that writes, in every kind of store.

    nice python benchmarks/soak/core_kill_points.py [--seed 1] [--workers 2] [--operations append merge]

A process is killed by SIGKILL before and after each I/O step (`tests/concurrency/kill_points`); in a
directory the power fails, too, at each system call that changes something, in three ways. The table is then
held against its model by `deltalake` and as bytes, and the operation is run twice more with its key.

Writes `benchmarks/results/soak-core-kill-points.json`, a row for each operation and store; exits 1 when
anything was not right.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.concurrency.kill_points.bench import Bench, bench  # noqa: E402 - a program
from tests.concurrency.kill_points.operations import OPERATIONS  # noqa: E402
from tests.concurrency.kill_points.places import Place  # noqa: E402
from tests.concurrency.kill_points.points import pairs  # noqa: E402
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-core-kill-points.json"
SHOWN_FAULTS = 20

_open: list[Bench] = []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"), help="orders the work")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, default=list(OPERATIONS))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    commit, dirty = git("rev-parse", "HEAD") or "unknown", bool(git("status", "--porcelain", "delta_core"))
    began = time.monotonic()
    work = [pair for pair in pairs() if pair[0] in options.operations]
    Random(options.seed).shuffle(work)
    rows = []
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawning, initializer=_begin) as pool:
        for row in pool.map(run_pair, work):
            rows.append(row)
            print(f"{row['operation']}, {row['store']}: {row}", file=sys.stderr, flush=True)
    order = {pair: index for index, pair in enumerate(pairs())}
    rows.sort(key=lambda row: order[row["operation"], Place(row["store"])])
    report = {
        **report_head("core-kill-points", seed=options.seed, seconds=time.monotonic() - began),
        "commit": commit,
        "uncommitted_changes": dirty,
        "judge": f"deltalake {version('deltalake')}",
        "counts": counted(rows),
        "operations": rows,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(_document(report))
    for name, count in report["counts"].items():
        print(f"{name:14}{count}")
    return 1 if any(row["wrong"] for row in rows) else 0


def _begin() -> None:
    """Give this worker a bench, which lasts as long as the worker."""
    warnings.simplefilter("error")
    stack = ExitStack()
    _open.append(stack.enter_context(bench()))
    # A worker ends without a word to its own variables; this one is called.
    multiprocessing.util.Finalize(None, stack.close, exitpriority=10)


def run_pair(pair: tuple[str, Place]) -> dict[str, Any]:
    """Try every point of an operation in a store."""
    operation, place = pair
    points = _open[0].points(operation, place)
    faults = {str(point): found for point in points if (found := _open[0].faults(point))}
    row: dict[str, Any] = {
        "operation": operation,
        "store": place,
        "kills": sum(point.power is None for point in points),
        "power_failures": sum(point.power is not None for point in points),
        "wrong": len(faults),
    }
    if faults:
        row["faults"] = dict(list(faults.items())[:SHOWN_FAULTS])
    return row


def counted(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Kills, power failures and faults, by store and in all."""
    kinds = ("kills", "power_failures", "wrong")
    groups = {str(place): [row for row in rows if row["store"] == place] for place in Place}
    return {
        name: {kind: sum(row[kind] for row in group) for kind in kinds}
        for name, group in {**groups, "all": rows}.items()
    }


def _document(report: Mapping[str, Any]) -> str:
    """Indented JSON with a line for each operation and store."""
    head = json.dumps({**report, "operations": []}, indent=2).removesuffix("[]\n}")
    lines = ",\n".join(f"    {json.dumps(row)}" for row in report["operations"])
    return f"{head}[\n{lines}\n  ]\n}}\n"


if __name__ == "__main__":
    sys.exit(main())
