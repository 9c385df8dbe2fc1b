"""`python -m benchmarks`: alternating pairs against each peer, ratios with intervals, results as JSON."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cases import CASES, Case, fresh
from benchmarks.contestant import ROOT, Contestant
from benchmarks.statistics import paired_ratio

PACKAGES = ("pyarrow", "numpy", "deltalake", "pyspark")
BAR = 3.0


def main() -> int:
    options = _options()
    cases = [case for case in CASES if not options.case or case.name in options.case]
    options.cache.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
        "commit": _git_commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "platform": platform.machine(),
            "python": platform.python_version(),
        },
        "packages": {name: version(name) for name in PACKAGES},
        "cases": {},
    }
    missed = []
    with tempfile.TemporaryDirectory(prefix="deltaward-bench-", dir=options.cache) as scratch:
        for case in cases:
            outcome = run_case(case, options, Path(scratch))
            report["cases"][case.name] = outcome
            best = outcome["against_better_peer"]
            print(
                f"{case.name}: {best['median']:.2f}x the better peer ({outcome['better_peer']})", flush=True
            )
            if case.name not in options.no_bar and best["median"] > BAR:
                missed.append(case.name)
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    for name in missed:
        print(f"worse than {BAR}x the better peer: {name}", file=sys.stderr)
    return 1 if missed else 0


def run_case(case: Case, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Each peer in turn against ours: one warm-up each, then `pairs` alternating pairs."""
    outcome: dict[str, Any] = {"note": case.note, "ours": case.ours, "peers": {}}
    log = options.cache / "workers.log"
    peers = [peer for peer in case.peers if peer not in options.without]
    with Contestant(case.ours, log=log) as ours:
        for name in peers:
            with Contestant(name, log=log) as peer:
                mine, theirs = [], []
                for number in range(options.warmup + options.pairs):
                    order = (ours, peer) if number % 2 == 0 else (peer, ours)
                    timings = {id(c): case.run(c, options.cache, fresh(scratch / "run")) for c in order}
                    if number >= options.warmup:
                        mine.append(timings[id(ours)])
                        theirs.append(timings[id(peer)])
            ratio = paired_ratio([t.seconds for t in mine], [t.seconds for t in theirs])
            outcome["peers"][name] = {
                "ratio": ratio.to_json(),
                "ours_seconds": [round(t.seconds, 5) for t in mine],
                "theirs_seconds": [round(t.seconds, 5) for t in theirs],
                "ours_peak_rss_mib": max(t.peak_rss_bytes for t in mine) >> 20,
                "theirs_peak_rss_mib": max(t.peak_rss_bytes for t in theirs) >> 20,
            }
            print(
                f"{case.name}: {ratio} of {name}  "
                f"(median {median(t.seconds for t in mine):.4f} s against "
                f"{median(t.seconds for t in theirs):.4f} s)",
                flush=True,
            )
    better = max(outcome["peers"], key=lambda name: outcome["peers"][name]["ratio"]["median"])
    outcome["better_peer"] = better
    outcome["against_better_peer"] = outcome["peers"][better]["ratio"]
    return outcome


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], help="leave a peer out")
    parser.add_argument("--no-bar", action="append", default=[], help="report a case without judging it")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _git_commit() -> str:
    answer = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
