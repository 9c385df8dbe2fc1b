"""Writers by Spark and by delta_core on the same files, beside compaction, Z-order and purge without a pause.

    nice python benchmarks/soak/mixed_writers.py [--minutes 10] [--contested-minutes 1] [--seed 1]

Two writers by spark_jobs and two by delta_core run DELETE, UPDATE and MERGE on their own rows, which share
files. Nobody may give up: no writer, no rewrite. At the end the rows are the writers' models, as this
library, deltalake and delta-spark read them. It runs with and without row ids, half the time
each. Then all of them contest one key, at both isolation levels: who loses gets a typed conflict, and each
statement that was committed counts once. Writes `benchmarks/results/soak-mixed-writers.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

import spark_jobs  # noqa: E402 - a program
from delta_core import DeltaTable, write_deltalake  # noqa: E402
from delta_core.errors import ConcurrentModificationError, DeltaError  # noqa: E402
from delta_core.merge.clauses import MergeAction  # noqa: E402
from spark_jobs.dml.clauses import MergeClause, MergeClauses  # noqa: E402
from spark_jobs.session import get_session  # noqa: E402
from tests.support.delta_spark_reader import SETTINGS, SMALL_QUERIES  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-mixed-writers.json"
WRITERS = 4
FILES = 5
ROWS = 400
MOST_ROWS = 1200
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
UPSERT = MergeClauses(
    matched=(MergeClause(action=MergeAction.UPDATE, values={"v": "s.v"}),),
    not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
)

REWRITES: tuple[Callable[[Any], Any], ...] = (
    lambda optimize: optimize.compact(),
    lambda optimize: optimize.purge(),
    lambda optimize: optimize.z_order(["v"], full=True),
)


def make(root: Path, properties: dict[str, str]) -> None:
    """A table of FILES files, each with rows of every writer: the rows of a writer have its remainder."""
    DeltaTable.create(root, schema=SCHEMA, configuration={**PROPERTIES, **properties})
    for part in range(FILES):
        ids = pa.array(range(part * ROWS, (part + 1) * ROWS), pa.int64())
        write_deltalake(root, pa.table({"id": ids, "v": ids}), mode="append")


@dataclass(slots=True)
class Writer:
    """Changes its own rows, and keeps a model of them. Even ones use Spark, odd ones delta_core."""

    root: Path
    number: int
    random: random.Random
    spark: Any
    model: dict[int, int] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def engine(self) -> str:
        return "core" if self.number % 2 else "spark"

    def run(self, until: float, statement: Callable[[], None]) -> None:
        while time.monotonic() < until:
            try:
                statement()
            except DeltaError as error:
                self.errors.append(f"{self.engine} {self.number}: {type(error).__name__}: {error}"[:1500])

    def own_rows(self) -> None:
        """One statement on some of its rows."""
        kind = self.random.choice(("delete", "update", "update", "merge", "merge"))
        if len(self.model) > MOST_ROWS:
            kind = "delete"
        keys = self.random.sample(sorted(self.model), k=min(20, len(self.model)))
        where = f"id IN ({', '.join(map(str, keys or [-1]))})"
        if kind == "delete":
            self.delete(where)
            for key in keys:
                del self.model[key]
        elif kind == "update":
            self.update({"v": "v + 1000000"}, where)
            self.model |= {key: self.model[key] + 1_000_000 for key in keys}
        else:
            new = {10_000 + self.random.randrange(2_000) * WRITERS + self.number for _ in range(10)}
            rows = {key: self.random.randrange(1_000_000) for key in {*keys, *new}}
            self.merge(rows)
            self.model |= rows
        self.done[f"{self.engine} {kind}"] += 1

    def delete(self, where: str) -> None:
        if self.engine == "spark":
            spark_jobs.delete(self.spark, str(self.root), where)
        else:
            DeltaTable(self.root).delete(where)

    def update(self, values: dict[str, str], where: str) -> None:
        if self.engine == "spark":
            spark_jobs.update(self.spark, str(self.root), values, where)
        else:
            DeltaTable(self.root).update(values, where)

    def merge(self, rows: dict[int, int]) -> None:
        table = pa.table({"id": list(rows), "v": list(rows.values())}, SCHEMA)
        if self.engine == "spark":
            frame = self.spark.createDataFrame(table).coalesce(1).alias("s")
            spark_jobs.merge(self.spark, str(self.root), frame, "t.id = s.id", UPSERT)
        else:
            merge = DeltaTable(self.root).merge(table, "t.id = s.id", source_alias="s", target_alias="t")
            merge.when_matched_update({"v": "s.v"}).when_not_matched_insert_all().execute()

    def contested(self) -> None:
        """One statement that adds 1 to the value of one key, which all writers change."""
        kind = self.random.choice(("update", "merge"))
        try:
            if kind == "update":
                self.update({"v": "v + 1"}, "id = 0")
            elif self.engine == "spark":
                clauses = MergeClauses(
                    matched=(MergeClause(action=MergeAction.UPDATE, values={"v": "t.v + 1"}),)
                )
                frame = self.spark.createDataFrame([(0,)], "id bigint").coalesce(1).alias("s")
                spark_jobs.merge(self.spark, str(self.root), frame, "t.id = s.id", clauses)
            else:
                source = pa.table({"id": pa.array([0], pa.int64())})
                merge = DeltaTable(self.root).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
                merge.when_matched_update({"v": "t.v + 1"}).execute()
        except ConcurrentModificationError as error:
            self.done[f"{self.engine} {kind}: {type(error).__name__}"] += 1
        else:
            self.done[f"{self.engine} {kind}: committed"] += 1


def together(
    root: Path, writers: list[Writer], statement: str, *, seconds: float
) -> tuple[Counter[str], list[str]]:
    """All writers beside rewrites without a pause. Returns the rewrites and their errors."""
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=writer.run, args=(until, getattr(writer, statement))) for writer in writers
    ]
    for thread in threads:
        thread.start()
    rewrites: Counter[str] = Counter()
    failures: list[str] = []
    for turn in cycle(range(len(REWRITES))):
        if not any(thread.is_alive() for thread in threads):
            break
        name = ("compaction", "purge", "z-order")[turn]
        try:
            metrics = REWRITES[turn](DeltaTable(root).optimize)
            rewrites[name if metrics["numFilesAdded"] else f"{name}, nothing to do"] += 1
        except DeltaError as error:
            failures.append(f"{name}: {type(error).__name__}: {error}"[:1500])
    for thread in threads:
        thread.join()
    return rewrites, failures


def readings(root: Path, spark: Any) -> dict[str, list[tuple[int, int]]]:
    """The rows, as each engine reads them."""
    found = pa.table(QueryBuilder().register("t", PeerTable(str(root))).execute("select id, v from t"))
    tables = {
        "deltaward": DeltaTable(root).to_pyarrow_table(),
        "spark_jobs": spark_jobs.read(spark, str(root)).toArrow(),
        "deltalake": found,
        "delta-spark": spark.read.format("delta").load(str(root)).toArrow(),
    }
    return {
        name: sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
        for name, table in tables.items()
    }


def disjoint(spark: Any, root: Path, seed: str, properties: dict[str, str], seconds: float) -> dict[str, Any]:
    """Writers on their own rows."""
    make(root, properties)
    writers = [
        Writer(root, number, random.Random(f"{seed} {number}"), spark)
        for number in range(WRITERS)
    ]  # fmt: skip
    for writer in writers:
        writer.model = {key: key for key in range(FILES * ROWS) if key % WRITERS == writer.number}
    rewrites, failures = together(root, writers, "own_rows", seconds=seconds)
    expected = sorted((key, value) for writer in writers for key, value in writer.model.items())
    wrong = [name for name, rows in readings(root, spark).items() if rows != expected]
    statements: Counter[str] = sum((writer.done for writer in writers), Counter())
    return {
        "properties": properties,
        "seconds": round(seconds),
        "versions": DeltaTable(root).version(),
        "statements": dict(statements),
        "rewrites": dict(rewrites),
        "aborted_writers": [error for writer in writers for error in writer.errors],
        "aborted_rewrites": failures,
        "rows": len(expected),
        "readers_that_differ": wrong,
    }


def contested(spark: Any, root: Path, seed: str, level: str, seconds: float) -> dict[str, Any]:
    """All writers on one key."""
    make(root, {"delta.isolationLevel": level, **TRACKED})
    writers = [Writer(root, number, random.Random(f"{seed} {number}"), spark) for number in range(WRITERS)]
    rewrites, failures = together(root, writers, "contested", seconds=seconds)
    outcomes: Counter[str] = sum((writer.done for writer in writers), Counter())
    committed = sum(count for name, count in outcomes.items() if name.endswith("committed"))
    values = {name: dict(rows).get(0) for name, rows in readings(root, spark).items()}
    return {
        "level": level,
        "outcomes": dict(outcomes),
        "rewrites": dict(rewrites),
        "other_errors": [error for writer in writers for error in writer.errors],
        "aborted_rewrites": failures,
        "committed": committed,
        "value": values,
        "lost_or_doubled": {name: value for name, value in values.items() if value != committed},
    }


def main(given: Sequence[str] | None = None, spark: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--contested-minutes", type=float, default=1)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED", "1"))
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--no-singles", action="store_true", help="ignored")
    options = parser.parse_args(given)
    if spark is None:
        conf = {"spark.driver.memory": "1g", "spark.log.level": "ERROR"}
        spark = get_session(master="local[2]", conf={**conf, **SETTINGS, **SMALL_QUERIES}, app_name="soak")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as folder:
        half = options.minutes * 30
        own = [
            disjoint(spark, Path(folder) / f"own {index}", options.seed, properties, half)
            for index, properties in enumerate((TRACKED, {}))
        ]
        levels = [
            contested(spark, Path(folder) / level, options.seed, level, options.contested_minutes * 30)
            for level in ("WriteSerializable", "Serializable")
        ]
    faults = sum(
        len(part[key])
        for part, keys in (
            *((part, ("aborted_writers", "aborted_rewrites", "readers_that_differ")) for part in own),
            *((part, ("other_errors", "aborted_rewrites", "lost_or_doubled")) for part in levels),
        )
        for key in keys
    )
    report = {
        **report_head("mixed-writers", seed=options.seed, seconds=time.monotonic() - began),
        "what": "two writers by Spark and two by delta_core beside compaction, purge and Z-order",
        "passed": not faults,
        "own_rows": own,
        "one_key": levels,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    for part in own:
        print(sum(part["statements"].values()), "statements", part["rewrites"], len(part["aborted_writers"]),
              "aborted writers", len(part["aborted_rewrites"]), "aborted rewrites",
              part["readers_that_differ"])  # fmt: skip
    for part in levels:
        print(part["level"], part["outcomes"], part["lost_or_doubled"], len(part["other_errors"]),
              len(part["aborted_rewrites"]))  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
