"""The memory of a MERGE whose source is a stream of 20,000,000 rows, with keys of each kind.

    python -m benchmarks.merge_memory [--rows 20000000] [--target 5000000] [--peer]

The target has 5,000,000 rows in eight files; a quarter of the source matches. Each merge has a process of its
own, whose largest resident memory counts. The limit is 2 GiB. With `--peer`, deltalake merges, too. Writes
`benchmarks/results/bench-merge-memory.json`; exits with 1 when a merge of ours takes more than the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.contestant import ROOT, Contestant
from benchmarks.merge_data import keyed_rows
from delta_core import DeltaTable, write_deltalake

RESULT = ROOT / "benchmarks" / "results" / "bench-merge-memory.json"
LIMIT_BYTES = 2 << 30
FILES = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--target", type=int, default=5_000_000)
    parser.add_argument("--keys", choices=("integer", "string"), action="append")
    parser.add_argument("--mode", choices=("vectors", "rewriting"), action="append")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="deltaward-bench-", dir=options.cache) as scratch:
        for keys in options.keys or ("integer", "string"):
            target = make_target(Path(scratch) / keys, options.target, keys)
            for mode in options.mode or ("vectors", "rewriting"):
                engines = ["deltaward", *(["deltalake"] if options.peer and mode == "rewriting" else [])]
                cases += [measure(engine, target, keys, mode, options, Path(scratch)) for engine in engines]
    report = {
        "command": "python -m benchmarks.merge_memory " + " ".join(sys.argv[1:]),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "rows": options.rows,
        "target_rows": options.target,
        "limit_mib": LIMIT_BYTES >> 20,
        "cases": cases,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(case["above_limit"] for case in cases if case["engine"] == "deltaward") else 0


def make_target(path: Path, rows: int, keys: str) -> Path:
    """A table of the first keys of the source, spread over all files."""
    for part in range(FILES):
        numbers = np.arange(part, rows, FILES, dtype=np.int64)
        batch = keyed_rows(numbers, keys, note="old")
        write_deltalake(str(path), pa.Table.from_batches([batch]), mode="append")
    return path


def measure(
    engine: str, target: Path, keys: str, mode: str, options: argparse.Namespace, scratch: Path
) -> dict[str, Any]:
    """Merge into a copy of the target in a process of its own."""
    table = data.clone(target, scratch / "merged")
    if mode == "vectors":
        DeltaTable(str(table)).alter.set_properties({"delta.enableDeletionVectors": "true"})
    with Contestant(engine, log=options.cache / "workers.log") as contestant:
        timing = contestant.time("merge_stream", uri=str(table), rows=options.rows, keys=keys)
    expected = [min(options.target, options.rows), max(options.rows - options.target, 0)]
    if timing.value != expected:
        raise AssertionError(f"{engine} updated and inserted {timing.value} rows, not {expected}")
    peak = timing.peak_rss_bytes
    print(f"{engine}, {keys} keys, {mode}: {peak >> 20} MiB, {timing.seconds:.1f} s", flush=True)
    return {
        "engine": engine,
        "keys": keys,
        "mode": mode,
        "seconds": round(timing.seconds, 2),
        "peak_rss_mib": peak >> 20,
        "above_limit": peak > LIMIT_BYTES,
    }


if __name__ == "__main__":
    sys.exit(main())
