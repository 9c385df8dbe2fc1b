"""The statements of Delta's and Databricks' SQL reference: right, by their effect, or refused by name.

`make soak-sql-reference` runs all of them, and CI a sample. With DELTAWARD_TEST_REMOTE they run on Connect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_jobs
from delta_core import DeltaTable
from delta_core.errors import DeltaError
from tests.support.soak import drawn
from tests.support.sql_reference import CASES
from tests.support.sql_reference.case import Case, Outcome, copy_template, make_template

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module", name="template")
def fixture_template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("template")
    make_template(folder)
    spark.sql("CREATE DATABASE IF NOT EXISTS reference_db")
    yield folder
    spark.sql("DROP DATABASE reference_db CASCADE")


@pytest.fixture(name="folder")
def fixture_folder(spark: SparkSession, template: Path, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tables"
    copy_template(template, folder)
    yield folder
    spark.conf.set(RETENTION_CHECK, "true")


def run(spark: SparkSession, folder: Path, sql: str, arguments: Any = None) -> Any:
    if isinstance(arguments, dict):
        arguments = {
            key: item.replace("{folder}", str(folder)) if isinstance(item, str) else item
            for key, item in arguments.items()
        }
    names = {name: str(folder / name) for name in ("t", "s")}
    return spark_jobs.sql(spark, sql.replace("{folder}", str(folder)), arguments, tables=names)


def versions(folder: Path) -> list[int]:
    return [DeltaTable(str(folder / name)).version() for name in ("t", "s")]


def test_there_are_enough_statements() -> None:
    assert len({case.sql for case in CASES}) >= 250


@pytest.mark.parametrize("case", drawn(CASES, usual=14), ids=lambda case: case.sql[:80])
def test_a_statement_is_right_or_refused_by_name(spark: SparkSession, folder: Path, case: Case) -> None:
    for sql in case.before:
        run(spark, folder, sql)
    before = versions(folder)
    if case.is_refused:
        with pytest.raises(DeltaError) as caught:
            run(spark, folder, case.sql, case.arguments).collect()
        kinds = {kind.__name__ for kind in type(caught.value).__mro__}
        assert case.error in kinds, repr(caught.value)
        assert case.refused.lower() in str(caught.value).lower()
        assert versions(folder) == before
        return
    frame = run(spark, folder, case.sql, case.arguments)
    outcome = Outcome(folder=folder, rows=frame.toArrow().to_pylist(), columns=frame.columns)
    for check in case.checks:
        check(outcome)
