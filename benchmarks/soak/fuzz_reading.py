"""Damaged and hostile tables, a mutant at a time, read whole in processes with bounded memory and time.

    nice python benchmarks/soak/fuzz_reading.py [--mutants 200000] [--minutes 60] [--seed 1] [--again NUMBER]

A mutant is a table of which one file (a commit, `_last_checkpoint`, a `.crc`, a deletion vector file, a
checkpoint, its manifest or a sidecar) is damaged. It must be read as the undamaged table, or as a second,
slow reader reads it, or be refused by a typed error that names the file; a crash, 10 seconds, 1 GiB, another
exception or warning is a fault. Of the three ways of reading that take longest each mutant is read in one, in
turn. Writes `benchmarks/results/soak-fuzz-reading.json` as it goes, and goes on from there when it is started
again with the same seed; exits 1 when there was a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

import pyarrow as pa  # noqa: E402 - a program

from tests.support.fuzz.judge import FAULT, UNVERIFIED  # noqa: E402
from tests.support.fuzz.runner import run_mutants  # noqa: E402
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-fuzz-reading.json"

_SAVE_EVERY = 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, help="begin no mutant after so long; start again to go on")
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", type=int, help="only this mutant, printed")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.again is not None:
        for result in run_mutants([options.again], seed=options.seed):
            print(json.dumps(result, indent=2))
        return 0
    tally = Tally.resume(options.output, options.seed, options.mutants)
    began = time.monotonic()

    def numbers() -> Iterator[int]:
        for number in range(options.mutants):
            if options.minutes and time.monotonic() - began > options.minutes * 60:
                return
            if number not in tally.done:
                yield number

    for result in run_mutants(numbers(), seed=options.seed, workers=options.workers, brief=True):
        tally.add(result)
        if len(tally.done) % _SAVE_EVERY == 0:
            tally.save(options.output, time.monotonic() - began)
    tally.save(options.output, time.monotonic() - began)
    print(
        f"{options.output.name}: {len(tally.done)} of {options.mutants} mutants, {len(tally.faults)} faults"
    )
    return 1 if tally.faults else 0


class Tally:
    """What has been read so far."""

    def __init__(self, seed: str, planned: int) -> None:
        self.seed = seed
        self.planned = planned
        self.done: set[int] = set()
        self.outcomes: dict[str, Counter[str]] = {}
        self.mutators: dict[str, Counter[str]] = {}
        self.faults: list[dict[str, Any]] = []
        self.unverified: list[dict[str, Any]] = []
        self.slowest_seconds = 0.0
        self.earlier_seconds = 0.0
        self.commits: list[str] = []

    @classmethod
    def resume(cls, path: Path, seed: str, planned: int) -> Tally:
        """Go on from a result of the same seed, else begin."""
        tally = cls(seed, planned)
        if path.is_file():
            before = json.loads(path.read_text())
            if before["seed"] == seed and before["mutants"] < planned:
                tally.done = {
                    number for first, last in before["numbers"] for number in range(first, last + 1)
                }
                tally.outcomes = {kind: Counter(counts) for kind, counts in before["outcomes"].items()}
                tally.mutators = {kind: Counter(counts) for kind, counts in before["mutators"].items()}
                for fault in before["faults"]:
                    tally.forget(fault)
                tally.unverified = before["unverified"]
                tally.slowest_seconds = before["slowest_seconds"]
                tally.earlier_seconds = before["duration_seconds"]
                tally.commits = before["commits"]
        commit = git("rev-parse", "HEAD") or "unknown"
        if commit not in tally.commits:
            tally.commits.append(commit)
        return tally

    def forget(self, result: dict[str, Any]) -> None:
        """Have one read again: a fault, by the code as it is now."""
        kind = result["kind"]
        self.done.discard(result["number"])
        self.outcomes[kind] -= Counter([result["outcome"]])
        self.mutators[kind] -= Counter([result.get("mutator", "unknown").partition(" + ")[0]])

    def add(self, result: dict[str, Any]) -> None:
        """Count one."""
        kind, outcome = result["kind"], result["outcome"]
        self.done.add(result["number"])
        self.outcomes.setdefault(kind, Counter())[outcome] += 1
        self.mutators.setdefault(kind, Counter())[result.get("mutator", "unknown").partition(" + ")[0]] += 1
        self.slowest_seconds = max(self.slowest_seconds, result.get("seconds", 0.0))
        if outcome == FAULT:
            self.faults.append(result)
            print(json.dumps(result), file=sys.stderr, flush=True)
        elif outcome == UNVERIFIED and len(self.unverified) < 50:
            self.unverified.append(result)

    def save(self, path: Path, seconds: float) -> None:
        """Write the result; a reader never sees half of it."""
        total: Counter[str] = Counter()
        for counts in self.outcomes.values():
            total.update(counts)
        report = {
            **report_head("fuzz-reading", seed=self.seed, seconds=self.earlier_seconds + seconds),
            "commits": self.commits,
            "pyarrow": pa.__version__,
            "planned": self.planned,
            "mutants": len(self.done),
            "complete": len(self.done) >= self.planned,
            "failed": len(self.faults),
            "slowest_seconds": round(self.slowest_seconds, 2),
            "outcomes_in_all": dict(total.most_common()),
            "outcomes": {kind: dict(counts.most_common()) for kind, counts in sorted(self.outcomes.items())},
            "mutators": {kind: dict(counts.most_common()) for kind, counts in sorted(self.mutators.items())},
            "numbers": _ranges(sorted(self.done)),
            "faults": self.faults,
            "unverified": self.unverified,
        }
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(report, indent=2) + "\n")
        draft.replace(path)


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Runs of numbers as their first and last."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


if __name__ == "__main__":
    sys.exit(main())
