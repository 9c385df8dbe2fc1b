"""MERGE on Spark with deletion vectors where it is large: whether it ends, its time and its memory.

    python -m benchmarks.spark_merge_scale [--target-scale 10] [--source-rows 20000000] [--cache FOLDER]

Two merges by `*` clauses, each in a driver with a heap of 4 GiB: 120,000 rows into lineitem at the scale, and
a source of so many rows, half of them updates where there are enough, into lineitem at scale 1. The counts
of rows are checked. Writes `benchmarks/results/bench-spark-merge-scale.json`; exits 1 when a merge fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.contestant import ROOT, Contestant
from benchmarks.merge_data import ON
from tests.support.soak_report import report_head

RESULT = ROOT / "benchmarks" / "results" / "bench-spark-merge-scale.json"
_NEW_KEYS_FROM = 1_000_000_000
_FILES_PER_SCALE = 8
_BATCH = 1_000_000


def source_of(table: Path, rows: int, file: Path) -> list[int]:
    """Write a source: every so-many-th row of the table changed, and as many new ones. The two counts."""
    names = sorted(table.glob("*.parquet"))
    total = sum(pq.read_metadata(name).num_rows for name in names)
    updates = min(rows // 2, total)
    inserts = rows - updates
    step = total // updates
    done = 0
    with pq.ParquetWriter(file, pq.read_schema(names[0])) as writer:
        for name in names:
            for batch in pq.ParquetFile(name).iter_batches(batch_size=_BATCH):
                picked = pa.Table.from_batches([batch]).take(pa.array(range(0, batch.num_rows, step)))
                picked = picked.slice(0, updates - done)
                done += picked.num_rows
                writer.write_table(picked)
        added = 0
        for number in range(1_000_000):
            rows_of_file = pq.read_table(names[number % len(names)]).slice(0, inserts - added)
            keys = pc.add(rows_of_file["l_orderkey"], _NEW_KEYS_FROM * (1 + number))
            at = rows_of_file.schema.get_field_index("l_orderkey")
            writer.write_table(rows_of_file.set_column(at, rows_of_file.schema.field(at), keys))
            added += rows_of_file.num_rows
            if added == inserts:
                break
    return [done, added]


def merge(name: str, target: Path, rows: int, cache: Path, scratch: Path) -> dict[str, Any]:
    """One merge, in a worker of its own."""
    source = scratch / f"{name}.parquet"
    expected = source_of(target, rows, source)
    table = data.clone(target, scratch / name)
    with Contestant("deltaward_spark", log=cache / "workers.log") as ours:
        ours.time("enable_deletion_vectors", uri=str(table))
        try:
            timing = ours.time("merge", uri=str(table), source=str(source), on=ON)
        except RuntimeError as error:
            return {"failed": str(error)[-3000:]}
    return {
        "updated_and_inserted": timing.value,
        "failed": None if timing.value == expected else f"expected {expected}",
        "seconds": round(timing.seconds, 2),
        "python_peak_rss_mib": timing.peak_rss_bytes >> 20,
        "heap": "4 GiB",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target-scale", default="10")
    parser.add_argument("--source-rows", type=int, default=20_000_000)
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    files = max(1, round(_FILES_PER_SCALE * float(options.target_scale)))
    found: dict[str, Any] = {}
    for name, target, rows in (
        ("large-target", (options.target_scale, files), 120_000),
        ("large-source", ("1" if float(options.target_scale) >= 1 else options.target_scale, 8),
         options.source_rows),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="deltaward-bench-", dir=options.cache) as scratch:
            table = data.lineitem_table(options.cache, scale=target[0], files=target[1])
            found[name] = {"target_scale": target[0], "source_rows": rows} | merge(
                name, table, rows, options.cache, Path(scratch)
            )
            print(name, found[name], flush=True)
    seconds = sum(part.get("seconds", 0) for part in found.values())
    options.output.write_text(
        json.dumps(report_head("spark-merge-scale", seed="none", seconds=seconds) | found, indent=1) + "\n"
    )
    return 1 if any(part["failed"] for part in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
