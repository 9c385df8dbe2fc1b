"""SYNC IDENTITY: moves a high-water mark past the column's values (PROTOCOL.md, "Identity Columns")."""

from __future__ import annotations

import pyarrow.compute as pc

from delta_core.dml.definition.change import commit_change, with_schema
from delta_core.errors import ConfigurationError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.identity import IdentityColumn, identity_of, with_high_water_marks
from delta_core.transaction.commit_result import Committed


def sync_identity(snapshot: Snapshot, column: str, *, run: Run = DEFAULT_RUN) -> Committed:
    """Raise an identity column's high-water mark to the values that callers inserted explicitly.

    The mark becomes the first value of the series that is at or past the greatest value in the column (the
    least value when the step is negative). The mark never moves back. It does not change when all values lie
    before the start. Reads the column in the whole table, so a concurrent commit that adds rows is a
    conflict. When the mark does not change, nothing is committed. The result is then the current version with
    no attempt.

    Args:
        snapshot: the version of the table.
        column: the column's name, in any case.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        ConfigurationError: the column does not exist, or is not an identity column.
        ConstraintViolationError: no value of the series past the greatest one fits into `long`.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    identity = _identity(snapshot, column)
    synced = identity.synced(_extreme(snapshot, identity, run))
    if synced == identity:
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    return commit_change(
        snapshot,
        operation="CHANGE COLUMN",
        parameters={"column": identity.name, "syncIdentity": True, "highWaterMark": synced.high_water_mark},
        metadata=with_schema(snapshot, with_high_water_marks(snapshot.schema, [synced])),
        reads_rows=True,
        run=run,
    )


def _identity(snapshot: Snapshot, column: str) -> IdentityColumn:
    field = next((item for item in snapshot.schema if item.name.casefold() == column.casefold()), None)
    identity = None if field is None else identity_of(field)
    if identity is None:
        raise ConfigurationError(
            f"The identity column {column!r} cannot be synchronized.",
            cause="The table has no such column." if field is None else "It is not an identity column.",
            fix="Pass the name of an identity column of the table's schema.",
        )
    return identity


def _extreme(snapshot: Snapshot, column: IdentityColumn, run: Run) -> int | None:
    """The farthest value in the direction of the step; None when every row is null."""
    farthest = max if column.step > 0 else min
    extreme: int | None = None
    for batch in Scan(snapshot, columns=[column.name], allowed_roots=run.allowed_roots).to_batches():
        bounds = pc.min_max(batch.column(column.name)).as_py()
        value = bounds["max" if column.step > 0 else "min"]
        if value is not None:
            extreme = value if extreme is None else farthest(extreme, value)
    return extreme
