"""Skipping against brute force on random pairs of a table and a predicate.

    nice python benchmarks/soak/skipping.py [--pairs 50000] [--seed 1] [--workers 2]

What a pair is, and what is compared, is in `tests/support/skipping_check.py`. Writes
`benchmarks/results/soak-skipping.json`; exits 1 when a pair fails, naming the seed that draws it again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.skipping_check import Counts, SkippedTooMuchError, check_pairs  # noqa: E402 - a program
from tests.support.soak_report import git, report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-skipping.json"
BATCH = 1_000
SHOWN_FAILURES = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED") or git("rev-parse", "HEAD")[:12])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    commit, changed = git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--", "delta_core"))
    began = time.monotonic()
    counts, failures = Counts(), []
    batches = [(f"{options.seed}:{at}", BATCH) for at in range(-(-options.pairs // BATCH))]
    with ProcessPoolExecutor(options.workers) as pool:
        for found, failure in pool.map(run, batches):
            counts.add(found)
            failures += [failure] if failure else []
            print(f"{counts.pairs} pairs, {len(failures)} failures", flush=True)
    report = summary(counts, failures, time.monotonic() - began)
    report |= {"seed": options.seed, "commit": commit, "uncommitted_changes": changed}
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{options.output.name}: {counts.pairs} pairs, {len(failures)} failures")
    return 1 if failures else 0


def run(batch: tuple[str, int]) -> tuple[Counts, str | None]:
    """One batch, up to its first failure."""
    counts = Counts()
    try:
        check_pairs(*batch, counts)
    except SkippedTooMuchError as error:
        print(f"FAILED {error}"[:2000], file=sys.stderr, flush=True)
        return counts, str(error)[:2000]
    return counts, None


def summary(counts: Counts, failures: list[str], seconds: float) -> dict[str, Any]:
    """What was tried, how much of it could have gone wrong, and what did."""
    return {
        **report_head("skipping", seed=None, seconds=seconds),
        "tables": counts.tables,
        "pairs": counts.pairs,
        "failed": len(failures),
        "pairs_that_skipped_a_file": counts.pairs_that_skipped,
        "pairs_that_could_skip_a_file": counts.pairs_that_could_skip,
        "pairs_with_a_matching_row": counts.pairs_with_matches,
        "files": counts.files,
        "files_skipped": counts.files_skipped,
        "files_without_a_matching_row": counts.files_without_match,
        "predicates_that_fail_on_a_row": counts.failing_predicates,
        "pairs_by_trait": dict(sorted(counts.pairs_by_trait.items())),
        "pairs_that_skipped_by_trait": dict(sorted(counts.pairs_that_skipped_by_trait.items())),
        "pairs_by_node": dict(counts.pairs_by_node.most_common()),
        "failures": failures[:SHOWN_FAILURES],
    }


if __name__ == "__main__":
    sys.exit(main())
