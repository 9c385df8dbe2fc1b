"""Four `spark_jobs.write` appends to one table at once, many rounds: every row must be there.

    nice python benchmarks/soak/concurrent_appends.py [--rounds 20] [--seed 1]

Writes `benchmarks/results/soak-concurrent-appends.json`; exits 1 when a row is missing or a job failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import spark_jobs

REPOSITORY = Path(__file__).resolve().parents[2]
RESULT = REPOSITORY / "benchmarks" / "results" / "soak-concurrent-appends.json"
WRITERS = 4


def append(spark: Any, table: str, first: int, rows: int, files: int) -> str:
    frame = spark.range(first, first + rows, 1, files).selectExpr(
        "id", "id % 5 as p", "timestamp_micros(id) as moment"
    )
    try:
        spark_jobs.write(frame, table, mode="append", partition_by=["p"])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def run(spark: Any, rounds: int, rng: random.Random) -> list[dict[str, Any]]:
    out = []
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
        for number in range(rounds):
            # Two rounds in three go to one growing table, the others create a new one all at once.
            table = str(Path(folder) / (f"new-{number}" if number % 3 == 0 else "growing"))
            before = DeltaTable(table).version() if DeltaTable.is_deltatable(table) else -1
            known = (
                set(DeltaTable(table).to_pyarrow_table(columns=["id"]).column("id").to_pylist())
                if before >= 0
                else set()
            )
            sizes = [rng.randint(100, 5_000) for _ in range(WRITERS)]
            firsts = [number * 1_000_000 + index * 10_000 for index in range(WRITERS)]
            started = time.perf_counter()

            def one(job: tuple[int, int, int], table: str = table) -> str:
                return append(spark, table, *job)

            with ThreadPoolExecutor(WRITERS) as pool:
                ends = list(pool.map(one, zip(firsts, sizes, [1, 2, 3, 4], strict=True)))
            expected = {first + row for first, size in zip(firsts, sizes, strict=True) for row in range(size)}
            found = DeltaTable(table).to_pyarrow_table(columns=["id"]).column("id").to_pylist()
            out.append(
                {
                    "round": number,
                    "rows_expected": len(known) + len(expected),
                    "rows_found": len(found),
                    "exact": sorted(found) == sorted(known | expected),
                    "failures": [end for end in ends if end],
                    "versions": DeltaTable(table).version() - before,
                    "seconds": round(time.perf_counter() - started, 2),
                }
            )
            print(out[-1], file=sys.stderr, flush=True)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    spark = spark_jobs.get_session(
        master="local[2]", conf={"spark.driver.memory": "1g", "spark.log.level": "ERROR"}, app_name="soak"
    )
    started = time.perf_counter()
    rounds = run(spark, arguments.rounds, random.Random(arguments.seed))
    spark.stop()
    good = all(row["exact"] and not row["failures"] and row["versions"] == WRITERS for row in rounds)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    document = {
        "what": f"{WRITERS} concurrent spark_jobs.write appends to one table",
        "passed": good,
        "rounds": len(rounds),
        "seed": arguments.seed,
        "commit": commit.stdout.strip() or None,
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.perf_counter() - started, 1),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "shared": True},
        "results": rounds,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{'passed' if good else 'FAILED'}: {len(rounds)} rounds, {document['duration_seconds']} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
