"""Tables that we wrote with every feature, alone and in pairs, read and continued by three peers.

    nice python benchmarks/soak/written_tables.py [--sets 150] [--no-singles] [--operations 20] [--seed 1]

Each feature alone, then sets of features so that every possible pair is in at least one: a table with random
operations of the state machine, whose model knows the rows of every version. delta-spark, deltalake and
DuckDB read every version and get those rows; the change feed is delta-spark's. Then delta-spark and
deltalake, each on a copy with a checkpoint of ours and none of the commits before it, append and delete, and
we read what they left. What a peer says that it does not do is listed in its words.

Needs delta-spark's jars, unless `--no-spark`. Writes `benchmarks/results/soak-written-tables.json` after each
table; `--resume` keeps the good tables that it has, runs the failed ones again, and adds what is missing:
that is, for a feature that was opened since, itself and the pairs with it. Exits 1 when somebody read other
rows. `docs/interop.md` is made of it (`python -m tests.support.interop_page`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.delta_spark_reader import SMALL_QUERIES  # noqa: E402 - a program
from tests.support.delta_spark_reader import session as delta_spark_session  # noqa: E402
from tests.support.feature_sets import FeatureSet, covering_sets, pairs_of, possible_pairs  # noqa: E402
from tests.support.soak_report import git, report_head  # noqa: E402
from tests.support.written_features import all_ways, closed_ways, excluding  # noqa: E402
from tests.support.written_peers import Peers, check_table  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-written-tables.json"

CONF = SMALL_QUERIES | {
    # By the clock of the tables it is 2023.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}


def main(arguments: Sequence[str] | None = None, running: SparkSession | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=150, help="at least so many sets of features")
    parser.add_argument("--first", type=int, help="only so many of all tables")
    parser.add_argument("--from", dest="skip", type=int, default=0, help="without the first so many")
    parser.add_argument("--having", help="only tables with this feature")
    parser.add_argument("--resume", action="store_true", help="keep the good tables of the last result")
    parser.add_argument("--singles", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--operations", type=int, default=20)
    parser.add_argument("--minutes", type=float, help="begin no table after so long")
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    had = json.loads(options.output.read_text())["tables"] if options.resume else []
    tables: list[dict[str, Any]] = [table for table in had if "error" not in table]
    missing = _missing(options, had)
    planned = len(tables) + len(missing)
    wanted = [(at, one) for at, one in missing if not options.having or options.having in one]
    chosen = wanted[options.skip :][: options.first]
    report = summary(options, tables, planned)
    spark = _spark(running) if options.spark else None
    try:
        peers = Peers(spark)
        for number, features in chosen:
            if options.minutes and time.monotonic() - began > options.minutes * 60:
                break
            tables.append(run(peers, options, number, features))
            peers.forget()
            tables.sort(key=_number)
            report = summary(options, tables, planned)
            options.output.write_text(json.dumps(report, indent=2) + "\n")
    finally:
        if spark is not None and running is None:
            spark.stop()
    print(f"{options.output.name}: {report['passed']} of {report['planned']} tables are read equal")
    return 1 if report["failed"] else 0


def _missing(options: argparse.Namespace, had: Sequence[Mapping[str, Any]]) -> list[tuple[int, FeatureSet]]:
    """What is to be run: a table's number, and its features. Those that failed, first."""
    names = frozenset(all_ways())
    failed = [(_number(table), frozenset(table["features"])) for table in had if "error" in table]
    sets_had = [frozenset(table["features"]) for table in had]
    rng = random.Random(f"{options.seed}:sets:{len(had)}" if had else f"{options.seed}:sets")
    wanted = [frozenset({name}) for name in sorted(names)] if options.singles else []
    wanted = [one for one in wanted if one not in sets_had]
    still = options.sets - sum(len(one) > 1 for one in sets_had)
    wanted += covering_sets(rng, still, names, excluding(names), had=sets_had)
    used = {_number(table) for table in had}
    return failed + list(zip((at for at in itertools.count() if at not in used), wanted, strict=False))


def _number(table: Mapping[str, Any]) -> int:
    return int(table["table"].rpartition(":")[2])


def _spark(running: SparkSession | None) -> SparkSession:
    spark = running or delta_spark_session(threads=1)
    spark.sparkContext.setLogLevel("OFF")
    for key, value in CONF.items():
        spark.conf.set(key, value)
    return spark


def run(peers: Peers, options: argparse.Namespace, number: int, features: FeatureSet) -> dict[str, Any]:
    """The outcome of one table: its counts, or the error."""
    name = f"{options.seed}:{number}"
    began = time.monotonic()
    ways = [all_ways()[feature] for feature in sorted(features)]
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        try:
            result = check_table(peers, name, ways, Path(scratch), operations=options.operations)
        except Exception as error:
            print(f"{name}: {sorted(features)}: {traceback.format_exc(limit=-5)[:3000]}", file=sys.stderr)
            result = {"features": sorted(features), "error": f"{type(error).__name__}: {error}"[:2000]}
    seconds = round(time.monotonic() - began, 1)
    outcome = {"table": name, "commit": git("rev-parse", "HEAD"), **result, "seconds": seconds}
    print(f"{name}: {sorted(features)}: {outcome.get('versions', 'FAILED')} versions", flush=True)
    return outcome


def summary(options: argparse.Namespace, tables: list[dict[str, Any]], planned: int) -> dict[str, Any]:
    """What is written after each table."""
    good = [table for table in tables if "error" not in table]
    names = frozenset(all_ways())
    covered = {pair for table in good for pair in pairs_of(frozenset(table["features"]))}
    readers = sorted({peer for table in good for peer in table["reads"]})
    writers = sorted({peer for table in good for peer in table["goes_on"]})
    return {
        **report_head("written-tables", seed=options.seed, seconds=sum(table["seconds"] for table in tables)),
        "planned": planned,
        "run": len(tables),
        "passed": len(good),
        "failed": len(tables) - len(good),
        "pairs_covered": len(covered),
        "pairs_possible": len(possible_pairs(names, excluding(names))),
        "not_written": dict(closed_ways()),
        "versions": sum(table["versions"] for table in good),
        "versions_equal": {peer: sum(table["reads"][peer]["equal"] for table in good) for peer in readers},
        "change_versions_equal": sum(table.get("changes", {}).get("versions", 0) for table in good),
        "tables_continued": {
            peer: sum(table["goes_on"][peer]["appended"] > 0 for table in good) for peer in writers
        },
        "operations": dict(
            sum((Counter(table["operations"]) for table in good), Counter[str]()).most_common()
        ),
        "protocol_features": dict(
            Counter(name for table in good for name in table["protocol"]).most_common()
        ),
        "tables": tables,
    }


if __name__ == "__main__":
    sys.exit(main())
