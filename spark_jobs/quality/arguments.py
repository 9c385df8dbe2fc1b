"""The keyword arguments of an expectation, interpreted with the rows' schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from delta_core.jobs.params.quality import ExpectationSpec
from delta_core.schema.types import VARIANT, ArrayType, DataType, MapType, StructType
from spark_jobs.quality.row_conditions import row_condition
from spark_jobs.quality.rules import Ignore, Limits, RowSelection
from spark_jobs.quality.suite_values import InapplicableError, exact_number, is_exact, is_number, typed_value

_IGNORE = {
    "both_values_are_missing": Ignore.ALL_MISSING,
    "either_value_is_missing": Ignore.ANY_MISSING,
    "neither": Ignore.NONE,
    "all_values_are_missing": Ignore.ALL_MISSING,
    "any_value_is_missing": Ignore.ANY_MISSING,
    "never": Ignore.NONE,
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The inputs for compiling an expectation.

    Attributes:
        spec: the expectation as written, with the table's column names. Numbers and sets are taken from here,
            because the options may contain them as floats.
        options: the keyword arguments with their defaults.
        schema: the rows' schema.
    """

    spec: ExpectationSpec
    options: Mapping[str, Any]
    schema: StructType

    def raw(self, key: str) -> Any:
        """An argument as written in the suite; None when it is missing."""
        return self.spec.kwargs.get(key)

    def option(self, key: str) -> Any:
        """An argument, or its default when it is missing."""
        value = self.options.get(key)
        if isinstance(value, dict):
            raise InapplicableError(
                f"The argument `{key}` is a runtime parameter, which suites do not support."
            )
        return value

    def type_of(self, column: str) -> DataType:
        """A column's type."""
        field = self.schema.find(column)
        assert field is not None  # the suite's columns are checked before
        return field.data_type

    @property
    def column(self) -> str:
        """The column of a single-column expectation."""
        return str(self.raw("column"))

    @property
    def mostly(self) -> Fraction:
        """The share of rows that must meet the expectation."""
        return Fraction(exact_number(1 if self.option("mostly") is None else self.option("mostly")))

    def selection(self, *, ignore: Ignore = Ignore.ANY_MISSING) -> RowSelection:
        """The selection of rows that have values in the columns and match the row condition."""
        where = row_condition(self.raw("row_condition"), self.schema)
        return RowSelection(columns=self.spec.columns, where=where, ignore=ignore)

    def selection_of_several(self) -> RowSelection:
        """The selection of rows for an expectation on several columns, by its `ignore_row_if`."""
        ignore_row_if = self.option("ignore_row_if")
        if ignore_row_if not in _IGNORE:
            raise InapplicableError(
                f"The argument `ignore_row_if` must be one of {', '.join(_IGNORE)}, not {ignore_row_if!r}."
            )
        return self.selection(ignore=_IGNORE[ignore_row_if])

    def members(self, column: str) -> list[Any]:
        """The `value_set` in a column's type. Nulls in it are ignored.

        Raises:
            InapplicableError: the set is missing, or a value of the set does not fit the column's type.
        """
        values = self.raw("value_set")
        if not isinstance(values, (list, tuple)):
            raise InapplicableError(
                "The argument `value_set` is missing."
                if values is None
                else f"The argument `value_set` must be a list of values, not {values!r}."
            )
        data_type = self.type_of(column)
        return [typed_value(value, data_type) for value in values if value is not None]

    def limits(self, data_type: DataType | None = None) -> Limits:
        """The bounds of an observed value, from `min_value` and `max_value`.

        Args:
            data_type: the type of the observed value; None for an exact number.
        """
        low, high = (self._limit(self.raw(key), data_type) for key in ("min_value", "max_value"))
        if low is None and high is None:
            raise InapplicableError("The expectation needs the argument `min_value` or `max_value`.")
        if low is not None and high is not None and low > high:
            raise InapplicableError("The argument `min_value` is greater than `max_value`.")
        return Limits(
            low=low,
            high=high,
            strict_low=bool(self.option("strict_min")),
            strict_high=bool(self.option("strict_max")),
        )

    def number_column(self) -> DataType:
        """The numeric type of the column.

        Raises:
            InapplicableError: the column is not numeric.
        """
        data_type = self.type_of(self.column)
        if not is_number(data_type):
            raise InapplicableError(f"The column has the type {data_type}, which is not numeric.")
        return data_type

    def _limit(self, value: Any, data_type: DataType | None) -> Any:
        if value is None:
            return None
        if data_type is None or is_exact(data_type):
            return Fraction(exact_number(value))
        return typed_value(value, data_type)


def require_equality(data_type: DataType) -> None:
    """Check that values of a type can be compared for equality.

    Raises:
        InapplicableError: the values are arrays, maps, structs or variants.
    """
    if data_type == VARIANT or isinstance(data_type, (ArrayType, MapType, StructType)):
        raise InapplicableError(f"The column has the type {data_type}, whose values cannot be compared.")
