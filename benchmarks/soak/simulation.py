"""The real core in simulated histories on a store with faults, judged from the store's raw bytes.

    nice python benchmarks/soak/simulation.py [--histories 200000] [--minutes 60] [--seed 1] [--again NUMBER]
                                              [--rows]

A history is 2 to 8 workers that append, overwrite, delete, rewrite, checkpoint, clean up and read one table,
while requests and answers are lost, writes land late, listings lag, workers pause for days or crash and run
their jobs again (`tests/simulation`). Committers that get it wrong on purpose go through the same judge, so
that its silence means something. Writes `benchmarks/results/soak-simulation.json` as it goes, and goes on
from there when it is started again with the same seed; exits 1 on a violation that is not in
`tests/simulation/known.py`. With `--rows` the histories are of a table with deletion vectors and row ids:
deletion vectors are united, carried over to the files of rewrites, and statements find their rows there. Then
the result is `soak-row-simulation.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.simulation.history import draw_plan  # noqa: E402 - a program
from tests.simulation.known import known  # noqa: E402
from tests.simulation.naive import Mistake, program_with  # noqa: E402
from tests.simulation.rows import RowProgram, rowed  # noqa: E402
from tests.simulation.simulation import Verdict, collect_garbage_rarely, run_plan, simulate  # noqa: E402
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-simulation.json"
BATCH = 250
NAIVE_HISTORIES = 500
SHOWN = 20


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, help="begin no batch after so long; start again to go on")
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", type=int, help="only this history, printed")
    parser.add_argument("--rows", action="store_true", help="histories of a table with deletion vectors")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(given)
    if options.again is not None:
        print(history(options.seed, options.again, of_rows=options.rows).report())
        return 0
    area = "row-simulation" if options.rows else "simulation"
    options.output = options.output or RESULT.with_name(f"soak-{area}.json")
    began = time.monotonic()
    tally = Tally.resume(options.output, options.seed, options.histories, area=area)
    with ProcessPoolExecutor(options.workers, initializer=collect_garbage_rarely) as pool:
        for mistake in [mistake for mistake in Mistake if mistake.name not in tally.naive]:
            broken = sum(pool.map(broken_by, [(options.seed, mistake, half) for half in (0, 1)]))
            tally.naive[mistake.name] = {"histories": NAIVE_HISTORIES, "broken": broken}
        starts = iter(range(tally.histories, options.histories, BATCH))
        while not options.minutes or time.monotonic() - began < options.minutes * 60:
            # A few at a time, so that what was done is always the first of them and can be gone on from.
            some = [
                (options.seed, at, min(BATCH, options.histories - at), options.rows)
                for at in islice(starts, options.workers * 2)
            ]
            if not some:
                break
            for found in pool.map(run_batch, some):
                tally.add(found)
            tally.save(options.output, time.monotonic() - began)
            print(f"{tally.histories} histories, {tally.new} new violations", flush=True)
    tally.save(options.output, time.monotonic() - began)
    done = f"{tally.histories} of {options.histories} histories"
    print(f"{options.output.name}: {done}, {tally.new} with new violations")
    return 1 if tally.new else 0


@dataclass(slots=True)
class Found:
    """What came of some histories."""

    histories: int = 0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)
    new: int = 0
    settled: Counter[str] = field(default_factory=Counter)


def history(seed: str, number: int, *, of_rows: bool) -> Verdict:
    """One history, run and judged."""
    name = f"{seed}:{number}"
    return run_plan(rowed(draw_plan(name)), program=RowProgram) if of_rows else simulate(name)


def run_batch(batch: tuple[str, int, int, bool]) -> Found:
    """Some histories, one after the other."""
    seed, first, count, of_rows = batch
    found = Found(histories=count)
    for number in range(first, first + count):
        verdict = history(seed, number, of_rows=of_rows)
        found.settled.update(
            {"united": verdict.joined, "carried over": verdict.carried, "relocated": verdict.relocated}
        )
        found.steps += len(verdict.trace)
        found.outcomes.update(verdict.outcomes)
        found.known.update({name for name in map(known, verdict.violations) if name is not None})
        if verdict.new_violations:
            found.new += 1
            found.reports.append(verdict.report())
    return found


def broken_by(case: tuple[str, Mistake, int]) -> int:
    """How many of half the histories a committer with a mistake breaks."""
    seed, mistake, half = case
    numbers = range(half, NAIVE_HISTORIES, 2)
    program = program_with(mistake)
    return sum(bool(simulate(f"{seed}:{number}", program=program).violations) for number in numbers)


class Tally:
    """What has been simulated so far."""

    def __init__(self, seed: str, planned: int, area: str) -> None:
        self.area = area
        self.settled: Counter[str] = Counter()
        self.seed = seed
        self.planned = planned
        self.histories = 0
        self.steps = 0
        self.new = 0
        self.outcomes: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.reports: list[str] = []
        self.naive: dict[str, dict[str, int]] = {}
        self.earlier_seconds = 0.0
        self.commits: list[str] = []

    @classmethod
    def resume(cls, path: Path, seed: str, planned: int, *, area: str) -> Tally:
        """Go on from a result of the same seed, else begin."""
        tally = cls(seed, planned, area)
        if path.is_file():
            before = json.loads(path.read_text())
            if before["seed"] == seed and before["histories"] < planned:
                tally.histories, tally.steps = before["histories"], before["trace_lines"]
                tally.new, tally.reports = before["histories_with_violations"], before["violations"]
                tally.outcomes = Counter(before["outcomes"])
                tally.known = Counter(before["histories_with_known_violations"])
                tally.settled = Counter(before.get("conflicts_settled", {}))
                tally.naive = before["naive_committers"]
                tally.earlier_seconds = before["duration_seconds"]
                tally.commits = before["commits"]
        commit = git("rev-parse", "HEAD") or "unknown"
        if commit not in tally.commits:
            tally.commits.append(commit)
        return tally

    def add(self, found: Found) -> None:
        """Count a batch."""
        self.histories += found.histories
        self.steps += found.steps
        self.new += found.new
        self.outcomes.update(found.outcomes)
        self.known.update(found.known)
        self.settled.update(found.settled)
        for report in found.reports:
            print(report, file=sys.stderr, flush=True)
        self.reports = [*self.reports, *found.reports][:SHOWN]

    def save(self, path: Path, seconds: float) -> None:
        """Write the result; a reader never sees half of it."""
        duration = self.earlier_seconds + seconds
        report: dict[str, Any] = {
            **report_head(self.area, seed=self.seed, seconds=duration),
            "commits": self.commits,
            "planned": self.planned,
            "histories": self.histories,
            "complete": self.histories >= self.planned,
            "histories_per_second": round(self.histories / duration, 1) if duration else None,
            "trace_lines": self.steps,
            "outcomes": dict(self.outcomes.most_common()),
            "conflicts_settled": {name: count for name, count in self.settled.items() if count},
            "histories_with_violations": self.new,
            "histories_with_known_violations": dict(self.known),
            "naive_committers": self.naive,
            "violations": self.reports,
        }
        draft = path.with_suffix(".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(report, indent=2) + "\n")
        draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
