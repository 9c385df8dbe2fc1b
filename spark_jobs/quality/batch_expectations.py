"""Expectations about a batch as a whole, compiled: what is found out, and what it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from delta_core.schema.types import DOUBLE
from spark_jobs.quality.arguments import Arguments, require_equality
from spark_jobs.quality.rules import (
    Counting,
    CountingRule,
    Ignore,
    LibraryRule,
    Limits,
    Rule,
    SettledRule,
    Statistic,
    StatisticRule,
)
from spark_jobs.quality.suite_values import (
    MisfitError,
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
        raise MisfitError(f"the column has type {data_type}, whose values are not compared with bounds")
    limits = arguments.limits(data_type)
    return StatisticRule(asked=arguments.asked(), statistic=statistic, data_type=data_type, limits=limits)


def _number(arguments: Arguments, statistic: Statistic) -> StatisticRule:
    data_type = arguments.number_column()
    limits = arguments.limits(DOUBLE if statistic is Statistic.STDEV else data_type)
    return StatisticRule(asked=arguments.asked(), statistic=statistic, data_type=data_type, limits=limits)


def _present(arguments: Arguments) -> StatisticRule:
    return StatisticRule(
        asked=arguments.asked(ignore=Ignore.NONE), statistic=Statistic.PRESENT, limits=arguments.limits()
    )


def _distinct_set(arguments: Arguments, statistic: Statistic) -> StatisticRule:
    data_type = arguments.type_of(arguments.column)
    members = value_array(arguments.members(arguments.column), data_type)
    if len(members) < len(arguments.members(arguments.column)) and statistic is not Statistic.IN_SET:
        raise MisfitError(f"value_set has a value that a column of type {data_type} cannot hold")
    return StatisticRule(
        asked=arguments.asked(), statistic=statistic, data_type=data_type, members=members.unique()
    )


def _rows(arguments: Arguments, limits: Limits) -> StatisticRule:
    return StatisticRule(asked=arguments.asked(ignore=Ignore.NONE), statistic=Statistic.ROWS, limits=limits)


def _exactly(value: Any) -> Limits:
    number = Fraction(exact_number(value))
    return Limits(low=number, high=number)


def _counting(arguments: Arguments, counting: Counting) -> CountingRule:
    data_type = arguments.type_of(arguments.column)
    require_equality(data_type)
    limits = arguments.limits()
    return CountingRule(asked=arguments.asked(), counting=counting, data_type=data_type, limits=limits)


def _most_common(arguments: Arguments) -> CountingRule:
    data_type = arguments.type_of(arguments.column)
    require_equality(data_type)
    members = value_array(arguments.members(arguments.column), data_type).to_pylist()
    return CountingRule(
        asked=arguments.asked(),
        counting=Counting.MOST_COMMON,
        data_type=data_type,
        members=frozenset(members),
        ties=bool(arguments.option("ties_okay")),
    )


def _median(arguments: Arguments) -> CountingRule:
    data_type = arguments.number_column()
    limits = arguments.limits(data_type)
    return CountingRule(asked=arguments.asked(), counting=Counting.MEDIAN, data_type=data_type, limits=limits)


def _quantiles(arguments: Arguments) -> CountingRule:
    data_type = arguments.number_column()
    if arguments.option("allow_relative_error"):
        raise MisfitError("allow_relative_error asks for an estimate, and quantiles are judged exactly")
    ranges = arguments.raw("quantile_ranges")
    if not isinstance(ranges, Mapping):
        raise MisfitError(f"quantile_ranges is {ranges!r}")
    wanted = []
    for quantile, (low, high) in zip(ranges["quantiles"], ranges["value_ranges"], strict=True):
        share = Fraction(exact_number(quantile))
        if not 0 <= share <= 1:
            raise MisfitError(f"the quantile {quantile!r} is not between 0 and 1")
        exact = is_exact(data_type)
        low, high = (
            None if one is None else (Fraction(exact_number(one)) if exact else float(exact_number(one)))
            for one in (low, high)
        )
        wanted.append((share, Limits(low=low, high=high)))
    return CountingRule(
        asked=arguments.asked(),
        counting=Counting.QUANTILES,
        data_type=data_type,
        quantiles=tuple(wanted),
    )


def _exists(arguments: Arguments) -> SettledRule:
    names = list(arguments.schema.names)
    name, index = arguments.raw("column"), arguments.raw("column_index")
    found = name in names and (index is None or names.index(str(name)) == index)
    return SettledRule(success=found)


def _column_count(arguments: Arguments, limits: Limits) -> SettledRule:
    count = len(arguments.schema.names)
    return SettledRule(success=limits.hold(count), observed=count)


def _columns_in_order(arguments: Arguments) -> SettledRule:
    names = list(arguments.schema.names)
    wanted = _names(arguments.raw("column_list"))
    return SettledRule(success=wanted is None or names == list(wanted), observed=names)


def _columns_in_set(arguments: Arguments) -> SettledRule:
    names = list(arguments.schema.names)
    wanted = set(_names(arguments.raw("column_set")) or ())
    exact = arguments.option("exact_match")
    return SettledRule(success=set(names) == wanted if exact else wanted <= set(names), observed=names)


def _names(value: Any) -> Sequence[str] | None:
    if value is not None and not isinstance(value, (list, tuple, set)):
        raise MisfitError(f"{value!r} is no list of columns")
    return None if value is None else list(value)


BATCH_EXPECTATIONS: Final[Mapping[str, Compiler]] = {
    "expect_column_max_to_be_between": lambda given: _extreme(given, Statistic.MAX),
    "expect_column_min_to_be_between": lambda given: _extreme(given, Statistic.MIN),
    "expect_column_sum_to_be_between": lambda given: _number(given, Statistic.SUM),
    "expect_column_mean_to_be_between": lambda given: _number(given, Statistic.MEAN),
    "expect_column_stdev_to_be_between": lambda given: _number(given, Statistic.STDEV),
    "expect_column_proportion_of_non_null_values_to_be_between": _present,
    "expect_column_distinct_values_to_be_in_set": lambda given: _distinct_set(given, Statistic.IN_SET),
    "expect_column_distinct_values_to_contain_set": lambda given: _distinct_set(given, Statistic.CONTAIN_SET),
    "expect_column_distinct_values_to_equal_set": lambda given: _distinct_set(given, Statistic.EQUAL_SET),
    "expect_column_unique_value_count_to_be_between": lambda given: _counting(given, Counting.DISTINCT),
    "expect_column_proportion_of_unique_values_to_be_between": lambda given: _counting(
        given, Counting.UNIQUE
    ),
    "expect_column_most_common_value_to_be_in_set": _most_common,
    "expect_column_median_to_be_between": _median,
    "expect_column_quantile_values_to_be_between": _quantiles,
    "expect_table_row_count_to_be_between": lambda given: _rows(given, given.limits()),
    "expect_table_row_count_to_equal": lambda given: _rows(given, _exactly(given.raw("value"))),
    "expect_table_column_count_to_be_between": lambda given: _column_count(given, given.limits()),
    "expect_table_column_count_to_equal": lambda given: _column_count(given, _exactly(given.raw("value"))),
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
"""Statistics that are the library's own: it judges them on one engine, whatever the number of rows."""


def library_rule(arguments: Arguments) -> LibraryRule:
    """For the library's own statistics, and for expectations that a deployment has registered with it."""
    return LibraryRule(asked=arguments.asked(ignore=Ignore.NONE))
