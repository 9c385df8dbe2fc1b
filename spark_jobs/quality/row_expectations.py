"""Compilers for row-level expectations: each becomes a row test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from delta_core.expressions.ast import ComparisonOperator
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import LONG, STRING, DataType
from spark_jobs.quality.arguments import Arguments, require_equality
from spark_jobs.quality.patterns import checked_regex, has_string, like_as_regex
from spark_jobs.quality.row_tests import (
    AddsUp,
    AreAllDistinct,
    AreAllEqual,
    Compares,
    HasLength,
    HasMatch,
    IsListed,
    IsListedPair,
    IsPresent,
    IsWithin,
    PassesCheck,
    RowTest,
)
from spark_jobs.quality.rules import Ignore, RowRule, Rule, UniqueRule
from spark_jobs.quality.string_checks import (
    StringCheck,
    StringKind,
    date_check,
    json_schema_check,
    strftime_check,
)
from spark_jobs.quality.suite_values import (
    InapplicableError,
    column_bounds,
    exact_number,
    is_exact,
    is_moment,
    is_number,
    typed_value,
    value_array,
)

Compiler = Callable[[Arguments], Rule]

_NOT_REPRESENTABLE: Final = object()
"""A marker for a value that the column's type cannot represent."""


def _rule(arguments: Arguments, test: RowTest) -> RowRule:
    return RowRule(selection=arguments.selection(), test=test, mostly=arguments.mostly)


def _presence(arguments: Arguments, *, present: bool) -> RowRule:
    selection = arguments.selection(ignore=Ignore.NONE)
    return RowRule(selection=selection, test=IsPresent(present), mostly=arguments.mostly)


def _between(arguments: Arguments) -> RowRule:
    bounds = column_bounds(
        arguments.raw("min_value"),
        arguments.raw("max_value"),
        arguments.type_of(arguments.column),
        strict_low=bool(arguments.option("strict_min")),
        strict_high=bool(arguments.option("strict_max")),
    )
    return _rule(arguments, IsWithin(bounds))


def _in_set(arguments: Arguments, *, listed: bool) -> RowRule:
    data_type = arguments.type_of(arguments.column)
    values = value_array(arguments.members(arguments.column), data_type)
    return _rule(arguments, IsListed(values, listed))


def _lengths(arguments: Arguments, low: Any, high: Any) -> RowRule:
    _require_string(arguments.type_of(arguments.column))
    bounds = column_bounds(
        low,
        high,
        LONG,
        strict_low=bool(arguments.option("strict_min")),
        strict_high=bool(arguments.option("strict_max")),
    )
    return _rule(arguments, HasLength(bounds))


def _patterns(arguments: Arguments, key: str, *, match: bool) -> RowRule:
    """A rule with the regular expressions or LIKE patterns in the argument `key`: one, or a list."""
    _require_string(arguments.type_of(arguments.column))
    value = arguments.option(key) if arguments.raw(key) is None else arguments.raw(key)
    written = list(value) if isinstance(value, (list, tuple)) else [value]
    if not written:
        raise InapplicableError(f"The argument `{key}` is an empty list.")
    if key.startswith("like"):
        patterns = [like_as_regex(pattern, arguments.option("escape")) for pattern in written]
    else:
        patterns = [checked_regex(pattern) for pattern in written]
    all_of_them = match and arguments.option("match_on") == "all"
    return _rule(arguments, HasMatch(tuple(patterns), all_of_them, match))


def _string_check(arguments: Arguments, check: StringCheck) -> RowRule:
    data_type = arguments.type_of(arguments.column)
    if data_type != STRING:
        raise InapplicableError(f"The column has the type {data_type}, which is not string.")
    return _rule(arguments, PassesCheck(check))


def _unique(arguments: Arguments) -> UniqueRule:
    require_equality(arguments.type_of(arguments.column))
    return UniqueRule(selection=arguments.selection(), mostly=arguments.mostly)


def _compound_unique(arguments: Arguments) -> UniqueRule:
    for column in _several(arguments):
        require_equality(arguments.type_of(column))
    return UniqueRule(selection=arguments.selection_of_several(), mostly=arguments.mostly)


def _pair(arguments: Arguments, operator: ComparisonOperator) -> RowRule:
    left, right = arguments.spec.columns
    _require_comparable(arguments.type_of(left), arguments.type_of(right))
    return RowRule(
        selection=arguments.selection_of_several(), test=Compares(operator), mostly=arguments.mostly
    )


def _greater(arguments: Arguments) -> RowRule:
    return _pair(arguments, ComparisonOperator.GE if arguments.option("or_equal") else ComparisonOperator.GT)


def _pair_in_set(arguments: Arguments) -> RowRule:
    pairs = arguments.raw("value_pairs_set")
    if not isinstance(pairs, (list, tuple)) or any(len(pair) != 2 for pair in pairs):
        raise InapplicableError(f"The argument `value_pairs_set` must be a list of pairs, not {pairs!r}.")
    types = [arguments.type_of(column) for column in arguments.spec.columns]
    sides = [[_one_value(pair[side], types[side]) for pair in pairs] for side in (0, 1)]
    # No row can have a pair with a value that its column's type cannot represent.
    representable = [pair for pair in zip(*sides, strict=True) if _NOT_REPRESENTABLE not in pair]
    left, right = (
        pa.array([pair[side] for pair in representable], _evaluated_type(types[side])) for side in (0, 1)
    )
    selection = arguments.selection_of_several()
    return RowRule(selection=selection, test=IsListedPair(left, right), mostly=arguments.mostly)


