"""The forms of keyword arguments that need no interpretation by Great Expectations."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from spark_jobs.quality.string_checks import strftime_check
from spark_jobs.quality.suite_values import InapplicableError


def has_usual_form(type_name: str, name: str, value: object) -> bool:
    """Whether an expectation's argument has its usual form, which Great Expectations accepts unchanged."""
    if name in _BOUND_NAMES and type_name in _ABOUT_COUNTS:
        return _is_integer(value)
    if name in _BOUND_NAMES and type_name in _ABOUT_ANY_VALUES and isinstance(value, datetime.date):
        return True
    if name == "value_set" and type_name == _NEEDS_MEMBERS and not value:
        return False
    if name == "column_list" and type_name != _MAY_LIST_ONE_COLUMN:
        return isinstance(value, list) and len(value) > 1 and _is_string_list(value)
    return _CHECKS[name](value)


def are_bounds(low: Any, high: Any) -> bool:
    """Whether at least one bound is not None, and `low` is at most `high`. Each has its usual form."""
    if low is None or high is None:
        return low is not high
    if isinstance(low, datetime.date) or isinstance(high, datetime.date):
        return type(low) is type(high) and bool(low <= high)
    if isinstance(low, str) or isinstance(high, str):
        return float(low) <= float(high)
    return bool(low <= high)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether the value is a finite number, or a string that represents one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return False
    try:
        return math.isfinite(float(value))
    except (ValueError, OverflowError):
        return False


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_string, value))


def _is_pair_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_format(value: object) -> bool:
    try:
        strftime_check(value)
    except InapplicableError:
        return False
    return True


def _is_quantile_ranges(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"quantiles", "value_ranges"}:
        return False
    quantiles, ranges = value["quantiles"], value["value_ranges"]
    return (
        isinstance(quantiles, list)
        and all(_is_number(quantile) for quantile in quantiles)
        and _is_pair_list(ranges)
        and len(ranges) == len(quantiles)
        and all(_is_quantile_range(*pair) for pair in ranges)
    )


def _is_quantile_range(low: object, high: object) -> bool:
    return all(bound is None or _is_number(bound) for bound in (low, high)) and (
        low is None or high is None or are_bounds(low, high)
    )


_BOUND_NAMES: Final = frozenset({"min_value", "max_value", "value"})
_ABOUT_COUNTS: Final = frozenset(
    {
        "expect_column_value_lengths_to_be_between",
        "expect_column_unique_value_count_to_be_between",
        "expect_table_row_count_to_be_between",
        "expect_table_row_count_to_equal",
        "expect_table_column_count_to_equal",
    }
)
_ABOUT_ANY_VALUES: Final = frozenset(
    {
        "expect_column_values_to_be_between",
        "expect_column_max_to_be_between",
        "expect_column_min_to_be_between",
    }
)
_NEEDS_MEMBERS: Final = "expect_column_distinct_values_to_be_in_set"
_MAY_LIST_ONE_COLUMN: Final = "expect_table_columns_to_match_ordered_list"

_CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    "allow_relative_error": _is_flag,
    "column": _is_name,
    "column_A": _is_name,
    "column_B": _is_name,
    "column_index": _is_integer,
    "column_list": _is_string_list,
    "column_set": _is_string_list,
    "condition_parser": lambda value: value in ("great_expectations", "pandas", "spark"),
    "escape": lambda value: isinstance(value, str) and len(value) == 1,
    "exact_match": _is_flag,
    "ignore_row_if": _is_string,
    "json_schema": _is_object,
    "like_pattern": _is_string,
    "like_pattern_list": _is_string_list,
    "match_on": lambda value: value in ("any", "all"),
    "max_value": _is_number,
    "min_value": _is_number,
    "mostly": _is_share,
    "or_equal": _is_flag,
    "quantile_ranges": _is_quantile_ranges,
    "regex": _is_string,
    "regex_list": _is_string_list,
    "row_condition": lambda value: isinstance(value, (str, dict)),
    "strftime_format": _is_format,
    "strict_max": _is_flag,
    "strict_min": _is_flag,
    "sum_total": _is_number,
    "ties_okay": _is_flag,
    "type_": _is_string,
    "type_list": _is_string_list,
    "value": _is_number,
    "value_pairs_set": _is_pair_list,
    "value_set": _is_list,
}
