"""A dry run of VACUUM where the store lists ten million files: time and memory.

    python -m benchmarks.vacuum_scale [--files 10000000]

The listing is made up (see `listing_store`): one file of a hundred may go. It comes in columns, and as any
store gives it, object by object. Each is a process of its own. Writes
`benchmarks/results/bench-vacuum-scale.json`; exits 1 when one takes more than a GiB.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.contestant import ROOT, Contestant

MOST_BYTES = 1 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000_000)
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/bench-vacuum-scale.json")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    listings = {}
    for name, in_columns in (("in columns", True), ("object by object", False)):
        with (
            tempfile.TemporaryDirectory(dir=options.cache) as scratch,
            Contestant("deltaward", log=options.cache / "workers.log") as contestant,
        ):
            contestant.time("create_for_appends", uri=f"{scratch}/t")
            idle = contestant.time("plan_made_up_vacuum", uri=f"{scratch}/t", files=1, in_columns=in_columns)
            timing = contestant.time(
                "plan_made_up_vacuum", uri=f"{scratch}/t", files=options.files, in_columns=in_columns
            )
        if timing.value != -(-options.files // 100):
            raise AssertionError(f"{timing.value} files are planned")
        listings[name] = {
            "seconds": round(timing.seconds, 2),
            "peak_rss_bytes": timing.peak_rss_bytes,
            "peak_rss_bytes_of_one_file": idle.peak_rss_bytes,
        }
        print(f"{name}: {timing.seconds:.1f} s, {timing.peak_rss_bytes / 2**20:.0f} MiB", flush=True)
    report = {
        "command": "python -m benchmarks.vacuum_scale " + " ".join(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "platform": platform.machine()},
        "files": options.files,
        "listings": listings,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(found["peak_rss_bytes"] <= MOST_BYTES for found in listings.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
