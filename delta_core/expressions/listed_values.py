"""The values of an IN list as Arrow data, built once for the many files and batches compared with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.ast import Literal
from delta_core.expressions.literals import literal_scalar
from delta_core.schema.arrow_values import arrow_array

_CACHED_LISTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedValues:
    """The values of an IN list.

    Attributes:
        scalars: the values that are not null.
        has_null: whether the list contains a null.
        array: the values where all have one type other than floating-point; else None.
        low, high: the least and the greatest value where `array` is set; else None.
    """

    scalars: tuple[pa.Scalar, ...]
    has_null: bool
    array: pa.Array | None
    low: pa.Scalar | None
    high: pa.Scalar | None


def listed_values(literals: tuple[Literal, ...]) -> ListedValues:
    """The values of a list; the last few results are cached by the identity of the tuple.

    Raises:
        ExpressionError: the value of a literal does not belong to its type.
    """
    return _of(_Same(literals))


class _Same:
    """A cache key that compares a tuple by identity: hashing thousands of literals would take long."""

    __slots__ = ("literals",)

    def __init__(self, literals: tuple[Literal, ...]) -> None:
        self.literals = literals

    def __hash__(self) -> int:
        return id(self.literals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.literals is self.literals


@lru_cache(_CACHED_LISTS)
def _of(key: _Same) -> ListedValues:
    scalars = [literal_scalar(literal) for literal in key.literals]
    known = [scalar for scalar in scalars if scalar.is_valid]
    types = {scalar.type for scalar in known}
    array = low = high = None
    # Arrow's sets compare NaN and -0.0 differently from Spark.
    if len(types) == 1 and not pa.types.is_floating(known[0].type):
        array = arrow_array([scalar.as_py() for scalar in known], known[0].type)
        span = pc.min_max(array)
        low, high = span["min"], span["max"]
    return ListedValues(
        scalars=tuple(known), has_null=len(known) < len(scalars), array=array, low=low, high=high
    )
