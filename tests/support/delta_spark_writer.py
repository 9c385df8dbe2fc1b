"""Tables that delta-spark writes, and what it reads of them; in a process of its own.

Usage: `python -m tests.support.delta_spark_server writer OUT TABLE...`. Each folder of OUT is a table; its
answers lie beside it: `<name>.<version>.parquet` with row tracking, `<name>.json` with variants.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACKED = {
    "masked": ", 'delta.enableDeletionVectors' = 'true'",
    "mapped": ", 'delta.columnMapping.mode' = 'id'",
}
"""Tables with row tracking, and their other properties."""

CHANGES = (
    "INSERT INTO {t} SELECT id, id % 2 AS p, 'first' FROM range(0, 40, 1, 3)",
    "UPDATE {t} SET s = 'updated' WHERE id % 5 = 0",
    "DELETE FROM {t} WHERE id IN (3, 4, 20)",
    "INSERT INTO {t} VALUES (100, 0, 'second'), (101, 1, 'second')",
    """MERGE INTO {t} t USING (SELECT * FROM VALUES (7L, 'merged'), (100L, 'merged'), (200L, 'new')
       AS v(id, s)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s
       WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 0, s.s)""",
    "OPTIMIZE {t}",
    "UPDATE {t} SET s = 'again' WHERE id BETWEEN 5 AND 12",
    "OPTIMIZE {t} ZORDER BY (id)",
)

SHREDDING = {
    "objects": "a INT, b STRING, `odd.name` BOOLEAN, "
    "c STRUCT<x: DOUBLE, y: ARRAY<BIGINT>, z: STRUCT<deep: STRING>>",
    "arrays": "ARRAY<STRUCT<k: STRING, v: DECIMAL(9, 2)>>",
    "longs": "BIGINT",
    "strings": "STRING",
    "doubles": "DOUBLE",
    "decimals": "DECIMAL(20, 3)",
    "dates": "day DATE, at TIMESTAMP, ntz TIMESTAMP_NTZ, raw BINARY, f FLOAT, tiny TINYINT, yes BOOLEAN, "
    "d4 DECIMAL(5, 2)",
}
"""Tables with a variant column, and what of it is put into columns of their own."""

ANSWERED = (2, 5, 6, 8)
"""The versions whose ids are written down."""

STRINGS = (
    '{"a": 1, "b": "x", "odd.name": true}',
    '{"a": "no", "z": [1, 2], "b": null}',
    '{"c": {"x": 1.5e0, "y": [1, 2, "q", null], "w": {"deeper": [{}]}, "z": {"deep": "sea", "other": 1}}}',
    '{"c": {"x": 2, "y": [], "z": "flat"}, "a": 2147483648}',
    '{"c": 3, "ü": "ö", "": 0}',
    '{"b": "' + "long " * 40 + '"}',
    '[{"k": "one", "v": 1.25}, {"v": 100000000.5, "extra": true}, 7, null, [1], {}]',
    "[]",
    "[[1, [2, [3]]]]",
    "{}",
    "null",
    "true",
    "false",
    "5",
    "-129",
    "32768",
    "9223372036854775807",
    "1234567890123.456",
    "0.1e0",
    "1e300",
    '"text"',
    '"' + "x" * 70 + '"',
    json.dumps({f"key{number}": number for number in range(300)}),
    json.dumps(list(range(300))),
)


# Many small statements: generating code for each costs more than it saves.
CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def write_tracked(spark: SparkSession, out: Path, names: set[str]) -> None:
    """Tables with row tracking; the ids after every change."""
    for name, properties in TRACKED.items():
        if name not in names:
            continue
        table = f"delta.`{out / name}`"
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT, p BIGINT, s STRING) USING DELTA PARTITIONED BY (p) "
            f"TBLPROPERTIES ('delta.enableRowTracking' = 'true'{properties})"
        )
        for version, change in enumerate(CHANGES, start=1):
            spark.sql(change.format(t=table))
            if version not in ANSWERED:
                continue
            rows = spark.sql(
                f"SELECT *, _metadata.row_id AS _row_id, _metadata.row_commit_version AS _row_commit_version "
                f"FROM {table} VERSION AS OF {version}"
            )
            pq.write_table(rows.toArrow(), out / f"{name}.{version}.parquet")


def write_shredded(spark: SparkSession, out: Path, names: set[str]) -> None:
    """Tables with shredded variants; every row's JSON."""
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    literals = ", ".join(f"({number}, {_quoted(text)})" for number, text in enumerate((*STRINGS, None)))
    others = """SELECT 1000 AS id, to_variant_object(named_struct('day', DATE'2020-02-29', 'at',
        TIMESTAMP'1969-12-31 23:59:59.999999', 'ntz', TIMESTAMP_NTZ'2024-01-02 03:04:05.000006',
        'raw', X'00FF', 'f', CAST(1.5 AS FLOAT), 'tiny', CAST(-7 AS TINYINT), 'yes', false,
        'd4', 1.25BD)) AS v
        UNION ALL SELECT 1001, CAST(CAST('-12345678901234567.891' AS DECIMAL(20, 3)) AS VARIANT)"""
    for name, shredding in SHREDDING.items():
        if name not in names:
            continue
        spark.conf.set("spark.sql.variant.forceShreddingSchemaForTest", shredding)
        table = f"delta.`{out / name}`"
        spark.sql(
            f"CREATE TABLE {table} (id INT, v VARIANT, s STRUCT<v: VARIANT, n: INT>) USING DELTA "
            "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
        )
        spark.sql(
            f"INSERT INTO {table} WITH given AS (SELECT id, parse_json(t) AS v "
            f"FROM VALUES {literals} AS x(id, t) UNION ALL {others}) "
            "SELECT id, v, named_struct('v', v, 'n', id) FROM given"
        )
        rows = spark.sql(f"SELECT id, to_json(v), to_json(s.v) FROM {table} ORDER BY id").collect()
        (out / f"{name}.json").write_text(json.dumps([list(row) for row in rows]))
    spark.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def main(spark: SparkSession, out: str, *names: str) -> None:
    """Write the tables with these names."""
    spark.sparkContext.setLogLevel("ERROR")
    for key, value in CONF.items():
        spark.conf.set(key, value)
    write_tracked(spark, Path(out), set(names))
    write_shredded(spark, Path(out), set(names))
