"""Opening a table of ten million files, held against opening one of a million: time and memory.

    python -m benchmarks.snapshot_scale [--kind realistic] [--pairs 5]

Both logs are alike; the large one has a V2 checkpoint with ten sidecars. Each opening, with the paths of one
partition listed, is a process of its own. Writes `benchmarks/results/bench-snapshot-scale.json`; exits 1 when
ten million files take more than twelve times as long or more than 2 GiB.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.contestant import ROOT, Contestant, Timing
from benchmarks.large_log import large_log
from benchmarks.snapshot_log import partition, snapshot_log
from benchmarks.statistics import paired_ratio

MILLION = 1_000_000
MOST_TIMES = 12.0
MOST_BYTES = 2 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("regular", "realistic"), action="append")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/bench-snapshot-scale.json")
    options = parser.parse_args()
    report = {
        "command": "python -m benchmarks.snapshot_scale " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "platform": platform.machine()},
        "kinds": {kind: _compared(kind, options) for kind in options.kind or ("regular", "realistic")},
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    kept = True
    for kind, found in report["kinds"].items():
        ratio, peak = found["ratio"]["median"], found["peak_rss_bytes"]
        print(f"{kind}: {ratio:.1f}x the time of a million files, {peak / 2**20:.0f} MiB")
        kept = kept and ratio <= MOST_TIMES and peak <= MOST_BYTES
    return 0 if kept else 1


def _compared(kind: str, options: argparse.Namespace) -> dict[str, object]:
    small = snapshot_log(options.cache, kind, files=MILLION)
    large = large_log(options.cache, kind, small)
    _open(kind, small, options.cache)  # fills the operating system's cache
    pairs = [
        (_open(kind, large, options.cache), _open(kind, small, options.cache)) for _ in range(options.pairs)
    ]
    for ten, one in pairs:
        # Ten copies of the million, and ten commits of one file each behind either.
        if ten.value not in range(10 * one.value - 100, 10 * one.value + 1):
            raise AssertionError(f"{kind}: {ten.value} paths of ten million, {one.value} of one")
    ratio = paired_ratio([ten.seconds for ten, _ in pairs], [one.seconds for _, one in pairs])
    return {
        "ratio": asdict(ratio),
        "ten_million_seconds": [round(ten.seconds, 3) for ten, _ in pairs],
        "million_seconds": [round(one.seconds, 3) for _, one in pairs],
        "peak_rss_bytes": max(ten.peak_rss_bytes for ten, _ in pairs),
        "peak_rss_bytes_of_a_million": max(one.peak_rss_bytes for _, one in pairs),
    }


def _open(kind: str, table: Path, cache: Path) -> Timing:
    column, value = partition(kind, 0)
    with Contestant("deltaward", log=cache / "workers.log") as contestant:
        return contestant.time("open_one_partition", uri=str(table), column=column, value=value)


if __name__ == "__main__":
    sys.exit(main())
