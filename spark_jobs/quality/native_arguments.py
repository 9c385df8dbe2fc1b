"""The keyword arguments of the expectations that deltaward evaluates without Great Expectations.

Importing the library takes longer than most loads. It is imported for the expectations that it evaluates, and
for arguments in a form that is not listed here: Great Expectations then refuses or interprets the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spark_jobs.quality.argument_forms import are_bounds, has_usual_form

REQUIRED: Final = object()
"""Marks an argument that has no default, so that it must be given."""


def native_options(type_name: str, kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments, with the default for each missing argument.

    Args:
        type_name: a type in `NATIVE_ARGUMENTS`.
        kwargs: the arguments as written, with dates and times parsed.

    Returns:
        None if Great Expectations must refuse or interpret the arguments.
    """
    defaults = NATIVE_ARGUMENTS[type_name]
    options = {**defaults, **kwargs}
    if options.keys() != defaults.keys() or REQUIRED in options.values():
        return None
    for name, value in kwargs.items():
        if value is None and defaults[name] is None:
            continue
        if not has_usual_form(type_name, name, value):
            return None
        if name == "ignore_row_if" and not any({value, defaults[name]} <= names for names in _IGNORE_NAMES):
            return None
    if "min_value" in options and not are_bounds(options["min_value"], options["max_value"]):
        return None
    return options


_CONDITION: Final[Mapping[str, Any]] = {"row_condition": None, "condition_parser": None}
_COLUMN: Final[Mapping[str, Any]] = {"column": REQUIRED, **_CONDITION}
_ROW: Final[Mapping[str, Any]] = {**_COLUMN, "mostly": 1}
_BOUNDS: Final[Mapping[str, Any]] = {"min_value": None, "max_value": None}
_STRICT_BOUNDS: Final[Mapping[str, Any]] = {**_BOUNDS, "strict_min": False, "strict_max": False}
_PAIR: Final[Mapping[str, Any]] = {
    "column_A": REQUIRED,
    "column_B": REQUIRED,
    "mostly": 1,
    "ignore_row_if": "both_values_are_missing",
    **_CONDITION,
}
_SEVERAL: Final[Mapping[str, Any]] = {
    "column_list": REQUIRED,
    "mostly": 1,
    "ignore_row_if": "all_values_are_missing",
    **_CONDITION,
}
_IGNORE_NAMES: Final = (
    frozenset({"both_values_are_missing", "either_value_is_missing", "neither"}),
    frozenset({"all_values_are_missing", "any_value_is_missing", "never"}),
)

NATIVE_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "expect_column_values_to_not_be_null": _ROW,
    "expect_column_values_to_be_null": _ROW,
    "expect_column_values_to_be_between": {**_ROW, **_STRICT_BOUNDS},
    "expect_column_values_to_be_in_set": {**_ROW, "value_set": REQUIRED},
    "expect_column_values_to_not_be_in_set": {**_ROW, "value_set": REQUIRED},
    "expect_column_value_lengths_to_be_between": {**_ROW, **_STRICT_BOUNDS},
    "expect_column_value_lengths_to_equal": {**_ROW, "value": REQUIRED},
    "expect_column_values_to_match_regex": {**_ROW, "regex": "(?s).*"},
    "expect_column_values_to_not_match_regex": {**_ROW, "regex": REQUIRED},
    "expect_column_values_to_match_regex_list": {**_ROW, "regex_list": REQUIRED, "match_on": "any"},
    "expect_column_values_to_not_match_regex_list": {**_ROW, "regex_list": REQUIRED},
    "expect_column_values_to_match_like_pattern": {**_ROW, "like_pattern": REQUIRED, "escape": None},
    "expect_column_values_to_not_match_like_pattern": {**_ROW, "like_pattern": REQUIRED, "escape": None},
    "expect_column_values_to_match_like_pattern_list": {
        **_ROW,
        "like_pattern_list": REQUIRED,
        "match_on": "any",
        "escape": None,
    },
    "expect_column_values_to_not_match_like_pattern_list": {
        **_ROW,
        "like_pattern_list": REQUIRED,
        "escape": None,
    },
    "expect_column_values_to_be_json_parseable": _ROW,
    "expect_column_values_to_match_json_schema": {**_ROW, "json_schema": REQUIRED},
    "expect_column_values_to_be_dateutil_parseable": _ROW,
    "expect_column_values_to_match_strftime_format": {**_ROW, "strftime_format": REQUIRED},
    "expect_column_values_to_be_unique": _ROW,
    "expect_column_values_to_be_of_type": {**_ROW, "type_": REQUIRED},
    "expect_column_values_to_be_in_type_list": {**_ROW, "type_list": None},
    "expect_column_type_to_be": {"column": REQUIRED, "type_": REQUIRED},
    "expect_column_pair_values_to_be_equal": _PAIR,
    "expect_column_pair_values_a_to_be_greater_than_b": {**_PAIR, "or_equal": None},
    "expect_column_pair_values_to_be_in_set": {**_PAIR, "value_pairs_set": REQUIRED},
    "expect_compound_columns_to_be_unique": _SEVERAL,
    "expect_multicolumn_sum_to_equal": {**_SEVERAL, "sum_total": REQUIRED},
    "expect_multicolumn_values_to_be_equal": _SEVERAL,
    "expect_select_column_values_to_be_unique_within_record": _SEVERAL,
    "expect_column_max_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_min_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_sum_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_mean_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_stdev_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_median_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_proportion_of_non_null_values_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_unique_value_count_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_proportion_of_unique_values_to_be_between": {**_COLUMN, **_STRICT_BOUNDS},
    "expect_column_distinct_values_to_be_in_set": {**_COLUMN, "value_set": REQUIRED},
    "expect_column_distinct_values_to_contain_set": {**_COLUMN, "value_set": REQUIRED},
    "expect_column_distinct_values_to_equal_set": {**_COLUMN, "value_set": REQUIRED},
    "expect_column_most_common_value_to_be_in_set": {**_COLUMN, "value_set": REQUIRED, "ties_okay": None},
    "expect_column_quantile_values_to_be_between": {
        **_COLUMN,
        "quantile_ranges": REQUIRED,
        "allow_relative_error": False,
    },
    "expect_table_row_count_to_be_between": {**_STRICT_BOUNDS, **_CONDITION},
    "expect_table_row_count_to_equal": {"value": REQUIRED, **_CONDITION},
    "expect_table_column_count_to_be_between": _BOUNDS,
    "expect_table_column_count_to_equal": {"value": REQUIRED},
    "expect_table_columns_to_match_ordered_list": {"column_list": None},
    "expect_table_columns_to_match_set": {"column_set": None, "exact_match": True},
    "expect_column_to_exist": {"column": REQUIRED, "column_index": None},
}
"""The arguments of each expectation with their defaults, which are those of Great Expectations."""
