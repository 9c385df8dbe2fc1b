"""Identity columns: their definition, their next values, and their high-water marks.

PROTOCOL.md, "Identity Columns". A value is `start + k * step`, and is beyond the high-water mark in the
direction of the step. The mark is stored in the schema, so a commit that generates values changes the
metadata; of two concurrent commits, the loser generates its values again. A mark never moves back: SYNC
IDENTITY, overwrites and restores keep it, because otherwise values would be generated twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from delta_core.errors import ConstraintViolationError, SchemaError
from delta_core.schema.column_mapping import NAME_KEY
from delta_core.schema.column_paths import display_path, walk_fields
from delta_core.schema.field_metadata import (
    CURRENT_DEFAULT_KEY,
    GENERATION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_MARK_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    is_identity,
    with_metadata,
    without_metadata,
)
from delta_core.schema.types import LONG, StructField, StructType

_LONGS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumn:
    """An identity column of a table.

    Attributes:
        name: the column's name.
        start: the first value.
        step: the difference between consecutive values; not 0.
        high_water_mark: the value generated last; None before the first value.
        allow_explicit_insert: whether rows may contain explicit values. Explicit values do not move the mark
            until SYNC IDENTITY.
    """

    name: str
    start: int = 1
    step: int = 1
    high_water_mark: int | None = None
    allow_explicit_insert: bool = False

    @property
    def next_value(self) -> int:
        """The next value; beyond the range of `long` when all values are used."""
        mark = self.high_water_mark
        if mark is None:
            return self.start
        # A mark from another writer, or from an explicit value, need not be a value of the series.
        return self.start + max((mark - self.start) // self.step + 1, 0) * self.step

    def reserve(self, num_values: int) -> IdentityRange:
        """The next values. The commit must store the column `after` them to mark them as used.

        Raises:
            ConstraintViolationError: too few values are left in the range of `long`.
        """
        reserved = IdentityRange(first=self.next_value, step=self.step, num_values=num_values)
        if num_values and not (reserved.first in _LONGS and reserved.last in _LONGS):
            raise ConstraintViolationError(
                f"Identity column {self.name} has too few values left for {num_values} rows.",
                cause=f"The next value is {self.next_value}, in steps of {self.step}. The limit of a long "
                f"is {_LONGS[-1] if self.step > 0 else _LONGS[0]}.",
                fix="Create a new table with another start or step, and copy the rows.",
            )
        return reserved

    def after(self, reserved: IdentityRange) -> IdentityColumn:
        """The column after the values of `reserved` were used."""
        return self.reaching(reserved.last) if reserved.num_values else self

    def reaching(self, value: int) -> IdentityColumn:
        """The column with a mark at or beyond `value`; a mark further on stays."""
        mark = self.high_water_mark
        if mark is not None and (value - mark) * self.step <= 0:
            return self
        return replace(self, high_water_mark=value)

    def synced(self, extreme: int | None) -> IdentityColumn:
        """The column after SYNC IDENTITY: explicit values in the rows are not generated again.

        Args:
            extreme: the greatest value in the column when the step is positive, the least when it is
                negative; None without rows. The caller reads the whole column, so that an append conflicts.

        Returns:
            The column with the mark at `extreme`, or at the next value of the series after it. Unchanged
            where the mark would not move forward, or where `extreme` is before the start.

        Raises:
            ConstraintViolationError: the mark would be outside of the range of `long`.
        """
        if extreme is None or (extreme - self.start) * self.step < 0:
            return self
        value = self.start + -(-(extreme - self.start) // self.step) * self.step
        if value not in _LONGS:
            raise ConstraintViolationError(
                f"Identity column {self.name} cannot be synchronized with the value {extreme}.",
                cause=f"The next value of its series, {value}, is outside of the range of long.",
                fix="Create a new table with another start or step, and copy the rows.",
            )
        return self.reaching(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRange:
    """Values that were reserved together, to be used in parts.

    Attributes:
        first: the first value.
        step: the difference between consecutive values.
        num_values: the number of values.
    """

    first: int
    step: int
    num_values: int

    @property
    def last(self) -> int:
        """The last value; undefined for an empty range."""
        return self.first + self.step * (self.num_values - 1)

    def values(self, offset: int = 0, num_values: int | None = None) -> pa.Int64Array:
        """Some of the values, in order.

        Args:
            offset: the number of values to skip.
            num_values: the number of values to return; None for all remaining values.
        """
        count = self.num_values - offset if num_values is None else num_values
        assert 0 <= offset <= offset + count <= self.num_values
        if not count:
            return pa.array([], pa.int64())
        # Products and sums may wrap around modulo 2^64; the results are correct because every value is a
        # long.
        steps = np.arange(count, dtype=np.uint64) * np.uint64(self.step % 2**64)
        start = np.uint64((self.first + self.step * offset) % 2**64)
        return pa.array((steps + start).view(np.int64))


def identity_of(field: StructField) -> IdentityColumn | None:
    """The identity definition in a field's metadata; None for other columns.

    Raises:
        SchemaError: an entry is missing or invalid.
    """
    if not is_identity(field):
        return None
    entries = field.metadata
    explicit = entries.get(IDENTITY_EXPLICIT_KEY, False)
    # Some writers store it as a string.
    explicit = (
        {"true": True, "false": False}.get(explicit, explicit) if isinstance(explicit, str) else explicit
    )
    if not isinstance(explicit, bool):
        raise _invalid(field.name, f"its {IDENTITY_EXPLICIT_KEY} is {explicit!r}, neither true nor false.")
    step = _long(field, IDENTITY_STEP_KEY)
    if step == 0:
        raise _invalid(field.name, "its step is 0.")
    return IdentityColumn(
        name=field.name,
        start=_long(field, IDENTITY_START_KEY),
        step=step,
        high_water_mark=_long(field, IDENTITY_MARK_KEY) if IDENTITY_MARK_KEY in entries else None,
        allow_explicit_insert=explicit,
    )


def identity_columns(schema: StructType) -> tuple[IdentityColumn, ...]:
    """The identity columns of a table, in the schema's order.

    Raises:
        SchemaError: see `identity_of`.
    """
    identities = (identity_of(field) for field in schema)
    return tuple(one for one in identities if one is not None)


def define_identity(
    field: StructField, *, start: int = 1, step: int = 1, allow_explicit_insert: bool = False
) -> StructField:
    """An identity column for a table to be created; `validate_identity` checks it with its schema.

    Raises:
        SchemaError: the step is 0, or a number is outside of the range of `long`.
    """
    for word, number in (("start", start), ("step", step)):
        if number not in _LONGS:
            raise _invalid(field.name, f"its {word} is {number}, which is outside of the range of long.")
    entries = {IDENTITY_START_KEY: start, IDENTITY_STEP_KEY: step}
    defined = with_metadata(
        without_metadata(field, (IDENTITY_MARK_KEY,)),
        {**entries, IDENTITY_EXPLICIT_KEY: allow_explicit_insert},
    )
    identity_of(defined)
    return defined


def validate_identity(schema: StructType, partition_columns: Iterable[str] = ()) -> None:
    """Check the identity columns of a table that is created or changed, by delta-spark's rules.

    Raises:
        SchemaError: an identity column is nested, of a type other than `long`, a partition column, generated,
            or has a default; or its metadata entries are invalid.
    """
    partitions = {name.casefold() for name in partition_columns}
    for path, field in walk_fields(schema):
        if identity_of(field) is None:
            continue
        if len(path) > 1:
            raise _invalid(display_path(path), "it is within another column.")
        if field.data_type != LONG:
            raise _invalid(field.name, f"it is of type {field.data_type}, and its values are of type long.")
        if field.name.casefold() in partitions:
            raise _invalid(field.name, "the table is partitioned by it.")
        for key, what in ((GENERATION_KEY, "a generation expression"), (CURRENT_DEFAULT_KEY, "a default")):
            if key in field.metadata:
                raise _invalid(field.name, f"it also has {what}.")


def with_high_water_marks(schema: StructType, columns: Iterable[IdentityColumn]) -> StructType:
    """The schema with the high-water marks of these columns. A mark in the schema never goes back."""
    marks = {one.name: one.high_water_mark for one in columns}

    def marked(field: StructField) -> StructField:
        known, mark = identity_of(field), marks.get(field.name)
        if known is None or mark is None:
            return field
        reached = known.reaching(mark)
        return (
            field if reached is known else with_metadata(field, {IDENTITY_MARK_KEY: reached.high_water_mark})
        )

    return StructType(tuple(marked(field) for field in schema))


def keep_high_water_marks(schema: StructType, other: StructType) -> StructType:
    """The schema with marks at or beyond those of `other`, the schema of another version of the table.

    For overwrites and restores, which take a schema from elsewhere. Columns are matched by their physical
    name, or by their name without column mapping.
    """
    marks = {_physical(field): identity_of(field) for field in other}
    reached = []
    for field in schema:
        known, before = identity_of(field), marks.get(_physical(field))
        if known is not None and before is not None and before.step * known.step > 0:
            reached.append(replace(before, name=field.name))
    return with_high_water_marks(schema, reached)


def differ_only_in_high_water_marks(before: StructType, after: StructType) -> bool:
    """Whether two schemas differ only in the high-water marks of identity columns.

    A commit that conflicts with such a change only generates its values again; everything it read is
    unchanged.
    """
    return before != after and _without_high_water_marks(before) == _without_high_water_marks(after)


def _long(field: StructField, key: str) -> int:
    value = field.metadata.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value not in _LONGS:
        raise _invalid(field.name, f"its {key} is {value!r}, which is not a long.")
    return value


def _physical(field: StructField) -> str:
    return str(field.metadata.get(NAME_KEY, field.name)).casefold()


def _without_high_water_marks(schema: StructType) -> StructType:
    return StructType(tuple(without_metadata(field, (IDENTITY_MARK_KEY,)) for field in schema))


def _invalid(column: str, cause: str) -> SchemaError:
    return SchemaError(
        f"Column {column} cannot be an identity column.",
        cause=cause[0].upper() + cause[1:],
        fix="Use a top-level column of type long, with a start, a step other than 0 and a flag for explicit "
        "values.",
    )
