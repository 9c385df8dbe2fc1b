"""Every cell of the ambiguity matrix, for this library and for the `deltalake` package.

    nice python benchmarks/soak/ambiguity.py [--seed 1] [--stores s3 azure]

The decisive request of a commit is lost, refused, left without an answer or doubled, before or after the
server carries it out, for ten operations on six stores (`tests/concurrency/ambiguity`); the table's raw bytes
are then held against what the call said. `deltalake` gets the same faults where its own client commits
with one conditional request, S3 and Azure, for the six operations that it has as well. There it deletes where
this library replaces.

Writes `benchmarks/results/soak-ambiguity.json`, a row for each cell; exits 1 when a cell of this library is
not right.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.concurrency.ambiguity.arena import arena  # noqa: E402 - a program
from tests.concurrency.ambiguity.cells import STORES, Cell, Step, cells_of  # noqa: E402
from tests.concurrency.ambiguity.clients import OURS, PEER, PEER_OPERATIONS  # noqa: E402
from tests.concurrency.ambiguity.judge import Outcome, Verdict  # noqa: E402
from tests.support.emulators.installation import installed  # noqa: E402
from tests.support.emulators.places import PLACES  # noqa: E402
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-ambiguity.json"
PEER_STORES = ("s3", "azure")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"), help="orders the cells")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    # Each fault is worth a warning of the library, which here is no news.
    logging.disable(logging.WARNING)
    commit, dirty = git("rev-parse", "HEAD") or "unknown", bool(git("status", "--porcelain", "delta_core"))
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    seconds: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    for store in options.stores:
        reasons = [reason for server in PLACES[store][1] if (reason := installed(server)) is not None]
        if reasons:
            missing[store] = "; ".join(reasons)
            continue
        some, seconds[store] = run_store(store, options.seed)
        rows += some
        print(f"{store}: {len(some)} cells, {seconds[store]}", file=sys.stderr, flush=True)
    counts = {"ours": counted(rows, "ours"), "peer": counted(rows, "peer")}
    report = {
        **report_head("ambiguity", seed=options.seed, seconds=time.monotonic() - began),
        "commit": commit,
        "uncommitted_changes": dirty,
        "peer": f"deltalake {version('deltalake')}",
        "not_run": missing,
        "seconds": seconds,
        "counts": counts,
        "cells": rows,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(_document(report))
    print_counts(counts)
    right = all(row["ours"] == Outcome.ONCE for row in rows)
    print(f"{options.output.name}: {len(rows)} cells in {report['duration_seconds']} s")
    return 0 if right and not missing else 1


def run_store(store: str, seed: str) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A row for each cell of a store, and how long each client took."""
    cells = list(cells_of(store))
    Random(f"{seed} {store}").shuffle(cells)
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder, arena(store, Path(folder)) as place:
        began = time.monotonic()
        ours = place.run_all(cells, OURS)
        seconds["ours"] = round(time.monotonic() - began, 1)
        peer: Mapping[Cell, Verdict] = {}
        if store in PEER_STORES:
            began = time.monotonic()
            peer = place.run_all([cell for cell in cells if cell.operation in PEER_OPERATIONS], PEER)
            seconds["peer"] = round(time.monotonic() - began, 1)
    return [row(cell, ours[cell], peer.get(cell)) for cell in cells_of(store)], seconds


def row(cell: Cell, ours: Verdict, peer: Verdict | None) -> dict[str, Any]:
    """A cell as it is written down."""
    found = {
        "store": cell.store,
        "fault": cell.fault.kind,
        "when": cell.fault.point,
        "operation": cell.operation,
        "ours": ours.outcome,
        "peer": peer.outcome if peer is not None else None,
    }
    if cell.step is Step.COPIES:
        found["request"] = "the commit file, after the entry in DynamoDB"
    if ours.outcome is not Outcome.ONCE:
        found["detail"] = ours.detail
    return found


def counted(rows: list[dict[str, Any]], client: str) -> dict[str, dict[str, int]]:
    """How often each outcome came, by store."""
    stores = dict.fromkeys(row["store"] for row in rows if row[client] is not None)
    return {
        store: dict(Counter(row[client] for row in rows if row["store"] == store).most_common())
        for store in stores
    }


def print_counts(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> None:
    """The table of counts."""
    print(f"{'client':8}{'store':14}{'cells':>6}{'once':>6}{'clean':>7}{'wrong':>7}  outcomes that are wrong")
    for client, stores in counts.items():
        for store, outcomes in stores.items():
            wrong = {name: count for name, count in outcomes.items() if Outcome(name).wrong}
            clean = sum(
                count
                for name, count in outcomes.items()
                if Outcome(name) in (Outcome.FAILED_CLEANLY, Outcome.UNKNOWN)
            )
            told = ", ".join(f"{count} {name}" for name, count in wrong.items())
            print(
                f"{client:8}{store:14}{sum(outcomes.values()):6}{outcomes.get(Outcome.ONCE, 0):6}"
                f"{clean:7}{sum(wrong.values()):7}  {told}"
            )


def _document(report: Mapping[str, Any]) -> str:
    """Indented JSON with a line for each cell."""
    head = json.dumps({**report, "cells": []}, indent=2).removesuffix("[]\n}")
    lines = ",\n".join(f"    {json.dumps(cell)}" for cell in report["cells"])
    return f"{head}[\n{lines}\n  ]\n}}\n"


if __name__ == "__main__":
    sys.exit(main())
