"""Has delta-spark make tables, drop features itself, and go on with tables that we dropped features of.

Usage: `python -m tests.support.delta_spark_server dropped make|go_on FOLDER FEATURE...`.

For each FEATURE there are two tables: FOLDER/<feature> is for us to drop it, of FOLDER/<feature>-by-spark
delta-spark drops it. What it says of them goes to FOLDER/make.json and FOLDER/go_on.json: ids of the rows at
every version, and protocol and properties at the end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.soak import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "(id BIGINT, v INT, s STRING) USING DELTA"
_INSERTS = [
    f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ id, INT(id), STRING(id) FROM range({first}, {first + 10})"
    for first in (0, 10, 20)
]
_DELETE = "DELETE FROM {t} WHERE id IN (3, 14)"


def _with(properties: str, *more: str) -> list[str]:
    create = f"CREATE TABLE {{t}} {_COLUMNS} TBLPROPERTIES ({properties})"
    return [create, *_INSERTS, *more, _DELETE]


STATEMENTS: dict[str, list[str]] = {
    "deletionVectors": _with("'delta.enableDeletionVectors' = 'true'"),
    "rowTracking": _with("'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'false'"),
    "v2Checkpoint": _with("'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2'"),
    "inCommitTimestamp": _with("'delta.enableInCommitTimestamps' = 'true'"),
    "vacuumProtocolCheck": _with("'delta.feature.vacuumProtocolCheck' = 'supported'"),
    "clustering": [f"CREATE TABLE {{t}} {_COLUMNS} CLUSTER BY (v)", *_INSERTS, _DELETE],
    "typeWidening": _with(
        "'delta.enableTypeWidening' = 'true'",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        "INSERT INTO {t} SELECT id, id, STRING(id) FROM range(40, 45)",
    ),
    "columnMapping": _with(
        "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'false'",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "ALTER TABLE {t} DROP COLUMN s",
        "ALTER TABLE {t} ADD COLUMN s STRING",
        "INSERT INTO {t} SELECT id, INT(id), STRING(id) FROM range(40, 45)",
    ),
    "checkConstraints": [
        *_with("'delta.appendOnly' = 'false'"),
        "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id >= 0)",
        "ALTER TABLE {t} DROP CONSTRAINT c",
    ],
}
"""By feature."""

DROPPED_BY_SPARK = (
    "deletionVectors",
    "rowTracking",
    "v2Checkpoint",
    "inCommitTimestamp",
    "typeWidening",
    "columnMapping",
)


def ids(spark: SparkSession, table: str, *, usual: int) -> dict[str, list[int]]:
    """The rows of so many versions, the newest one included."""
    newest = spark.sql(f"DESCRIBE HISTORY {table}").agg({"version": "max"}).collect()[0][0]
    found: dict[str, list[int]] = {
        str(version): [] for version in (*drawn(range(newest), usual=usual - 1), newest)
    }
    each = (f"SELECT {version} AS n, id FROM {table} VERSION AS OF {version}" for version in found)
    for row in spark.sql(" UNION ALL ".join(each)).collect():
        found[str(row["n"])].append(row["id"])
    return {version: sorted(rows) for version, rows in found.items()}


def described(spark: SparkSession, table: str) -> dict[str, Any]:
    """Protocol and properties."""
    detail = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
    names = ("minReaderVersion", "minWriterVersion", "tableFeatures", "properties")
    return {name: detail[name] for name in names}


def make(spark: SparkSession, folder: Path, features: Sequence[str]) -> dict[str, Any]:
    """Their tables, and what is in them."""
    said = {}
    for name in features:
        for suffix in ("", "-by-spark") if name in DROPPED_BY_SPARK else ("",):
            table = f"delta.`{folder / (name + suffix)}`"
            for statement in STATEMENTS[name]:
                spark.sql(statement.format(t=table))
            before = ids(spark, table, usual=100)
            if suffix:
                spark.sql(f"ALTER TABLE {table} DROP FEATURE {name}")
            said[name + suffix] = {"ids": before, **described(spark, table)}
    return said


def go_on(spark: SparkSession, folder: Path, features: Sequence[str]) -> dict[str, Any]:
    """What it reads now; then one row is added and one deleted."""
    said = {}
    for name in features:
        table = f"delta.`{folder / name}`"
        before = ids(spark, table, usual=4)
        spark.sql(f"INSERT INTO {table} VALUES (1000, 1, 'x')")
        spark.sql(f"DELETE FROM {table} WHERE id = 5")
        after = sorted(row["id"] for row in spark.sql(f"SELECT id FROM {table}").collect())
        said[name] = {"ids": before, "after": after, **described(spark, table)}
    return said


def main(spark: SparkSession, what: str, folder: str, *features: str) -> None:
    """Do it, and say what came of it."""
    said = {"make": make, "go_on": go_on}[what](spark, Path(folder), features)
    (Path(folder) / f"{what}.json").write_text(json.dumps(said))
