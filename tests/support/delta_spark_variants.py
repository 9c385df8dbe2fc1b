"""Has delta-spark read variants that others wrote, and go on with their tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_variants OUT TABLE...`.

OUT is JSON: for each table and version the rows as Spark's JSON of their variants. Then delta-spark changes
each table: it adds rows, updates and deletes some, and compacts the files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.delta_spark_reader import session

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


def main(out: str, *tables: str) -> None:
    """Read every version, then change the table."""
    spark = session()
    answers = {}
    for table in tables:
        name = f"delta.`{table}`"
        newest = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()["version"]
        answers[table] = [
            [
                list(row)
                for row in spark.sql(
                    f"SELECT id, {', '.join(COLUMNS)} FROM {name} VERSION AS OF {version}"
                ).collect()
            ]
            for version in range(1, newest + 1)
        ]
        for statement in STATEMENTS:
            spark.sql(statement.format(t=name))
    Path(out).write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
