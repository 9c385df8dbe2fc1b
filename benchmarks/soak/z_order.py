"""300 random tables put into Z-order, each checked from every side; then 15 against delta-spark.

    nice python benchmarks/soak/z_order.py [--cases 300] [--lock-step 15] [--seed 1]

What is checked is in `tests/support/z_order_case.py` and `tests/support/z_order_lock_step.py`. The second
part needs delta-spark's jars and is left out, and reported as such, with `--lock-step 0`. Writes
`benchmarks/results/soak-z-order.json`; exits 1 when a case is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.soak_report import report_head  # noqa: E402
from tests.support.z_order_case import check_case  # noqa: E402 - a program, not a package
from tests.support.z_order_lock_step import check_lock_step, delta_spark_session  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-z-order.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--lock-step", type=int, default=15)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    failures: list[str] = []
    random_cases = run(f"{options.seed}:random", options.cases, check_case, failures)
    lock_step: list[dict[str, Any]] = []
    if options.lock_step:
        spark = delta_spark_session()
        try:
            lock_step = run(
                f"{options.seed}:lock-step",
                options.lock_step,
                lambda rng, path: check_lock_step(spark, rng, path),
                failures,
            )
        finally:
            spark.stop()
    report = {
        **report_head("z-order", seed=options.seed, seconds=time.monotonic() - began),
        "random": {
            "cases": options.cases,
            "passed": len(random_cases),
            "rows": sum(case["rows"] for case in random_cases),
            "new_files": sum(case["files"] for case in random_cases),
            "cases_over_disk": sum(case["spilled"] > 0 for case in random_cases),
        },
        "against_delta_spark": {
            "cases": options.lock_step,
            "passed": len(lock_step),
            "queries": sum(case["queries"] for case in lock_step),
            "files_skipped_ours": sum(case["ours"] for case in lock_step),
            "files_skipped_delta_spark": sum(case["theirs"] for case in lock_step),
        },
        "failures": failures,
    }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{options.output.name}: {len(random_cases)} and {len(lock_step)} passed, {len(failures)} failed")
    return 1 if failures else 0


def run(
    seed: str,
    count: int,
    check: Callable[[random.Random, Path], dict[str, Any]],
    failures: list[str],
) -> list[dict[str, Any]]:
    """The outcomes of the cases that passed; the others' names and errors go to `failures`."""
    passed = []
    for number in range(count):
        with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
            try:
                passed.append(check(random.Random(f"{seed}:{number}"), Path(folder) / "t"))
            except Exception:
                failures.append(f"{seed}:{number}: {traceback.format_exc(limit=-3)}")
                print(failures[-1], file=sys.stderr)
    return passed


if __name__ == "__main__":
    sys.exit(main())
