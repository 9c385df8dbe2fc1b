"""The keyword arguments of an expectation, read against the rows' schema."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from delta_core.schema.types import VARIANT, ArrayType, DataType, MapType, StructType
from spark_jobs.quality.params import ExpectationSpec
from spark_jobs.quality.row_conditions import row_condition
from spark_jobs.quality.rules import Asked, Ignore, Limits
from spark_jobs.quality.suite_values import MisfitError, exact_number, is_exact, is_number, typed_value

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
    """What a compiled expectation is made of.

    Attributes:
        spec: as written, its columns in the table's spelling. Numbers and sets are read here, since the
            library makes floats of them.
        made: the library's object, which has the defaults of all other arguments.
        schema: the rows'.
    """

    spec: ExpectationSpec
    made: Any
    schema: StructType

    def raw(self, key: str) -> Any:
        """An argument as written; None when it is left out."""
        return self.spec.kwargs.get(key)

    def option(self, key: str) -> Any:
        """An argument with the library's default."""
        value = getattr(self.made, key, None)
        if isinstance(value, dict):
            raise MisfitError(f"its {key} is a parameter, and a suite has no values for those")
        return value

    def type_of(self, column: str) -> DataType:
        """A column's type."""
        field = self.schema.find(column)
        assert field is not None  # the suite's columns are checked before
        return field.data_type

    @property
    def column(self) -> str:
        """The one column that it is about."""
        return str(self.raw("column"))

    @property
    def mostly(self) -> Fraction:
        """The share of rows that must meet it."""
        return Fraction(exact_number(1 if self.option("mostly") is None else self.option("mostly")))

    def asked(self, *, ignore: Ignore = Ignore.ANY_MISSING) -> Asked:
        """The rows that have a value in the columns, and meet the row condition."""
        where = row_condition(self.raw("row_condition"), self.schema)
        return Asked(columns=self.spec.columns, where=where, ignore=ignore)

    def asked_of_several(self) -> Asked:
        """The rows that an expectation on several columns asks, by its `ignore_row_if`."""
        wanted = self.option("ignore_row_if")
        if wanted not in _IGNORE:
            raise MisfitError(f"ignore_row_if is {wanted!r}; there are {', '.join(_IGNORE)}")
        return self.asked(ignore=_IGNORE[wanted])

    def members(self, column: str) -> list[Any]:
        """The set, in a column's type; a missing value in it stands for none.

        Raises:
            MisfitError: there is no set, or a value of it is of another kind.
        """
        values = self.raw("value_set")
        if not isinstance(values, (list, tuple)):
            raise MisfitError("it has no value_set" if values is None else f"value_set is {values!r}")
        data_type = self.type_of(column)
        return [typed_value(value, data_type) for value in values if value is not None]

    def limits(self, data_type: DataType | None = None) -> Limits:
        """What an observed value must be between.

        Args:
            data_type: of what is observed; None for an exact number.
        """
        low, high = (self._limit(self.raw(key), data_type) for key in ("min_value", "max_value"))
        if low is None and high is None:
            raise MisfitError("it has neither min_value nor max_value")
        if low is not None and high is not None and low > high:
            raise MisfitError("min_value is greater than max_value")
        return Limits(
            low=low,
            high=high,
            strict_low=bool(self.option("strict_min")),
            strict_high=bool(self.option("strict_max")),
        )

    def number_column(self) -> DataType:
        """The column's type, which holds numbers.

        Raises:
            MisfitError: it does not.
        """
        data_type = self.type_of(self.column)
        if not is_number(data_type):
            raise MisfitError(f"the column has type {data_type}, whose values are no numbers")
        return data_type

    def _limit(self, value: Any, data_type: DataType | None) -> Any:
        if value is None:
            return None
        if data_type is None or is_exact(data_type):
            return Fraction(exact_number(value))
        return typed_value(value, data_type)


def require_equality(data_type: DataType) -> None:
    """Check that two values of a type can be the same.

    Raises:
        MisfitError: they are arrays, maps, structs or variants.
    """
    if data_type == VARIANT or isinstance(data_type, (ArrayType, MapType, StructType)):
        raise MisfitError(f"the column has type {data_type}, whose values are not compared")
