"""Tables that we wrote with every feature, maintained by delta-spark and deltalake; then we go on.

    nice python benchmarks/soak/maintained_tables.py [--sets 13] [--no-singles] [--first N] [--steps N]

Each feature alone, then sets of four: a table with some random operations of the state machine. Each peer
gets a copy with a checkpoint of ours and none of the commits before it; it compacts, purges, updates, merges,
alters, restores and vacuums it (`tests.support.peers_maintain`). After each step we read the rows, with
the row ids that they had; at the end we append, compact and write a checkpoint. A step that a peer says that
it does not do is counted, in its words.

Needs delta-spark's jars, unless `--no-spark`. Writes `benchmarks/results/soak-maintained-tables.json`. Exits
1 when a step failed, or left other rows.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.state_machine.features import go_together  # noqa: E402 - a program
from tests.support.delta_spark_reader import SMALL_QUERIES  # noqa: E402
from tests.support.delta_spark_reader import session as delta_spark_session  # noqa: E402
from tests.support.peers_maintain import (  # noqa: E402
    DONE,
    NO_SENSE,
    Step,
    check_maintained,
    steps_of_delta_spark,
    steps_of_deltalake,
)
from tests.support.soak_report import report_head  # noqa: E402
from tests.support.written_features import all_ways  # noqa: E402
from tests.support.written_peers import forget_tables  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-maintained-tables.json"
SET_SIZE = 4

CONF = SMALL_QUERIES | {
    # By the clock of the tables it is 2023, and VACUUM is to take what the step before it removed.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def main(arguments: Sequence[str] | None = None, running: SparkSession | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=13, help="so many sets of features")
    parser.add_argument("--singles", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--first", type=int, help="only so many of all tables")
    parser.add_argument("--steps", type=int, help="only so many of each peer's steps, drawn for each table")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--operations", type=int, default=8)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    peers: dict[str, tuple[Step, ...]] = {"deltalake": steps_of_deltalake()}
    spark = None
    if options.spark:
        spark = running or delta_spark_session(threads=1)
        spark.sparkContext.setLogLevel("OFF")
        for key, value in CONF.items():
            spark.conf.set(key, value)
        peers["delta-spark"] = steps_of_delta_spark(spark)
    tables: list[dict[str, Any]] = []
    try:
        for number, features in enumerate(wanted(options)[: options.first]):
            tables.append(run(peers, options, f"{options.seed}:{number}", features))
            if spark is not None:
                forget_tables(spark)
            options.output.write_text(json.dumps(summary(options, tables), indent=2) + "\n")
    finally:
        if spark is not None and running is None:
            spark.stop()
    failed = sum("error" in table for table in tables)
    print(f"{options.output.name}: {len(tables) - failed} of {len(tables)} tables were maintained")
    return 1 if failed else 0


def wanted(options: argparse.Namespace) -> list[list[str]]:
    """The sets of features, drawn by the seed."""
    names = sorted(all_ways())
    rng = random.Random(f"{options.seed}:maintained")
    found = [[name] for name in names] if options.singles else []
    sets: list[list[str]] = []
    while len(sets) < options.sets:
        one = sorted(rng.sample(names, SET_SIZE))
        if go_together(frozenset(one)):
            sets.append(one)
    return found + sets


def run(
    peers: Mapping[str, tuple[Step, ...]], options: argparse.Namespace, name: str, features: list[str]
) -> dict[str, Any]:
    """The outcome of one table: what each peer did, or the error."""
    began = time.monotonic()
    ways = [all_ways()[feature] for feature in features]
    if options.steps:
        peers = {peer: drawn_steps(steps, options.steps, f"{name}:{peer}") for peer, steps in peers.items()}
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        try:
            result = check_maintained(peers, name, ways, Path(scratch), operations=options.operations)
        except Exception as error:
            print(f"{name}: {features}: {traceback.format_exc(limit=-5)[:3000]}", file=sys.stderr)
            result = {"features": features, "error": f"{type(error).__name__}: {error}"[:2000]}
    print(f"{name}: {features}: {'FAILED' if 'error' in result else 'maintained'}", flush=True)
    return {"table": name, **result, "seconds": round(time.monotonic() - began, 1)}


def drawn_steps(steps: tuple[Step, ...], count: int, seed: str) -> tuple[Step, ...]:
    """Some of a peer's steps, in their order."""
    kept = sorted(random.Random(seed).sample(range(len(steps)), count))
    return tuple(steps[at] for at in kept)


def summary(options: argparse.Namespace, tables: list[dict[str, Any]]) -> dict[str, Any]:
    """What is written after each table."""
    good = [table for table in tables if "error" not in table]
    done: dict[str, Counter[str]] = {}
    refused: dict[str, Counter[str]] = {}
    for table in good:
        for peer, steps in table["peers"].items():
            done.setdefault(peer, Counter()).update(step for step, said in steps.items() if said == DONE)
            refused.setdefault(peer, Counter()).update(
                step for step, said in steps.items() if said not in (DONE, NO_SENSE)
            )
    return {
        **report_head(
            "maintained-tables", seed=options.seed, seconds=sum(table["seconds"] for table in tables)
        ),
        "tables_maintained": len(good),
        "failed": len(tables) - len(good),
        "steps_done": {peer: dict(steps) for peer, steps in done.items()},
        "steps_refused": {peer: dict(steps) for peer, steps in refused.items()},
        "tables": tables,
    }


if __name__ == "__main__":
    sys.exit(main())
