"""Has delta-spark read the row ids of tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_row_ids OUT KEY TABLE...`.

OUT is JSON: for each TABLE its rows' `[KEY, row id, row commit version]`, sorted by KEY.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.delta_spark_reader import session


def main(out: str, key: str, *tables: str) -> None:
    """Read them."""
    spark = session()
    answers = {
        table: sorted(
            [row[0], row[1], row[2]]
            for row in spark.sql(
                f"SELECT {key}, _metadata.row_id, _metadata.row_commit_version FROM delta.`{table}`"
            ).collect()
        )
        for table in tables
    }
    Path(out).write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
