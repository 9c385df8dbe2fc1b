"""The examples on Spark run as they are printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import EXAMPLES, run_blocks
from tests.support.spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "table", "rows"),
    [
        ("cdc", "orders", [(1, "shipped", False), (2, "new", True), (3, "new", False)]),
        ("gdpr_delete", "people", [(1, "a@x"), (3, "c@x"), (4, "d@x")]),
    ],
)
def test_an_example(
    spark: SparkSession, tmp_path: Path, page: str, table: str, rows: list[tuple[object, ...]]
) -> None:
    run_blocks(f"{EXAMPLES}/{page}.md", tmp_path, spark=spark)
    found = [
        tuple(value for name, value in row.items() if name != "lsn") for row in rows_of(tmp_path / table)
    ]
    assert found == rows