def _one_value(value: Any, data_type: DataType) -> Any:
    """The value in the column's type; None for null, and a marker when the type cannot represent it."""
    if value is None:
        return None
    representable = value_array([typed_value(value, data_type)], data_type)
    return representable[0].as_py() if len(representable) else _NOT_REPRESENTABLE


def _evaluated_type(data_type: DataType) -> pa.DataType:
    arrow = type_to_arrow(data_type)
    return pa.float64() if pa.types.is_floating(arrow) else arrow


def _sum(arguments: Arguments) -> RowRule:
    types = [arguments.type_of(column) for column in _several(arguments)]
    other = next((kind for kind in types if not is_number(kind)), None)
    if other is not None:
        raise InapplicableError(f"A column has the type {other}, which is not numeric.")
    test = AddsUp(exact_number(arguments.raw("sum_total")), all(map(is_exact, types)))
    return RowRule(selection=arguments.selection_of_several(), test=test, mostly=arguments.mostly)


def _several_columns(arguments: Arguments, test: RowTest) -> RowRule:
    columns = _several(arguments)
    for column in columns:
        require_equality(arguments.type_of(column))
        _require_comparable(arguments.type_of(columns[0]), arguments.type_of(column))
    return RowRule(selection=arguments.selection_of_several(), test=test, mostly=arguments.mostly)


def _several(arguments: Arguments) -> tuple[str, ...]:
    if not arguments.spec.columns:
        raise InapplicableError("The argument `column_list` is an empty list.")
    return arguments.spec.columns


def _require_string(data_type: DataType) -> None:
    if not has_string(data_type):
        raise InapplicableError(
            f"The column has the type {data_type}, whose values have no unique string form; cast it first."
        )


def _require_comparable(left: DataType, right: DataType) -> None:
    numbers, moments = is_number(left) and is_number(right), is_moment(left) and is_moment(right)
    if left != right and not numbers and not moments:
        raise InapplicableError(
            f"A value of the type {left} cannot be compared with a value of the type {right}."
        )


ROW_EXPECTATIONS: Final[Mapping[str, Compiler]] = {
    "expect_column_values_to_not_be_null": lambda arguments: _presence(arguments, present=True),
    "expect_column_values_to_be_null": lambda arguments: _presence(arguments, present=False),
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": lambda arguments: _in_set(arguments, listed=True),
    "expect_column_values_to_not_be_in_set": lambda arguments: _in_set(arguments, listed=False),
    "expect_column_value_lengths_to_be_between": lambda arguments: _lengths(
        arguments, arguments.raw("min_value"), arguments.raw("max_value")
    ),
    "expect_column_value_lengths_to_equal": lambda arguments: _lengths(
        arguments, arguments.raw("value"), arguments.raw("value")
    ),
    "expect_column_values_to_match_regex": lambda arguments: _patterns(arguments, "regex", match=True),
    "expect_column_values_to_not_match_regex": lambda arguments: _patterns(arguments, "regex", match=False),
    "expect_column_values_to_match_regex_list": lambda arguments: _patterns(
        arguments, "regex_list", match=True
    ),
    "expect_column_values_to_not_match_regex_list": lambda arguments: _patterns(
        arguments, "regex_list", match=False
    ),
    "expect_column_values_to_match_like_pattern": lambda arguments: _patterns(
        arguments, "like_pattern", match=True
    ),
    "expect_column_values_to_not_match_like_pattern": lambda arguments: _patterns(
        arguments, "like_pattern", match=False
    ),
    "expect_column_values_to_match_like_pattern_list": lambda arguments: _patterns(
        arguments, "like_pattern_list", match=True
    ),
    "expect_column_values_to_not_match_like_pattern_list": lambda arguments: _patterns(
        arguments, "like_pattern_list", match=False
    ),
    "expect_column_values_to_be_json_parseable": lambda arguments: _string_check(
        arguments, StringCheck(StringKind.JSON)
    ),
    "expect_column_values_to_match_json_schema": lambda arguments: _string_check(
        arguments, json_schema_check(arguments.raw("json_schema"))
    ),
    "expect_column_values_to_be_dateutil_parseable": lambda arguments: _string_check(arguments, date_check()),
    "expect_column_values_to_match_strftime_format": lambda arguments: _string_check(
        arguments, strftime_check(arguments.raw("strftime_format"))
    ),
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _compound_unique,
    "expect_column_pair_values_to_be_equal": lambda arguments: _pair(arguments, ComparisonOperator.EQ),
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    "expect_column_pair_values_to_be_in_set": _pair_in_set,
    "expect_multicolumn_sum_to_equal": _sum,
    "expect_multicolumn_values_to_be_equal": lambda arguments: _several_columns(arguments, AreAllEqual()),
    "expect_select_column_values_to_be_unique_within_record": lambda arguments: _several_columns(
        arguments, AreAllDistinct()
    ),
}
