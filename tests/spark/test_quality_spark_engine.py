"""The Spark engine finds the same rows as pandas, at the same positions, however the files lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from spark_jobs.quality import spark_engine
from spark_jobs.quality.pandas_engine import evaluate_with_pandas
from spark_jobs.quality.params import parse_quality
from spark_jobs.quality.spark_engine import POSITION, evaluate_with_spark, keyed_rows
from spark_jobs.quality.suite import plan_suite
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, UNIQUE, expect, quality
from tests.support.staged import VALUES, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("parts", "per_file", "partition_by"),
    [(1, 1000, ()), (3, 1000, ("part",)), (20, 1000, ("part",)), (2, 5, ("part",)), (1, 5, ())],
)
def test_positions_are_those_of_the_staged_rows(
    spark: SparkSession, tmp_path: Path, parts: int, per_file: int, partition_by: tuple[str, ...]
) -> None:
    table = pa.table(
        {
            "id": pa.array(range(120), pa.int64()),
            "part": pa.array([None if n % 20 == 7 else n % parts for n in range(120)], pa.int32()),
            "x": pa.array([float("nan") if n % 9 == 0 else n for n in range(120)], pa.float64()),
        }
    )
    files = stage(tmp_path, table, partition_by=partition_by, per_file=per_file)
    found = sorted(keyed_rows(spark, files).toArrow().to_pylist(), key=lambda row: row[POSITION])
    assert [row.pop(POSITION) for row in found] == list(range(120))
    wanted = files.to_table().to_pylist()
    assert found == [row | {"x": None if row["x"] != row["x"] else row["x"]} for row in wanted]


@pytest.mark.slow
def test_both_engines_give_the_same_answers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = stage(tmp_path, VALUES.drop_columns(["tags", "raw"]))
    params = parse_quality(
        quality(
            expect(NOT_NULL, column="x"),
            expect(BETWEEN, column="m", max_value=4),
            expect(BETWEEN, column="price", min_value=0.01, max_value=1.1),
            expect(BETWEEN, column="day", min_value="2024-01-02"),
            expect(BETWEEN, column="at", max_value="2024-01-03T00:00:00+00:00"),
            expect(IN_SET, column="name", value_set=["a"]),
            expect(UNIQUE, column="name"),
            expect("expect_column_values_to_be_of_type", column="n", type_="int64"),
            expect("expect_column_mean_to_be_between", column="x", max_value=1),
            expect("expect_table_column_count_to_equal", value=10),
        )
    )
    assert params is not None
    planned = plan_suite(params, files.schema)
    by_pandas = evaluate_with_pandas(files, planned, samples=3)
    by_spark = evaluate_with_spark(spark, files, planned, samples=3)
    for left, right in zip(by_pandas, by_spark, strict=True):
        assert (left.success, left.error) == (right.success, right.error), left.name
        assert left.unexpected_count == right.unexpected_count, left.name
        rows = [None if o.rows is None else o.rows.tolist() for o in (left, right)]
        assert rows[0] == rows[1], left.name
    monkeypatch.setattr(spark_engine, "MAX_COLLECTED_ROWS", 0)
    (uncollected,) = evaluate_with_spark(spark, files, planned[:1], samples=3)
    assert (uncollected.success, uncollected.unexpected_count, uncollected.rows) == (False, 2, None)
