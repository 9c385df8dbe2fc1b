"""The SQL statements of the Delta Lake paper (VLDB 2020, sections 4 and 5), as they are printed, executed."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError, RetentionTooShortError, VersionNotFoundError
from tests.support.sql_statements import OF_THE_PAPER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
AT = (dt.datetime(2018, 12, 31, tzinfo=dt.UTC), dt.datetime(2019, 1, 10, tzinfo=dt.UTC))
NAMES = ("my_table", "mytable", "events", "table_name", "t")

Check = Callable[[Path, list[Any]], bool]


def rows(*users: int) -> pa.Table:
    return pa.table(
        {
            "userId": pa.array(users, pa.int64()),
            "u": pa.array(users, pa.int64()),
            "sourceIP": [f"10.0.0.{user % 256}" for user in users],
            "destIP": [f"10.0.1.{user % 256}" for user in users],
        }
    )


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path) -> Path:
    """Each table has the users 111 and 2 in 2018, and 3 more in 2019; then 111 is deleted."""
    for name in NAMES:
        table = str(tmp_path / name)
        write_deltalake(table, rows(111, 2))
        write_deltalake(table, rows(4, 5, 6), mode="append")
        for version, at in enumerate(AT):
            os.utime(tmp_path / name / "_delta_log" / f"{version:020d}.json", (at.timestamp(),) * 2)
        DeltaTable(table).delete("userId = 111")
    return tmp_path


def users(folder: Path, name: str) -> list[int]:
    return sorted(DeltaTable(str(folder / name)).to_pyarrow_table()["userId"].to_pylist())


def first(found: list[Any]) -> Any:
    return next(iter(found[0].asDict().values()))


CHECKS: tuple[Check | type[Exception], ...] = (
    lambda folder, _: True,  # the clone is checked below
    ExpressionError,  # `timestamp_expression` stands for one
    VersionNotFoundError,  # the table has no 5,238 versions
    lambda folder, found: (
        users(folder, "events") == [2, 4, 5, 6] and found[0]["metrics"]["numFilesAdded"] == 1
    ),
    lambda folder, found: users(folder, "table_name") == [2, 4, 5, 6],
    RetentionTooShortError,
    lambda folder, found: users(folder, "mytable") == [2, 4, 5, 6] and found[0]["num_updated_rows"] == 4,
    lambda folder, found: first(found) == -1,
    lambda folder, _: users(folder, "my_table") == [2, 4, 5, 6, 111],
    lambda folder, found: [row["version"] for row in found] == [2, 1, 0],
    lambda folder, _: (
        DeltaTable(str(folder / "my_table")).metadata().configuration["delta.appendOnly"] == "true"
    ),
)


@pytest.mark.parametrize("number", range(len(OF_THE_PAPER)), ids=lambda number: OF_THE_PAPER[number][0][:60])
def test_a_statement_of_the_paper_does_what_it_says(spark: SparkSession, folder: Path, number: int) -> None:
    statement, check = OF_THE_PAPER[number][0], CHECKS[number]
    names = {name: str(folder / name) for name in NAMES}

    def run(sql: str) -> list[Any]:
        return list(spark_jobs.sql(spark, sql, tables=names, allowed_roots=[folder]).collect())

    if isinstance(check, type):
        with pytest.raises(check):
            run(statement)
        return
    run("DROP TABLE IF EXISTS clone")
    try:
        assert check(folder, run(statement))
        if "CLONE" in statement:
            assert sorted(row["userId"] for row in run("SELECT userId FROM clone")) == [2, 4, 5, 6, 111]
    finally:
        run("DROP TABLE IF EXISTS clone")


def test_a_short_vacuum_says_why_it_is_refused_and_runs_with_the_opt_in(
    spark: SparkSession, folder: Path
) -> None:
    statement = "VACUUM t RETAIN 7 HOURS"
    names = {"t": str(folder / "t")}
    with pytest.raises(RetentionTooShortError) as caught:
        spark_jobs.sql(spark, statement, tables=names)
    assert "168" in str(caught.value)
    assert RETENTION_CHECK in caught.value.fix
    spark_jobs.sql(spark, f"SET {RETENTION_CHECK} = false")
    try:
        assert spark_jobs.sql(spark, statement, tables=names).columns == ["path"]
    finally:
        spark_jobs.sql(spark, f"SET {RETENTION_CHECK} = true")
    assert users(folder, "t") == [2, 4, 5, 6]
