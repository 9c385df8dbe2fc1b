"""SYNC IDENTITY: an identity column goes on behind its rows' values (PROTOCOL.md, "Identity Columns")."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from delta_core.dml.definition.change import applied_before, commit_change, with_schema
from delta_core.errors import ConfigurationError
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.identity import IdentityColumn, identity_of, with_high_water_marks
from delta_core.transaction.commit_result import Committed


def sync_identity(snapshot: Snapshot, column: str, **options: Any) -> Committed:
    """Bring an identity column's high-water mark up to the values that rows brought along.

    The mark becomes the value of the series at or behind the greatest one in the column (the least, where the
    step is negative). It never goes back, and stays where all values lie before the start. Reads the column
    in the whole table: rows that are added meanwhile are a conflict. Nothing is committed where the mark
    stays: the result is the version that there is, with no attempt.

    Args:
        snapshot: the table.
        column: its name, in any case.
        options: those of the commit.

    Raises:
        ConfigurationError: there is no such column, or it is no identity column.
        ConstraintViolationError: the series has no value behind the greatest one within `long`.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    known = _identity(snapshot, column)
    synced = known.synced(_extreme(snapshot, known))
    if synced == known:
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    return commit_change(
        snapshot,
        operation="CHANGE COLUMN",
        parameters={"column": known.name, "syncIdentity": True, "highWaterMark": synced.high_water_mark},
        metadata=with_schema(snapshot, with_high_water_marks(snapshot.schema, [synced])),
        reads_rows=True,
        **options,
    )


def _identity(snapshot: Snapshot, column: str) -> IdentityColumn:
    field = next((item for item in snapshot.schema if item.name.casefold() == column.casefold()), None)
    known = None if field is None else identity_of(field)
    if known is None:
        what = "no such column" if field is None else "a column whose values are not generated so"
        raise ConfigurationError(
            f"The identity of column {column!r} cannot be brought up to its values.",
            cause=f"It is {what}.",
            fix="Pass the name of an identity column; see the table's schema.",
        )
    return known


def _extreme(snapshot: Snapshot, column: IdentityColumn) -> int | None:
    """The value that is farthest in the direction of the step; None where no row has one."""
    farthest = max if column.step > 0 else min
    found: int | None = None
    for batch in Scan(snapshot, columns=[column.name]).to_batches():
        bounds = pc.min_max(batch.column(column.name)).as_py()
        value = bounds["max" if column.step > 0 else "min"]
        if value is not None:
            found = value if found is None else farthest(found, value)
    return found
