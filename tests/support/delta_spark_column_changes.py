"""What delta-spark makes of changes of columns, in a process of its own.

Usage: `python -m tests.support.delta_spark_server column_changes OUT`. The log of OUT/changed has a version
for the definition and one for each statement of `CHANGES`, that of OUT/enabled one for each of `ENABLED`,
that of OUT/overwritten a definition and rows of another schema.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

DEFINITION = """CREATE TABLE delta.`{t}` (
    p STRING, a SMALLINT COMMENT 'c', s STRUCT<x: INT, y: STRING>,
    l ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<SMALLINT, ARRAY<INT>>, r BIGINT NOT NULL
  ) USING delta PARTITIONED BY (p) TBLPROPERTIES (
    'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true',
    'delta.dataSkippingStatsColumns' = 'a,s.x,r', 'delta.feature.allowColumnDefaults' = 'supported')"""

CHANGES = (
    "ALTER TABLE delta.`{t}` ADD COLUMNS (n STRUCT<u: INT, w: ARRAY<STRUCT<z: INT>>> AFTER a)",
    "ALTER TABLE delta.`{t}` ADD COLUMNS (l.element.q INT FIRST)",
    "ALTER TABLE delta.`{t}` RENAME COLUMN s TO `t.u`",
    "ALTER TABLE delta.`{t}` RENAME COLUMN p TO part",
    "ALTER TABLE delta.`{t}` RENAME COLUMN l.element.x TO xx",
    "ALTER TABLE delta.`{t}` ALTER COLUMN a TYPE INT",
    "ALTER TABLE delta.`{t}` ALTER COLUMN a TYPE BIGINT",
    "ALTER TABLE delta.`{t}` ALTER COLUMN m.key TYPE INT",
    "ALTER TABLE delta.`{t}` ALTER COLUMN m.value.element TYPE BIGINT",
    "ALTER TABLE delta.`{t}` ALTER COLUMN l.element.xx TYPE DOUBLE",
    "ALTER TABLE delta.`{t}` ALTER COLUMN r FIRST",
    "ALTER TABLE delta.`{t}` ALTER COLUMN l.element.xx AFTER y",
    "ALTER TABLE delta.`{t}` ALTER COLUMN r DROP NOT NULL",
    "ALTER TABLE delta.`{t}` ALTER COLUMN r COMMENT 'new'",
    "ALTER TABLE delta.`{t}` ALTER COLUMN r SET DEFAULT 5",
    "ALTER TABLE delta.`{t}` DROP COLUMN l.element.y",
    "ALTER TABLE delta.`{t}` DROP COLUMNS (a, r)",
    "ALTER TABLE delta.`{t}` ADD COLUMNS (a BIGINT)",
)

ENABLED = (
    "CREATE TABLE delta.`{t}` (a INT, s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>) USING delta",
    "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
)

OVERWRITTEN = """CREATE TABLE delta.`{t}` (
    a INT, b STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<x: INT>>, d INT NOT NULL
  ) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"""

OTHER_ROWS = """SELECT 2 AS c, array(named_struct('x', 1)) AS l, 1L AS a, 'b' AS b,
    named_struct('x', 1, 'z', 2) AS s, 5 AS d"""


def main(spark: SparkSession, folder: str) -> None:
    """Write the tables."""
    out = Path(folder)
    for name, statements in (("changed", (DEFINITION, *CHANGES)), ("enabled", ENABLED)):
        for statement in statements:
            spark.sql(statement.format(t=out / name))
    spark.sql(OVERWRITTEN.format(t=out / "overwritten"))
    writer = spark.sql(OTHER_ROWS).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(str(out / "overwritten"))
