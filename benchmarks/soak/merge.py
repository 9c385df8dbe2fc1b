"""Random merges against a brute-force model, and in lock-step with delta-spark.

    nice python benchmarks/soak/merge.py [--cases 300] [--lock-step 45] [--seed 1]

Writes `benchmarks/results/soak-merge.json`; exits 1 when rows, figures or refusals differ. With a limit of
minutes the cases that there was time for are written down.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_jobs.session import get_session
from tests.support.delta_spark_reader import SETTINGS
from tests.support.merge_runs import check_against_delta_spark, check_against_model

REPOSITORY = Path(__file__).resolve().parents[2]
RESULT = REPOSITORY / "benchmarks" / "results" / "soak-merge.json"


def run(
    check: Callable[[Any, str, Path], str], spark: Any, seeds: list[str], until: float
) -> tuple[Counter[str], list[str]]:
    """Every case until the time is over; outcomes and failures."""
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    for seed in seeds:
        if time.monotonic() > until:
            break
        with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
            try:
                outcome = check(spark, seed, Path(folder))
            except Exception as error:
                outcome = "failed"
                failures.append(f"{seed}: {type(error).__name__}: {error}"[:2000])
        outcomes[outcome] += 1
        print(f"{seed} {outcome}", file=sys.stderr, flush=True)
    return outcomes, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--lock-step", type=int, default=45)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    conf = {"spark.driver.memory": "1g", "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "2"}
    if arguments.lock_step:
        conf |= SETTINGS
    spark = get_session(master="local[2]", conf=conf, app_name="soak")
    began = time.monotonic()
    until = began + arguments.minutes * 60
    in_step, differing = run(
        check_against_delta_spark,
        spark,
        [f"{arguments.seed}:lock-step:{number}" for number in range(arguments.lock_step)],
        until,
    )
    modelled, wrong = run(
        check_against_model,
        spark,
        [f"{arguments.seed}:model:{number}" for number in range(arguments.cases)],
        until,
    )
    spark.stop()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    document = {
        "what": "random merges against a brute-force model and in lock-step with delta-spark 4.4.0",
        "passed": not wrong and not differing,
        "seed": arguments.seed,
        "asked": {"model": arguments.cases, "lock_step": arguments.lock_step},
        "model": dict(modelled),
        "lock_step": dict(in_step),
        "failures": [*wrong, *differing],
        "commit": commit.stdout.strip() or None,
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.monotonic() - began, 1),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "shared": True},
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{'passed' if document['passed'] else 'FAILED'}: {document['model']} {document['lock_step']}")
    return 0 if document["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
