"""Each common expectation with its verdict on one small table, worked out by hand from docs/quality.md.

Nothing here was taken from an engine: a place that differs is a fault of the engine or of the page.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spark_jobs.quality.outcome import ExpectationOutcome
from tests.support.quality import expect

UTC = datetime.UTC


def _times(*days: int | None) -> list[datetime.datetime | None]:
    return [None if day is None else datetime.datetime(2024, 5, day, 12, tzinfo=UTC) for day in days]


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, 7, 2**53 + 1], pa.int64()),
        "n": pa.array([1, None, 3, 3, 5, 6, 7, 8], pa.int32()),
        "s": pa.array(["abc", "größe", "\uff11\uff12", "naïve", None, "a_b", "", "ABC"]),
        "b": pa.array([True, False, None, True, True, False, True, False]),
        "m": pa.array(
            [
                None if text is None else Decimal(text)
                for text in ("1.10", None, "2.00", "3.30", "3.30", "-0.01", "5.00", "1.10")
            ],
            pa.decimal128(10, 2),
        ),
        "wide": pa.array([Decimal(10**27 + one).scaleb(-9) for one in range(8)], pa.decimal128(38, 9)),
        "f": pa.array([0.1, float("nan"), -0.0, 0.0, None, 0.2, 3.3, 0.3], pa.float64()),
        "f32": pa.array([0.1, 3.3, 0.5, None, 1.5, 2.5, 3.5, 4.5], pa.float32()),
        "day": pa.array([datetime.date(2024, 5, one) for one in (1, 2, 3, 4, 5, 6, 7)] + [None], pa.date32()),
        "at": pa.array(_times(1, 2, 3, None, 5, 6, 7, 8), pa.timestamp("us", "UTC")),
        "j": pa.array(['{"a": 1}', '{"a": "x"}', "[1, 2", "1", None, '{"a": 2}', "", '{"b": 1}']),
        "when": pa.array(
            ["2024-05-01", "2024-13-01", "soon", "2024-02-29", None, "1 May 2024", "", "2024-05-01 10:00"]
        ),
        "a": pa.array([1, 2, None, 4, 5, None, 7, 8], pa.int32()),
        "c": pa.array(
            [Decimal(one) for one in (1, 3, 2, 4, 4)] + [None, Decimal(8), Decimal(7)], pa.decimal128(12, 1)
        ),
        "tag": pa.array(["x", "y", "x", None, "y", "x", "z", None]),
    }
)


@dataclass(frozen=True)
class Case:
    """An expectation and its verdict.

    Attributes:
        bad: the positions of the rows that do not meet it; None when it tells of none.
        holds: whether it holds; None is whether no row is bad.
    """

    expectation: dict[str, Any]
    bad: tuple[int, ...] | None = None
    holds: bool | None = None

    @property
    def success(self) -> bool:
        return not self.bad if self.holds is None else self.holds


def verdict(case: Case, outcome: ExpectationOutcome) -> list[str]:
    """What differs from the documented verdict."""
    if outcome.error is not None:
        return [outcome.error]
    wrong = [] if outcome.success is case.success else [f"success {outcome.success}, {outcome.observed}"]
    if case.bad is not None:
        if outcome.unexpected_count != len(case.bad):
            wrong.append(f"{outcome.unexpected_count} unexpected")
        found = [] if outcome.rows is None else outcome.rows.tolist()
        if found != ([] if outcome.success else sorted(case.bad)):
            wrong.append(f"rows {found}")
    return wrong


def rows(kind: str, *bad: int, holds: bool | None = None, **kwargs: Any) -> Case:
    """A case whose rows are bad by themselves."""
    return Case(expect(f"expect_{kind}", **kwargs), bad, holds)


def batch(kind: str, holds: bool, **kwargs: Any) -> Case:
    """A case about the batch as a whole."""
    return Case(expect(f"expect_{kind}", **kwargs), None, holds)


def value(kind: str, *bad: int, holds: bool | None = None, **kwargs: Any) -> Case:
    """A case about single values of a column."""
    return rows(f"column_{kind}", *bad, holds=holds, **kwargs)


_IS = {"type": "comparison", "column": {"name": "n"}, "operator": ">", "parameter": 3}
_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_SUM = "multicolumn_sum_to_equal"
_EQUAL = "multicolumn_values_to_be_equal"
_WITHIN = "select_column_values_to_be_unique_within_record"
_COMPOUND = "compound_columns_to_be_unique"
_GREATER = "column_pair_values_a_to_be_greater_than_b"

CASES = (
    # Missing values. NaN is one.
    value("values_to_not_be_null", 1, column="n"),
    value("values_to_not_be_null", 1, 4, column="f"),
    value("values_to_be_null", 0, 2, 3, 4, 5, 6, 7, column="n"),
    value("values_to_not_be_null", 1, holds=True, column="n", mostly=0.875),
    value("values_to_not_be_null", 1, column="n", mostly=0.876),
    # Bounds: exact whatever the digits, inclusive unless strict.
    value("values_to_be_between", 3, 4, 6, column="m", max_value=3.29),
    value("values_to_be_between", 6, column="m", max_value=3.3),
    value("values_to_be_between", 3, 4, 6, column="m", max_value=3.3, strict_max=True),
    value("values_to_be_between", 0, 5, 7, column="m", min_value="1.101"),
    value("values_to_be_between", 5, column="m", min_value=1.1),
    value("values_to_be_between", 0, 1, 2, column="wide", min_value="1000000000000000000.000000003"),
    value("values_to_be_between", 7, column="id", max_value=2**53),
    value("values_to_be_between", 0, 2, 3, column="n", min_value=3.5),
    value("values_to_be_between", column="n", min_value=-1e300, max_value=1e300),
    value("values_to_be_between", 0, 2, 3, 4, 5, 6, 7, column="n", min_value=2**40),
    value("values_to_be_between", 6, column="f", min_value=0, max_value=0.3),
    value("values_to_be_between", 2, 3, column="f", min_value=0, strict_min=True),
    # 3.3 as a float is a little less than 3.3, and 0.1 a little more than 0.1.
    value("values_to_be_between", 0, 2, 4, 5, 6, 7, column="f32", min_value=3.2, max_value=3.3),
    value("values_to_be_between", 0, column="day", min_value="2024-05-02"),
    value("values_to_be_between", 5, 6, 7, column="at", max_value="2024-05-06T11:59:59+00:00"),
    value("values_to_be_between", 5, 6, 7, column="at", max_value="2024-05-05T14:00:00+02:00"),
    value("values_to_be_between", 6, 7, column="n", max_value=6, row_condition=_IS),
    value(
        "values_to_be_between",
        7,
        column="n",
        max_value=6,
        row_condition="n > 3 AND s <> ''",
        condition_parser="spark",
    ),
    value(
        "values_to_be_between",
        6,
        7,
        column="n",
        max_value=6,
        row_condition='col("s").notNull()',
        condition_parser="great_expectations",
    ),
    # Sets: text stands for a value of the column's type, missing values are not asked.
    value("values_to_be_in_set", 2, 3, 4, 5, 6, 7, column="id", value_set=["1", "2"]),
    value("values_to_be_in_set", 1, 2, 3, 4, 5, 6, 7, column="id", value_set=[1, None, 2.5]),
    value("values_to_not_be_in_set", 7, column="id", value_set=["9007199254740993"]),
    value("values_to_be_in_set", 1, 5, 7, column="b", value_set=["true"]),
    value("values_to_be_in_set", 1, 5, 7, column="b", value_set=[True]),
    value("values_to_be_in_set", 2, 5, 6, column="m", value_set=["1.10", 3.3]),
    value("values_to_be_in_set", 0, 5, 6, 7, column="f", value_set=[0]),
    value("values_to_be_in_set", 0, 1, column="f32", value_set=[0.1, 3.3, 0.5, 1.5, 2.5, 3.5, 4.5]),
    value("values_to_not_be_in_set", 0, 2, 5, column="tag", value_set=["x"]),
    value("values_to_be_in_set", 2, 3, 4, 5, 6, column="day", value_set=["2024-05-01", "2024-05-02"]),
    value("values_to_be_in_set", 0, 2, 3, 4, 5, 6, 7, column="n", value_set=[]),
    # Patterns: RE2, whose classes are those of ASCII.
    value("values_to_match_regex", 1, 2, 3, 6, column="s", regex=r"^\w+$"),
    value("values_to_match_regex", 0, 1, 2, 3, 5, 6, 7, column="s", regex=r"^\d+$"),
    value("values_to_not_match_regex", 1, 2, 3, column="s", regex=r"\W"),
    value("values_to_match_regex", 2, 6, column="s", regex=r"\p{L}+"),
    value("values_to_match_regex", 1, 2, 6, 7, column="s", regex="(?P<x>a)"),
    value("values_to_match_regex", 1, 2, 6, column="s", regex="(?i)a"),
    value("values_to_match_regex", 0, 2, 3, 6, 7, column="n", regex="^[56]$"),
    value("values_to_match_regex", 2, 5, 6, column="m", regex=r"^\d\.[13]0$"),
    value("values_to_match_regex_list", 1, 2, 3, 6, column="s", regex_list=["^a", "^A"]),
    value(
        "values_to_match_regex_list", 1, 2, 3, 5, 6, 7, column="s", regex_list=["a", "b", "c"], match_on="all"
    ),
    value("values_to_not_match_regex_list", 0, 5, 7, column="s", regex_list=["^a", "^A"]),
    value("values_to_match_like_pattern", 1, 2, 3, 6, 7, column="s", like_pattern="a_%"),
    value("values_to_not_match_like_pattern", 5, column="s", like_pattern="a!_b", escape="!"),
    value("values_to_match_like_pattern_list", 0, 2, 5, 6, 7, column="s", like_pattern_list=["%ö%", "%ï%"]),
    value("values_to_not_match_like_pattern_list", 1, 3, column="s", like_pattern_list=["%ö%", "%ï%"]),
    value("value_lengths_to_be_between", 2, 6, column="s", min_value=3, max_value=5),
    value(
        "value_lengths_to_be_between",
        1,
        2,
        3,
        6,
        column="s",
        min_value=2,
        max_value=5,
        strict_min=True,
        strict_max=True,
    ),
    value("value_lengths_to_equal", 1, 2, 3, 6, column="s", value=3),
    value("value_lengths_to_equal", 7, column="id", value=1),
    # What Python's libraries define.
    value("values_to_be_json_parseable", 2, 6, column="j"),
    value("values_to_match_json_schema", 1, 2, 3, 6, 7, column="j", json_schema=_SCHEMA),
    value("values_to_be_dateutil_parseable", 1, 2, 6, column="when"),
    value("values_to_match_strftime_format", 1, 2, 5, 6, 7, column="when", strftime_format="%Y-%m-%d"),
    # Uniqueness: every copy is bad.
    value("values_to_be_unique", 2, 3, column="n"),
    value("values_to_be_unique", 2, 3, column="f"),
    value("values_to_be_unique", 0, 3, 4, 7, column="m"),
    value("values_to_be_unique", column="wide"),
    value("values_to_be_unique", 0, 1, 2, 4, 5, column="tag"),
    value("values_to_be_unique", column="tag", row_condition="id > 4", condition_parser="pandas"),
    value("values_to_be_unique", 0, 1, 3, 4, 5, 6, 7, column="b"),
    rows(
        _COMPOUND,
        3,
        7,
        column_list=["tag", "tag"],
        ignore_row_if="never",
        row_condition="tag IS NULL",
        condition_parser="spark",
    ),
    rows(_COMPOUND, column_list=["tag", "n"]),
    # Two columns: SQL's comparison, so a missing value on one side meets nothing.
    rows("column_pair_values_to_be_equal", 1, 2, 4, 6, 7, column_A="a", column_B="c"),
    rows(
        "column_pair_values_to_be_equal",
        1,
        4,
        6,
        7,
        column_A="a",
        column_B="c",
        ignore_row_if="either_value_is_missing",
    ),
    rows(
        "column_pair_values_to_be_equal",
        1,
        2,
        4,
        5,
        6,
        7,
        column_A="a",
        column_B="c",
        ignore_row_if="neither",
    ),
    rows(_GREATER, 0, 1, 2, 3, 6, column_A="a", column_B="c"),
    rows(_GREATER, 1, 2, 6, column_A="a", column_B="c", or_equal=True),
    rows(
        "column_pair_values_to_be_in_set",
        3,
        4,
        6,
        7,
        column_A="a",
        column_B="c",
        value_pairs_set=[[1, 1], [2, "3.0"], [None, 2]],
    ),
    # Several columns.
    rows(_SUM, 1, 2, 3, 4, 5, 6, 7, column_list=["id", "n"], sum_total=2),
    rows(
        _SUM,
        2,
        4,
        5,
        6,
        7,
        column_list=["n", "m"],
        sum_total="6.3",
        row_condition="id <> 1",
        condition_parser="spark",
    ),
    rows(_EQUAL, 1, 2, 4, 6, 7, column_list=["a", "c", "a"]),
    rows(_EQUAL, 1, 2, 4, 6, 7, column_list=["a", "c"], ignore_row_if="never"),
    rows(_WITHIN, 0, 3, column_list=["a", "c"]),
    rows(_WITHIN, 0, 3, 5, column_list=["a", "c"], ignore_row_if="never"),
    # Types, by the schema.
    batch("column_values_to_be_of_type", True, column="id", type_="int64"),
    batch("column_values_to_be_in_type_list", False, column="id", type_list=["string", "DoubleType"]),
    batch("column_type_to_be", True, column="m", type_="decimal(10,2)"),
    # The batch as a whole: sums and means have all digits of whole numbers and decimals.
    batch("column_max_to_be_between", True, column="m", min_value=5, max_value=5),
    batch("column_max_to_be_between", False, column="id", max_value=2**53),
    batch("column_min_to_be_between", True, column="m", min_value=-0.01, max_value=-0.01),
    batch("column_min_to_be_between", False, column="m", min_value=-0.01, strict_min=True),
    batch("column_min_to_be_between", True, column="day", min_value="2024-05-01", max_value="2024-05-01"),
    batch("column_max_to_be_between", True, column="at", max_value="2024-05-08T12:00:00+00:00"),
    batch(
        "column_max_to_be_between",
        False,
        column="n",
        max_value=9,
        row_condition="n > 100",
        condition_parser="spark",
    ),
    batch("column_sum_to_be_between", True, column="m", min_value=15.79, max_value="15.79"),
    batch(
        "column_sum_to_be_between",
        True,
        column="wide",
        min_value="8000000000000000000.000000028",
        max_value="8000000000000000000.000000028",
    ),
    batch("column_sum_to_be_between", True, column="id", min_value=2**53 + 29, max_value=2**53 + 29),
    # Added exactly and then rounded, 0.1 + 0.2 + 0.3 + 3.3 is the double 3.9 whatever the order.
    batch("column_sum_to_be_between", True, column="f", min_value=3.9, max_value=3.9),
    batch("column_mean_to_be_between", True, column="m", min_value="2.2557142", max_value="2.2557143"),
    batch("column_mean_to_be_between", False, column="m", min_value="2.2557143"),
    batch("column_stdev_to_be_between", True, column="a", min_value=2.7385, max_value=2.7387),
    batch("column_median_to_be_between", True, column="m", min_value=2, max_value=2),
    batch("column_median_to_be_between", True, column="id", min_value=4.5, max_value="4.5"),
    batch(
        "column_quantile_values_to_be_between",
        True,
        column="n",
        quantile_ranges={
            "quantiles": [0, 0.1, 0.5, 0.9, 1],
            "value_ranges": [[1, 1], [1, 1], [5, 5], [8, 8], [None, 8]],
        },
    ),
    batch(
        "column_quantile_values_to_be_between",
        False,
        column="m",
        quantile_ranges={"quantiles": [0.5], "value_ranges": [[2.001, None]]},
    ),
    batch("column_unique_value_count_to_be_between", True, column="n", min_value=6, max_value=6),
    batch("column_unique_value_count_to_be_between", False, column="f", min_value=6),
    batch(
        "column_proportion_of_unique_values_to_be_between", True, column="tag", min_value=0.5, max_value=0.5
    ),
    batch(
        "column_proportion_of_non_null_values_to_be_between", True, column="f", min_value=0.75, max_value=0.75
    ),
    batch("column_most_common_value_to_be_in_set", True, column="tag", value_set=["x"]),
    batch("column_most_common_value_to_be_in_set", False, column="m", value_set=["1.1"]),
    batch("column_most_common_value_to_be_in_set", True, column="m", value_set=["1.1"], ties_okay=True),
    batch("column_distinct_values_to_be_in_set", True, column="tag", value_set=["x", "y", "z", "w"]),
    batch("column_distinct_values_to_be_in_set", False, column="m", value_set=[1.1, 2, 3.3, 5]),
    batch("column_distinct_values_to_contain_set", True, column="m", value_set=["1.1", -0.01]),
    batch("column_distinct_values_to_contain_set", False, column="tag", value_set=["w"]),
    batch("column_distinct_values_to_equal_set", True, column="b", value_set=[True, "false"]),
    batch("column_distinct_values_to_equal_set", False, column="tag", value_set=["x", "y"]),
    batch(
        "column_kl_divergence_to_be_less_than",
        True,
        column="tag",
        partition_object={
            "values": ["x", "y", "z"],
            "weights": [0.5, 0.3333333333333333, 0.16666666666666669],
        },
        threshold=0.01,
    ),
    value("value_z_scores_to_be_less_than", 7, column="n", threshold=1.3, double_sided=False),
    value("values_to_not_be_outliers", column="a"),
    value(
        "value_z_scores_to_be_less_than",
        7,
        column="n",
        threshold=1.1,
        double_sided=False,
        row_condition="n BETWEEN 3 AND 8",
        condition_parser="spark",
    ),
    batch("table_row_count_to_equal", True, value=8),
    batch(
        "table_row_count_to_be_between", False, max_value=3, row_condition="n > 3", condition_parser="spark"
    ),
    batch("table_column_count_to_equal", True, value=len(ROWS.column_names)),
    batch("table_column_count_to_be_between", False, min_value=100),
    batch("table_columns_to_match_ordered_list", True, column_list=ROWS.column_names),
    batch("table_columns_to_match_set", False, column_set=["id"]),
    batch("table_columns_to_match_set", True, column_set=["id"], exact_match=False),
    batch("column_to_exist", True, column="id", column_index=0),
)

REFUSED = (
    (expect("expect_column_values_to_be_increasing", column="id"), "no"),
    (expect("expect_column_values_to_be_decreasing", column="id"), "order"),
    (expect("expect_column_values_to_match_regex", column="s", regex="a(?=b)"), "RE2"),
    (expect("expect_column_values_to_match_regex", column="s", regex=r"(a)\1"), "RE2"),
    (expect("expect_column_values_to_not_match_regex_list", column="s", regex_list=["a", "("]), "RE2"),
    (expect("expect_column_values_to_match_regex", column="f", regex="1"), "no unique string form"),
    (expect("expect_column_values_to_match_regex", column="at", regex="1"), "no unique string form"),
    (expect("expect_column_values_to_be_in_set", column="s", value_set=[1]), "string"),
    (expect("expect_column_values_to_be_in_set", column="id", value_set=["one"]), "not a number"),
    (expect("expect_column_values_to_be_in_set", column="id", value_set=[True]), "not a number"),
    (expect("expect_column_values_to_not_be_in_set", column="b", value_set=[1]), "boolean"),
    (expect("expect_column_values_to_be_between", column="s", min_value=1), "string"),
    (expect("expect_column_values_to_be_between", column="b", min_value=0), "boolean"),
    (expect("expect_column_values_to_be_between", column="day", min_value=3), "date"),
    (expect("expect_column_values_to_be_json_parseable", column="n"), "not string"),
    (
        expect(
            "expect_column_values_to_match_json_schema",
            column="j",
            json_schema={"$ref": "https://example.com/schema.json"},
        ),
        "another document",
    ),
    (expect("expect_column_values_to_match_strftime_format", column="when", strftime_format="%Q"), "format"),
    (expect("expect_column_pair_values_to_be_equal", column_A="s", column_B="n"), "cannot be compared"),
    (expect("expect_multicolumn_sum_to_equal", column_list=["n", "s"], sum_total=1), "not numeric"),
    (expect("expect_column_mean_to_be_between", column="s", min_value=0), "not numeric"),
    (expect("expect_column_max_to_be_between", column="s", min_value=0), "string"),
    (
        expect(
            "expect_column_quantile_values_to_be_between",
            column="n",
            quantile_ranges={"quantiles": [0.5], "value_ranges": [[1, 2]]},
            allow_relative_error=0.1,
        ),
        "estimate",
    ),
    (
        expect(
            "expect_column_values_to_not_be_null",
            column="n",
            row_condition="n.str.len() > 1",
            condition_parser="pandas",
        ),
        "row_condition",
    ),
)
"""Expectations that are refused by name, with a word of the reason."""
