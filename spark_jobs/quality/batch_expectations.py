"""Compilers for expectations about a whole batch: the observed value and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from delta_core.schema.types import DOUBLE
from spark_jobs.quality.arguments import Arguments, require_equality
from spark_jobs.quality.rules import (
    ConstantRule,
    Counting,
    CountingRule,
    Ignore,
    LibraryRule,
    Limits,
    Rule,
    Statistic,
    StatisticRule,
)
from spark_jobs.quality.suite_values import (
    InapplicableError,
    exact_number,
    is_exact,
    is_moment,
    is_number,
    value_array,
)

Compiler = Callable[[Arguments], Rule]


def _extreme(arguments: Arguments, statistic: Statistic) -> StatisticRule:
    data_type = arguments.type_of(arguments.column)
    if not is_number(data_type) and not is_moment(data_type):
        raise InapplicableError(
            f"The column has the type {data_type}, whose values cannot be compared with bounds."
        )
    limits = arguments.limits(data_type)
    return StatisticRule(
        selection=arguments.selection(), statistic=statistic, data_type=data_type, limits=limits
    )


def _number(arguments: Arguments, statistic: Statistic) -> StatisticRule:
    data_type = arguments.number_column()
    limits = arguments.limits(DOUBLE if statistic is Statistic.STDEV else data_type)
    return StatisticRule(
        selection=arguments.selection(), statistic=statistic, data_type=data_type, limits=limits
    )


def _present(arguments: Arguments) -> StatisticRule:
    return StatisticRule(
        selection=arguments.selection(ignore=Ignore.NONE),
        statistic=Statistic.PRESENT,
        limits=arguments.limits(),
    )


def _distinct_set(arguments: Arguments, statistic: Statistic) -> StatisticRule:
    data_type = arguments.type_of(arguments.column)
    members = value_array(arguments.members(arguments.column), data_type)
    if len(members) < len(arguments.members(arguments.column)) and statistic is not Statistic.IN_SET:
        raise InapplicableError(
            f"The argument `value_set` has a value that a column of type {data_type} cannot hold."
        )
    return StatisticRule(
        selection=arguments.selection(), statistic=statistic, data_type=data_type, members=members.unique()
    )


def _rows(arguments: Arguments, limits: Limits) -> StatisticRule:
    return StatisticRule(
        selection=arguments.selection(ignore=Ignore.NONE), statistic=Statistic.ROWS, limits=limits
    )


def _exactly(value: Any) -> Limits:
    number = Fraction(exact_number(value))
    return Limits(low=number, high=number)


def _counting(arguments: Arguments, counting: Counting) -> CountingRule:
    data_type = arguments.type_of(arguments.column)
    require_equality(data_type)
    limits = arguments.limits()
    return CountingRule(
        selection=arguments.selection(), counting=counting, data_type=data_type, limits=limits
    )


def _most_common(arguments: Arguments) -> CountingRule:
    data_type = arguments.type_of(arguments.column)
    require_equality(data_type)
    members = value_array(arguments.members(arguments.column), data_type).to_pylist()
    return CountingRule(
        selection=arguments.selection(),
        counting=Counting.MOST_COMMON,
        data_type=data_type,
        members=frozenset(members),
        ties=bool(arguments.option("ties_okay")),
    )


def _median(arguments: Arguments) -> CountingRule:
    data_type = arguments.number_column()
    limits = arguments.limits(data_type)
    return CountingRule(
        selection=arguments.selection(), counting=Counting.MEDIAN, data_type=data_type, limits=limits
    )


def _quantiles(arguments: Arguments) -> CountingRule:
    data_type = arguments.number_column()
    if arguments.option("allow_relative_error"):
        raise InapplicableError(
            "The argument `allow_relative_error` requests an estimate, but quantiles are always exact."
        )
    ranges = arguments.raw("quantile_ranges")
    if not isinstance(ranges, Mapping):
        raise InapplicableError(f"The argument `quantile_ranges` must be an object, not {ranges!r}.")
    expected = []
    for quantile, (low, high) in zip(ranges["quantiles"], ranges["value_ranges"], strict=True):
        share = Fraction(exact_number(quantile))
        if not 0 <= share <= 1:
            raise InapplicableError(f"The quantile {quantile!r} is not between 0 and 1.")
        exact = is_exact(data_type)
        low, high = (
            None
            if bound is None
            else (Fraction(exact_number(bound)) if exact else float(exact_number(bound)))
            for bound in (low, high)
        )
        expected.append((share, Limits(low=low, high=high)))
    return CountingRule(
        selection=arguments.selection(),
        counting=Counting.QUANTILES,
        data_type=data_type,
        quantiles=tuple(expected),
    )


def _exists(arguments: Arguments) -> ConstantRule:
    names = list(arguments.schema.names)
    name, index = arguments.raw("column"), arguments.raw("column_index")
    found = name in names and (index is None or names.index(str(name)) == index)
    return ConstantRule(success=found)


def _column_count(arguments: Arguments, limits: Limits) -> ConstantRule:
    count = len(arguments.schema.names)
    return ConstantRule(success=limits.hold(count), observed=count)


def _columns_in_order(arguments: Arguments) -> ConstantRule:
    names = list(arguments.schema.names)
    expected = _names(arguments.raw("column_list"))
    return ConstantRule(success=expected is None or names == list(expected), observed=names)


def _columns_in_set(arguments: Arguments) -> ConstantRule:
    names = list(arguments.schema.names)
    expected = set(_names(arguments.raw("column_set")) or ())
    exact = arguments.option("exact_match")
    return ConstantRule(success=set(names) == expected if exact else expected <= set(names), observed=names)


def _names(value: Any) -> Sequence[str] | None:
    if value is not None and not isinstance(value, (list, tuple, set)):
        raise InapplicableError(f"The columns must be a list of names, not {value!r}.")
    return None if value is None else list(value)


BATCH_EXPECTATIONS: Final[Mapping[str, Compiler]] = {
    "expect_column_max_to_be_between": lambda arguments: _extreme(arguments, Statistic.MAX),
    "expect_column_min_to_be_between": lambda arguments: _extreme(arguments, Statistic.MIN),
    "expect_column_sum_to_be_between": lambda arguments: _number(arguments, Statistic.SUM),
    "expect_column_mean_to_be_between": lambda arguments: _number(arguments, Statistic.MEAN),
    "expect_column_stdev_to_be_between": lambda arguments: _number(arguments, Statistic.STDEV),
    "expect_column_proportion_of_non_null_values_to_be_between": _present,
    "expect_column_distinct_values_to_be_in_set": lambda arguments: _distinct_set(
        arguments, Statistic.IN_SET
    ),
    "expect_column_distinct_values_to_contain_set": lambda arguments: _distinct_set(
        arguments, Statistic.CONTAIN_SET
    ),
    "expect_column_distinct_values_to_equal_set": lambda arguments: _distinct_set(
        arguments, Statistic.EQUAL_SET
    ),
    "expect_column_unique_value_count_to_be_between": lambda arguments: _counting(
        arguments, Counting.DISTINCT
    ),
    "expect_column_proportion_of_unique_values_to_be_between": lambda arguments: _counting(
        arguments, Counting.UNIQUE
    ),
    "expect_column_most_common_value_to_be_in_set": _most_common,
    "expect_column_median_to_be_between": _median,
    "expect_column_quantile_values_to_be_between": _quantiles,
    "expect_table_row_count_to_be_between": lambda arguments: _rows(arguments, arguments.limits()),
    "expect_table_row_count_to_equal": lambda arguments: _rows(arguments, _exactly(arguments.raw("value"))),
    "expect_table_column_count_to_be_between": lambda arguments: _column_count(arguments, arguments.limits()),
    "expect_table_column_count_to_equal": lambda arguments: _column_count(
        arguments, _exactly(arguments.raw("value"))
    ),
    "expect_table_columns_to_match_ordered_list": _columns_in_order,
    "expect_table_columns_to_match_set": _columns_in_set,
    "expect_column_to_exist": _exists,
}

LIBRARY_EXPECTATIONS: Final = frozenset(
    {
        "expect_column_kl_divergence_to_be_less_than",
        "expect_column_value_z_scores_to_be_less_than",
        "expect_column_values_to_not_be_outliers",
    }
)
"""Statistics that Great Expectations computes: always with pandas, for any number of rows."""


def library_rule(arguments: Arguments) -> LibraryRule:
    """The rule for Great Expectations' statistics and for custom expectations registered with it."""
    return LibraryRule(selection=arguments.selection(ignore=Ignore.NONE))
