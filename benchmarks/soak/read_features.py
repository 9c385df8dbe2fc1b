"""Tables that delta-spark wrote with every feature, alone and in pairs, read here at every version.

    nice python benchmarks/soak/read_features.py [--sets 60] [--singles] [--operations 20] [--seed 1]

Each feature alone, then sets of features so that every possible pair is in at least one. What is compared
is in `tests/support/feature_comparison.py`. Needs delta-spark's jars. Writes
`benchmarks/results/soak-read-features.json` after each table; exits 1 when a table reads differently.
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
from typing import TYPE_CHECKING, Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.delta_spark_reader import session as delta_spark_session  # noqa: E402 - a program
from tests.support.feature_comparison import check_table  # noqa: E402
from tests.support.feature_sets import (  # noqa: E402
    FeatureSet,
    covering_sets,
    pairs_of,
    possible_pairs,
    single_features,
)
from tests.support.soak_report import report_head  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-read-features.json"

# Hundreds of small queries: generating code for each costs more than it saves.
CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.databricks.delta.identityColumn.enabled": "true",
}


def main(arguments: Sequence[str] | None = None, running: SparkSession | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=60, help="at least so many sets of features")
    parser.add_argument("--first", type=int, help="only so many of all tables")
    parser.add_argument("--from", dest="skip", type=int, default=0, help="without the first so many")
    parser.add_argument("--having", help="only tables with this feature")
    parser.add_argument("--singles", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--operations", type=int, default=20)
    parser.add_argument("--minutes", type=float, help="begin no table after so long")
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--keep", type=Path, help="a folder to keep the tables in")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    sets = covering_sets(random.Random(f"{options.seed}:sets"), options.sets)
    planned = [*(single_features() if options.singles else []), *sets]
    wanted = [(at, one) for at, one in enumerate(planned) if not options.having or options.having in one]
    chosen = wanted[options.skip :][: options.first]
    tables: list[dict[str, Any]] = []
    report: dict[str, Any] = {}
    spark = running or delta_spark_session()
    spark.sparkContext.setLogLevel("OFF")
    for key, value in CONF.items():
        spark.conf.set(key, value)
    try:
        for number, features in chosen:
            if options.minutes and time.monotonic() - began > options.minutes * 60:
                break
            tables.append(run(spark, options, number, features))
            report = summary(options, tables, len(planned), time.monotonic() - began)
            options.output.write_text(json.dumps(report, indent=2) + "\n")
    finally:
        if running is None:
            spark.stop()
    print(f"{options.output.name}: {report['passed']} of {len(planned)} tables read equal")
    return 0 if report["passed"] == len(chosen) else 1


def run(
    spark: SparkSession, options: argparse.Namespace, number: int, features: FeatureSet
) -> dict[str, Any]:
    """The outcome of one table: its counts, or the error."""
    name = f"{options.seed}:{number}"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        path = (options.keep or Path(scratch)) / f"t{number}"
        try:
            result = check_table(spark, random.Random(name), features, path, operations=options.operations)
        except Exception as error:
            print(f"{name}: {sorted(features)}: {traceback.format_exc(limit=-4)[:3000]}", file=sys.stderr)
            result = {"features": sorted(features), "error": f"{type(error).__name__}: {error}"[:2000]}
    outcome = {"table": name, **result, "seconds": round(time.monotonic() - began, 1)}
    print(f"{name}: {sorted(features)}: {outcome.get('versions', 'FAILED')} versions", flush=True)
    return outcome


def summary(
    options: argparse.Namespace, tables: list[dict[str, Any]], planned: int, seconds: float
) -> dict[str, Any]:
    """What is written after each table."""
    good = [table for table in tables if "error" not in table]
    covered = {pair for table in good for pair in pairs_of(frozenset(table["features"]))}
    return {
        **report_head("read-features", seed=options.seed, seconds=seconds),
        "planned": planned,
        "run": len(tables),
        "passed": len(good),
        "failed": len(tables) - len(good),
        "pairs_covered": len(covered),
        "pairs_possible": len(possible_pairs()),
        "versions": sum(table["versions"] for table in good),
        "rows": sum(table["rows"] for table in good),
        "predicates": sum(table["predicates"] for table in good),
        "change_data_ranges": sum(table["change_data_ranges"] for table in good),
        "operations": dict(Counter(name for table in good for name in table["operations"]).most_common()),
        "protocol_features": dict(
            Counter(name for table in good for name in table["protocol"]).most_common()
        ),
        "tables": tables,
    }


if __name__ == "__main__":
    sys.exit(main())
