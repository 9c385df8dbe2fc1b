"""Spark writes a table with any feature as the model of its rows says.

`make soak-writing-features` takes every case, else the seed draws a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.soak import drawn
from tests.support.spark_writes import Case, cases, check_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", drawn(cases(), usual=30), ids=lambda case: case.name)
def test_rows_are_written_as_the_model_has_them(spark: SparkSession, case: Case) -> None:
    check_case(spark, case)
