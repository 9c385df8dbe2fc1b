"""Has delta-spark read variants that others wrote, and go on with their tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_server variants REQUESTS OUT`.

REQUESTS is a JSON list of {"table", "versions", "goes_on"}. OUT is JSON: for each table and version the rows
as Spark's JSON of their variants. Then delta-spark goes on with a table: it adds rows, updates and deletes
some, and compacts the files.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

COLUMNS = ("to_json(v)", "to_json(s.x)", "to_json(l)", "to_json(m)")
"""Each row's variants; arrays and maps as a whole."""

STATEMENTS = (
    "INSERT INTO {t} (id, v, l) SELECT 100 + id, "
    "parse_json(concat('{{\"n\": ', id, ', \"t\": [1.5, null]}}')), "
    "array(parse_json('7'), NULL) FROM range(3)",
    "UPDATE {t} SET v = s.x WHERE id = 101",
    "UPDATE {t} SET id = id + 1000 WHERE id = 2",
    "DELETE FROM {t} WHERE id = 102 OR v IS NULL AND id < 100",
    "OPTIMIZE {t}",
)


def main(spark: SparkSession, requests: str, out: str) -> None:
    """Read the versions, then change the table."""
    answers = {}
    for request in json.loads(Path(requests).read_text()):
        table = request["table"]
        name = f"delta.`{table}`"
        answers[table] = {
            version: [
                list(row)
                for row in spark.sql(
                    f"SELECT id, {', '.join(COLUMNS)} FROM {name} VERSION AS OF {version}"
                ).collect()
            ]
            for version in request["versions"]
        }
        for statement in STATEMENTS if request["goes_on"] else ():
            spark.sql(statement.format(t=name))
    Path(out).write_text(json.dumps(answers))
