"""Has delta-spark make clustered tables, and go on with them once we have clustered them.

Usage: `python -m tests.support.delta_spark_server clustered make|go_on FOLDER TABLE...`.

`make` creates FOLDER/TABLE as STATEMENTS say; `go_on` optimizes it, inserts a row, optimizes it twice, and
clusters it by other columns. What delta-spark says of each goes to FOLDER/make.json and FOLDER/go_on.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "(id BIGINT, s STRUCT<x: INT, y: STRING>, t STRING) USING DELTA CLUSTER BY (id, s.x)"
_VALUES = "id, named_struct('x', INT(99 - id), 'y', STRING(id)), STRING(id % 7)"
STATEMENTS = {
    "plain": [f"CREATE TABLE {{t}} {_COLUMNS} TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"],
    "mapped": [f"CREATE TABLE {{t}} {_COLUMNS} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"],
    "numbered": [
        f"CREATE TABLE {{t}} {_COLUMNS} TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        "'delta.enableDeletionVectors' = 'true')"
    ],
}
"""By table."""


def told(spark: SparkSession, table: str) -> dict[str, Any]:
    """Its rows, and by which columns it is clustered."""
    detail = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
    rows = spark.sql(f"SELECT id, s.x AS x, s.y AS y, t FROM {table}").collect()
    return {
        "rows": sorted(list(row) for row in rows),
        "clusteringColumns": detail["clusteringColumns"],
        "numFiles": detail["numFiles"],
    }


def make(spark: SparkSession, table: str, name: str) -> dict[str, Any]:
    """Create it, with three files."""
    for statement in STATEMENTS[name]:
        spark.sql(statement.format(t=table))
    for first in (0, 30, 60):
        spark.sql(f"INSERT INTO {table} SELECT {_VALUES} FROM range({first}, {first + 30}, 1, 1)")
    return told(spark, table)


def go_on(spark: SparkSession, table: str) -> dict[str, Any]:
    """What it reads, and how many files each OPTIMIZE takes."""
    said = told(spark, table)
    removed = [_optimized(spark, table)]
    spark.sql(f"INSERT INTO {table} VALUES (1000, named_struct('x', 5, 'y', 'five'), 'new')")
    removed += [_optimized(spark, table), _optimized(spark, table)]
    spark.sql(f"ALTER TABLE {table} CLUSTER BY (t)")
    return {**said, "removed": removed, "after": told(spark, table)}


def _optimized(spark: SparkSession, table: str) -> int:
    return int(spark.sql(f"OPTIMIZE {table}").collect()[0]["metrics"]["numFilesRemoved"])


def main(spark: SparkSession, what: str, folder: str, *tables: str) -> None:
    """Do it, and say what came of it."""
    said = {}
    for name in _known(what, tables):
        table = f"delta.`{Path(folder) / name}`"
        said[name] = make(spark, table, name) if what == "make" else go_on(spark, table)
    (Path(folder) / f"{what}.json").write_text(json.dumps(said))


def _known(what: str, tables: Sequence[str]) -> Sequence[str]:
    assert what in ("make", "go_on"), what
    return tables
