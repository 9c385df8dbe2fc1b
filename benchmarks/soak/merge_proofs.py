"""What may go wrong around a MERGE of `delta_core`: kills, other writers, unclear answers, and random cases.

    nice python benchmarks/soak/merge_proofs.py [--only model conflicts kills ambiguity] [--stores local s3]

- model: 300 random merges against the model that Spark's MERGE is held against, too.
- conflicts: every cell of the conflict matrix in which the MERGE loses or wins.
- kills: every kill point of the merges by deletion vectors and by rewriting, on each kind of store.
- ambiguity: every cell of the ambiguity matrix with the MERGE, on each store whose emulator is installed.

Writes `benchmarks/results/soak-merge-proofs.json`; exits with 1 when anything is wrong.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.concurrency.ambiguity.arena import arena  # noqa: E402 - a program
from tests.concurrency.ambiguity.cells import STORES, Operation, cells_of  # noqa: E402
from tests.concurrency.ambiguity.judge import Outcome  # noqa: E402
from tests.concurrency.kill_points.featured_bench import featured_bench  # noqa: E402
from tests.concurrency.kill_points.places import Place  # noqa: E402
from tests.concurrency.matrix import cells as matrix  # noqa: E402
from tests.support.arrow_merges import check_arrow_against_model  # noqa: E402
from tests.support.emulators.installation import installed  # noqa: E402
from tests.support.emulators.places import PLACES  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-merge-proofs.json"
MERGE = "merge without Spark"
MERGES = ("merge by vectors", "merge by rewriting")
CASES = 300
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    began = time.monotonic()
    found = {name: PARTS[name](options) for name in options.only}
    report = {
        **report_head("merge-proofs", seed=options.seed, seconds=time.monotonic() - began),
        "command": "python benchmarks/soak/merge_proofs.py",
        **found,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    for name, part in found.items():
        print(name, {key: value for key, value in part.items() if key != "wrong"}, part["wrong"][:SHOWN])
    return 1 if any(part["wrong"] for part in found.values()) else 0


def model(options: argparse.Namespace) -> dict[str, Any]:
    """Random merges against the model."""
    outcomes: Counter[str] = Counter()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
        for number in range(CASES):
            try:
                outcomes[
                    check_arrow_against_model(f"{options.seed}:{number}", Path(folder) / str(number))
                ] += 1
            except AssertionError as error:
                wrong.append(f"{options.seed}:{number}: {error}"[:500])
    return {"cases": CASES, "outcomes": dict(outcomes), "wrong": wrong}


def conflicts(options: argparse.Namespace) -> dict[str, Any]:
    """Every cell of the conflict matrix with the merge."""
    pairs = [pair for pair in matrix.every_pair() if MERGE in (pair[0].name, pair[1].name)]
    cells = [cell for pair in pairs for cell in matrix.cells_of(*pair)]
    wrong = [f"{cell}: {fault}" for cell in cells for fault in matrix.faults_of(cell, matrix.run_cell(cell))]
    return {"cells": len(cells), "wrong": wrong}


def kills(options: argparse.Namespace) -> dict[str, Any]:
    """Every kill point of both merges."""
    counts: dict[str, int] = {}
    wrong = []
    with featured_bench() as bench:
        for name in MERGES:
            for place in Place:
                points = list(bench.points(name, place))
                counts[f"{name}, {place}"] = len(points)
                wrong += [f"{point}: {fault}" for point in points if (fault := bench.faults(point))]
    return {"points": sum(counts.values()), "by_store": counts, "wrong": wrong}


def ambiguity(options: argparse.Namespace) -> dict[str, Any]:
    """Every cell of the ambiguity matrix with the merge."""
    counts: dict[str, int] = {}
    missing = {}
    wrong = []
    for store in options.stores:
        reasons = [reason for server in PLACES[store][1] if (reason := installed(server)) is not None]
        if reasons:
            missing[store] = reasons[0]
            continue
        cells = [cell for cell in cells_of(store) if cell.operation is Operation.MERGE]
        with (
            tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder,
            arena(store, Path(folder)) as place,
        ):
            verdicts = place.run_all(cells)
        counts[store] = len(verdicts)
        wrong += [
            f"{cell}: {verdict}" for cell, verdict in verdicts.items() if verdict.outcome is not Outcome.ONCE
        ]
    return {"cells": sum(counts.values()), "by_store": counts, "missing": missing, "wrong": wrong}


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "model": model,
    "conflicts": conflicts,
    "kills": kills,
    "ambiguity": ambiguity,
}


if __name__ == "__main__":
    sys.exit(main())
