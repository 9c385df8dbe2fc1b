"""Has delta-spark make tables with features, tell what is in them and go on, in processes of its own.

Usage: `python -m tests.support.delta_spark_server rewritten make|tell|go_on FOLDER NAME...`.

Each named table is a folder of FOLDER; what delta-spark says of them goes to FOLDER/make.json and so on: the
rows with their ids and commit versions where the table tracks them, and all changes where it has a feed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRACKED = "'delta.enableRowTracking' = 'true'"
_DELETION_VECTORS = "'delta.enableDeletionVectors' = 'true'"
_FEED = "'delta.enableChangeDataFeed' = 'true'"
_INSERTS = [
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, IF(id % 3 = 0, NULL, 'a'), named_struct('a', INT(id), "
    f"'b', STRING(id)), INT(id * 2) FROM range({first}, {first + 20})"
    for first in (0, 20, 40)
]
_COLUMNS = "(id BIGINT, p STRING, s STRUCT<a: INT, b: STRING>, v INT) USING DELTA"
_CHANGES = ["UPDATE {t} SET p = 'a' WHERE id = 21", "DELETE FROM {t} WHERE id IN (1, 22, 25)"]

_FEED_FROM = {"mapped": 6, "filled": 1}
"""It tells no changes across one of the schema."""

STATEMENTS: dict[str, list[str]] = {
    "mapped": [
        f"CREATE TABLE {{t}} {_COLUMNS} PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
        f"{_TRACKED}, {_DELETION_VECTORS}, {_FEED})",
        *_INSERTS,
        "ALTER TABLE {t} RENAME COLUMN s.b TO `b c`",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        *_CHANGES,
    ],
    "by-id": [
        f"CREATE TABLE {{t}} {_COLUMNS} "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = 'id', {_DELETION_VECTORS})",
        *_INSERTS,
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        *_CHANGES,
    ],
    "clustered": [
        f"CREATE TABLE {{t}} {_COLUMNS} CLUSTER BY (v) TBLPROPERTIES ({_TRACKED}, {_DELETION_VECTORS})",
        *_INSERTS,
        *_CHANGES,
    ],
    "iceberg": [
        f"CREATE TABLE {{t}} {_COLUMNS} PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'false')",
        *_INSERTS,
    ],
    "filled": [
        "CREATE TABLE {t} (id BIGINT, g BIGINT GENERATED ALWAYS AS (id * 2), "
        "n BIGINT GENERATED ALWAYS AS IDENTITY, d STRING DEFAULT 'x') USING DELTA TBLPROPERTIES "
        f"('delta.feature.allowColumnDefaults' = 'supported', {_FEED})",
        "INSERT INTO {t} (id) SELECT /*+ COALESCE(1) */ id FROM range(0, 10)",
        "INSERT INTO {t} (id) SELECT /*+ COALESCE(1) */ id FROM range(10, 20)",
    ],
}

GO_ON: dict[str, list[str]] = {
    "mapped": ["UPDATE {t} SET v = -1 WHERE id = 30", "DELETE FROM {t} WHERE id = 31", "OPTIMIZE {t}"],
    "by-id": ["DELETE FROM {t} WHERE id = 31", "UPDATE {t} SET w = 7 WHERE id = 30"],
    "clustered": ["DELETE FROM {t} WHERE id = 31", "OPTIMIZE {t}"],
    "iceberg": ["DELETE FROM {t} WHERE id = 31"],
    "filled": ["INSERT INTO {t} (id) VALUES (100)", "DELETE FROM {t} WHERE id = 3"],
}


def told(spark: SparkSession, path: Path) -> dict[str, list[str]]:
    """What delta-spark says of a table."""
    table = f"delta.`{path}`"
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    tracked = properties.get("delta.enableRowTracking") == "true"
    ids = ", _metadata.row_id, _metadata.row_commit_version" if tracked else ""
    answer = {"rows": spark.sql(f"SELECT *{ids} FROM {table}")}
    if properties.get("delta.enableChangeDataFeed") == "true":
        feed = (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", _FEED_FROM[path.name])
        )
        answer["changes"] = feed.load(str(path)).drop("_commit_timestamp")
    return {
        name: sorted(str(row.asDict(recursive=True)) for row in frame.collect())
        for name, frame in answer.items()
    }


def main(spark: SparkSession, what: str, folder: str, *names: str) -> None:
    """Do it and write the answers."""
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.databricks.delta.clusteredTable.enableClusteringTablePreview", "true")
    answers = {}
    for name in names:
        statements, path = STATEMENTS[name], Path(folder) / name
        for statement in {"make": statements, "tell": [], "go_on": GO_ON[name]}[what]:
            spark.sql(statement.format(t=f"delta.`{path}`"))
        answers[name] = told(spark, path)
    (Path(folder) / f"{what}.json").write_text(json.dumps(answers))
