"""`python -m benchmarks.fleet_ranking`: bytes skipped for each CPU second under a budget.

A fleet on the local disk, in which the number of small files of a table and the number of its reads each
follow Zipf's law, independently of each other. All tables are compacted, and each compaction is measured.
Then orders compete for a budget of a fifth of all bytes to rewrite: that of `fleet plan`, random ones, and
the one with the most small files first. An order that meets a table that no longer fits goes on with the
next one. What a table gains and costs in an order is what was measured. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from delta_core import write_deltalake
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control
from delta_core.fleet.cost import PRIORS, CostModel
from delta_core.fleet.gain import OPEN_COST_BYTES
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.rank import Candidate, rank, remaining
from delta_core.fleet.registry import registry
from delta_core.policies.fleet_model import BudgetPolicy
from delta_core.policies.load import parse_policies

BUDGET_SHARE = 0.2
EXPONENT = 1.1
_SHUFFLES = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A compaction: its small files, bytes, gain in bytes a day and CPU seconds."""

    uri: str
    files: int
    size_bytes: int
    gain: float
    cpu_seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="fleet-ranking-", dir=options.directory))
    try:
        result = {
            "measured": measure(root, tables=options.tables, seed=options.seed),
            "modelled": modelled(range(options.seed, options.seed + 25)),
        }
        print(json.dumps(result, indent=2))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


def measure(root: Path, *, tables: int, seed: int) -> dict[str, Any]:
    """Compact every table of a Zipf fleet, and compare the orders by what was measured."""
    reads = _fleet(root / "lake", tables=tables, chance=random.Random(seed))
    document = {
        "defaults": {
            "compaction": {"min_small_files": 2},
            "checkpoint": {"enabled": False},
            "vacuum": {"enabled": False},
        },
        "tables": {name: {"uri": str(root / "lake" / name), "reads_per_day": reads[name]} for name in reads},
        "fleet": {"control_root": str(root / "control")},
    }
    control = Control(
        registry=registry(parse_policies(json.dumps(document))), ledger=Ledger(control_root=f"{root}/control")
    )
    rows = control.refresh(run_id="all")
    everything = control.plan(rows, run_id="all", plan_id=2)
    budget = int(sum(entry.size_bytes for entry in everything.entries) * BUDGET_SHARE)
    chosen = control.plan(rows, run_id="some", plan_id=1, budget=BudgetPolicy(bytes=budget))
    done = {
        row["uri"]: Compaction(
            uri=row["uri"],
            files=row["actual_files"],
            size_bytes=row["actual_bytes"],
            gain=(row["actual_files"] - row["files_added"]) * OPEN_COST_BYTES * reads[row["name"]],
            cpu_seconds=row["cpu_seconds"],
        )
        for row in apply_plan(everything, Application(ledger=control.ledger))
        if row["outcome"] == "succeeded"
    }
    ours = [done[entry.uri] for entry in chosen.entries if entry.uri in done]
    return {"tables": len(done), **compared(ours, list(done.values()), budget, seed)}


def modelled(seeds: Iterable[int], *, tables: int = 2000) -> dict[str, Any]:
    """The same comparison on candidates whose costs are those of the model: median and least of the seeds."""
    costs = CostModel(verbs=PRIORS)
    found = []
    for seed in seeds:
        chance = random.Random(seed)
        reads = _zipf(tables, 1000, chance)
        items = []
        for number, count in enumerate(_zipf(tables, 20_000, chance)):
            files = max(2, round(count))
            size_bytes = files * int(chance.lognormvariate(math.log(1 << 20), 1))
            items.append(
                Compaction(
                    uri=str(number),
                    files=files,
                    size_bytes=size_bytes,
                    gain=(files - 1) * OPEN_COST_BYTES * reads[number],
                    cpu_seconds=costs.seconds("optimize", files=files, size_bytes=size_bytes),
                )
            )
        by_uri = {item.uri: item for item in items}
        budget = int(sum(item.size_bytes for item in items) * BUDGET_SHARE)
        candidates = [
            Candidate(
                uri=item.uri,
                verb="optimize",
                gain=item.gain,
                cpu_seconds=item.cpu_seconds,
                size_bytes=item.size_bytes,
            )
            for item in items
        ]
        chosen = rank(candidates, remaining(BudgetPolicy(bytes=budget))).chosen
        found.append(compared([by_uri[item.uri] for item in chosen], items, budget, seed))
    return {
        name: {
            "median": round(median(item[name] for item in found), 2),
            "least": min(item[name] for item in found),
        }
        for name in found[0]
    }


def compared(ours: list[Compaction], items: list[Compaction], budget: int, seed: int) -> dict[str, float]:
    """The gain for each CPU second of a choice as multiples of other orders under the same budget."""
    chance = random.Random(seed)
    own = _gain_per_second(ours)
    shuffled = [_gain_per_second(_fill(chance.sample(items, len(items)), budget)) for _ in range(_SHUFFLES)]
    by_files = _gain_per_second(_fill(sorted(items, key=lambda item: -item.files), budget))
    return {
        "over_random": round(own / median(shuffled), 2),
        "over_most_small_files_first": round(own / by_files, 2),
    }


def _fleet(root: Path, *, tables: int, chance: random.Random) -> dict[str, float]:
    """Create the tables; the reads of each table a day, by name."""
    reads = _zipf(tables, 1000, chance)
    result = {}
    for number, count in enumerate(_zipf(tables, 400, chance)):
        rows = max(1, round(chance.lognormvariate(math.log(60), 1)))
        name = f"t{number:04d}"
        for file in range(max(3, round(count))):
            texts = [f"{chance.getrandbits(400):x}" for _ in range(rows)]
            data = pa.table({"id": range(file * rows, (file + 1) * rows), "text": texts})
            write_deltalake(str(root / name), data, mode="append")
        result[name] = round(max(0.01, reads[number]), 3)
    return result


def _zipf(count: int, most: float, chance: random.Random) -> list[float]:
    """`most` divided by the powers of the places, in random order."""
    values = [most / (place + 1) ** EXPONENT for place in range(count)]
    chance.shuffle(values)
    return values


def _fill(items: Iterable[Compaction], budget: int) -> list[Compaction]:
    chosen = []
    for item in items:
        if item.size_bytes <= budget:
            chosen.append(item)
            budget -= item.size_bytes
    return chosen


def _gain_per_second(chosen: list[Compaction]) -> float:
    return sum(item.gain for item in chosen) / sum(item.cpu_seconds for item in chosen)


if __name__ == "__main__":
    raise SystemExit(main())
