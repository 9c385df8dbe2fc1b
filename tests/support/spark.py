"""The one Spark session of a test run, and how tests look at what it wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from spark_jobs.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMOTE_VARIABLE = "DELTAWARD_TEST_REMOTE"
"""Set it to a Connect server's URL to run the Spark tests on that server instead of a classic session."""

FEW_PARTITIONS = {"spark.sql.shuffle.partitions": "2"}
"""Of every Spark that tests start: with Spark's 200 partitions a job of a few rows takes twice as long."""

CONF = {
    # A few rows are read sooner than code for them is compiled. The Connect servers of the tests compile it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    **FEW_PARTITIONS,
    "spark.default.parallelism": "2",
    "spark.log.level": "ERROR",
    "spark.sql.ui.retainedExecutions": "1",
}


@pytest.fixture(scope="session", name="spark")
def spark_session() -> Iterator[SparkSession]:
    """A session that all tests share: starting one takes seconds."""
    remote = os.environ.get(REMOTE_VARIABLE)
    if remote:
        session = get_session(remote, conf=FEW_PARTITIONS, app_name="tests")
    else:
        session = get_session(master="local[2]", conf=CONF | {"spark.driver.memory": "1g"}, app_name="tests")
    yield session
    session.stop()


def rows_of(uri: Path | str, *, version: int | None = None) -> list[dict[str, Any]]:
    """A table's rows as the deltalake package reads them, sorted by their text."""
    table = DeltaTable(str(uri), version=version).to_pyarrow_table()
    return sorted(table.to_pylist(), key=repr)


def collected(frame: Any) -> list[dict[str, Any]]:
    """A DataFrame's rows, sorted by their text; timestamps in UTC."""
    return sorted(frame.toArrow().to_pylist(), key=repr)


def files_below(folder: Path) -> set[str]:
    """Every file and directory that is not of the log, relative to the table."""
    if not folder.exists():
        return set()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    return {path for path in found if path.split("/")[0] != "_delta_log"}
