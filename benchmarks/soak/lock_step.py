"""Random operations on copies of a table, by delta-spark and by spark_jobs, compared after each one.

    nice python benchmarks/soak/lock_step.py [--operations 400] [--tables NAME ...] [--seed 1] [--minutes 60]

The operations are spread over the kinds of tables of `tests/support/lock_step.py`. Writes
`benchmarks/results/soak-lock-step.json`; exits 1 when something differs.
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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from spark_jobs.session import get_session  # noqa: E402 - a program
from tests.support.delta_spark_reader import SETTINGS, SMALL_QUERIES  # noqa: E402
from tests.support.lock_step import KINDS, walk  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-lock-step.json"


def main(given: Sequence[str] | None = None, spark: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=400)
    parser.add_argument("--tables", nargs="*", default=None, help="kinds of tables; all of them by default")
    parser.add_argument("--drawn", type=int, help="draw so many kinds by the seed")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--no-singles", action="store_true", help="ignored")
    options = parser.parse_args(given)
    names = options.tables or list(KINDS)
    if options.drawn:
        names = random.Random(options.seed).sample(names, options.drawn)
    if spark is None:
        conf = {"spark.driver.memory": "1g", "spark.log.level": "ERROR"}
        spark = get_session(master="local[2]", conf={**conf, **SETTINGS, **SMALL_QUERIES}, app_name="soak")
    began = time.monotonic()
    outcomes: Counter[str] = Counter()
    tables: dict[str, dict[str, int]] = {}
    failures: list[str] = []
    shown = 0
    for index, name in enumerate(names):
        if time.monotonic() - began > options.minutes * 60:
            break
        share = options.operations * (index + 1) // len(names) - options.operations * index // len(names)
        with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
            try:
                found, differences = walk(
                    spark, name, options.seed, Path(folder) / "tables", operations=share
                )
            except Exception:
                failures.append(f"{name}: {traceback.format_exc()[-3000:]}")
            else:
                outcomes.update(found)
                tables[name] = dict(found)
                failures += [difference[:3000] for difference in differences]
        print(f"{name}: {tables.get(name)}, {len(failures)} differences so far", flush=True)
        for difference in failures[shown:]:
            print(difference[:1500], file=sys.stderr, flush=True)
        shown = len(failures)
    report = {
        **report_head("lock-step", seed=options.seed, seconds=time.monotonic() - began),
        "what": "random operations by delta-spark 4.4.0 and spark_jobs; rows, change data, schema, metrics",
        "operations": options.operations,
        "tables": tables,
        "outcomes": dict(outcomes.most_common()),
        "failures": failures,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(tables)} tables, {len(failures)} differences: {dict(outcomes)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
