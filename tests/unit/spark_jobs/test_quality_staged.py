"""Staged files by row position, and suites evaluated on them in memory."""

from __future__ import annotations

import datetime
import decimal
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.jobs.params.quality import parse_quality
from spark_jobs.quality.driver_engine import DriverEngine
from spark_jobs.quality.evaluation import evaluate as judged
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.pandas_engine import to_frame
from spark_jobs.quality.suite import plan_suite
from spark_jobs.writer.staged_files import StagedFiles
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, UNIQUE, expect, quality
from tests.support.staged import VALUES, stage

PAIR = "expect_column_pair_values_a_to_be_greater_than_b"
COMPOUND = "expect_compound_columns_to_be_unique"


def evaluate(files: StagedFiles, *expectations: dict[str, Any]) -> list[ExpectationOutcome]:
    params = parse_quality(quality(*expectations))
    assert params is not None
    return judged(DriverEngine(files), files, plan_suite(params, files.schema), samples=5)


def bad(outcome: ExpectationOutcome) -> list[int]:
    assert outcome.error is None, outcome.error
    assert outcome.rows is not None
    return outcome.rows.tolist()


def test_no_value_changes_on_its_way_to_pandas() -> None:
    frame = to_frame(VALUES)
    assert list(frame.index) == [0, 1, 2, 3]
    assert frame["n"].tolist() == [1, None, 3, 2**60 + 1]
    assert frame["m"].tolist() == [0, 1, 5, None]
    assert frame["flag"].tolist() == [True, None, False, True]
    assert frame["key"].tolist()[1] == 10**30 + 1
    assert frame["price"].tolist()[0] == 1.1
    cents = [decimal.Decimal(number).scaleb(-2) for number in range(1000)]
    for digits in (10, 20):
        column = to_frame(pa.table({"c": pa.array(cents, pa.decimal128(digits, 2))}))["c"]
        assert column.tolist() == [float(one) for one in cents]
    assert frame["day"].tolist()[0] == datetime.date(2024, 1, 1)
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"


def test_every_type_can_be_asked_about(tmp_path: Path) -> None:
    found = evaluate(
        stage(tmp_path, VALUES),
        expect(NOT_NULL, column="n"),
        expect(BETWEEN, column="m", max_value=4),
        expect(IN_SET, column="flag", value_set=[True]),
        expect(BETWEEN, column="price", min_value=0.01, max_value=1.1),
        expect(UNIQUE, column="key"),
        expect(BETWEEN, column="day", min_value="2024-01-02"),
        expect(BETWEEN, column="at", max_value="2024-01-03T00:00:00+00:00"),
        expect(IN_SET, column="day", value_set=["2024-01-01", "2024-01-02"]),
        expect(BETWEEN, column="old", min_value="2024-01-01"),
        expect(NOT_NULL, column="x"),
        expect("expect_column_values_to_match_regex", column="name", regex="^a"),
        expect(NOT_NULL, column="raw"),
        expect(NOT_NULL, column="tags"),
        expect(PAIR, column_A="n", column_B="m", ignore_row_if="either_value_is_missing"),
        expect(COMPOUND, column_list=["name", "flag"]),
    )
    assert [bad(outcome) if not outcome.success else [] for outcome in found] == [
        [1],
        [2],
        [2],
        [],
        [],
        [0],
        [3],
        [2, 3],
        [0, 1, 2, 3],
        [1, 2],
        [2, 3],
        [1],
        [1],
        [2],
        [],
    ]


def test_a_condition_on_rows_keeps_their_positions(tmp_path: Path) -> None:
    comparison = {"type": "comparison", "column": {"name": "m"}, "operator": ">", "parameter": 0}
    written = {"row_condition": "m > 0", "condition_parser": "pandas"}
    for condition in ({"row_condition": comparison}, written):
        (found,) = evaluate(stage(tmp_path, VALUES), expect(BETWEEN, column="n", max_value=2, **condition))
        assert bad(found) == [2]


def test_a_share_of_bad_values_can_be_let_pass(tmp_path: Path) -> None:
    files = stage(tmp_path, VALUES)
    passed, failed = evaluate(
        files, expect(NOT_NULL, column="n", mostly=0.7), expect(NOT_NULL, column="n", mostly=0.8)
    )
    assert passed.success
    assert passed.rows is None
    assert bad(failed) == [1]
    assert failed.unexpected_percent == pytest.approx(25)


def test_the_schema_answers_for_types_and_the_batch_for_itself(tmp_path: Path) -> None:
    found = evaluate(
        stage(tmp_path, VALUES),
        expect("expect_column_values_to_be_of_type", column="n", type_="LongType"),
        expect("expect_column_values_to_be_of_type", column="n", type_="string"),
        expect("expect_table_columns_to_match_set", column_set=list(VALUES.column_names), exact_match=True),
        expect("expect_column_max_to_be_between", column="m", max_value=4),
        expect("expect_column_to_exist", column="nope"),
    )
    assert [outcome.success for outcome in found] == [True, False, True, False, False]
    assert found[1].observed == "long"
    assert found[3].observed == 5
    assert all(outcome.rows is None for outcome in found)


def test_rows_are_taken_and_left_by_position(tmp_path: Path, rng: random.Random) -> None:
    count = 50
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "part": pa.array([rng.choice([None, 1, 2]) for _ in range(count)], pa.int32()),
        }
    )
    for number in range(20):
        files = stage(tmp_path / str(number), table, partition_by=("part",), per_file=7)
        ordered = files.to_table()
        assert sorted(ordered.column("id").to_pylist()) == list(range(count))
        chosen = np.array(sorted(rng.sample(range(count), rng.randint(0, count))), dtype=np.int64)
        taken = files.take(chosen)
        assert taken.to_pylist() == ordered.take(pa.array(chosen)).to_pylist()
        before = set(files.paths())
        rest = files.without(chosen)
        assert rest.rows == count - len(chosen)
        left = [row for row in ordered.to_pylist() if row not in taken.to_pylist()]
        assert rest.to_table().to_pylist() == left
        on_disk = {
            f"prefix/{p.relative_to(tmp_path / str(number) / 'prefix').as_posix()}"
            for p in (tmp_path / str(number)).rglob("*.parquet")
        }
        assert on_disk == set(rest.paths())
        # Only what held a chosen row was written again.
        first = files.first_positions()
        touched = sum(
            bool(((chosen >= start) & (chosen < end)).any()) for start, end in itertools.pairwise(first)
        )
        assert len(before - set(rest.paths())) == touched
