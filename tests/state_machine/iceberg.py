"""When a change would break what a table that stays convertible to Iceberg promises."""

from __future__ import annotations

from collections.abc import Mapping

from delta_core import DeltaTable
from delta_core.table_features.iceberg_compat import active_compatibility
from tests.state_machine.model import State

NOT_ICEBERG: Mapping[str, frozenset[str]] = {
    "icebergCompatV1": frozenset({"list", "map"}),
    "icebergCompatV2": frozenset({"variant"}),
}
"""Kinds of columns that a table with the feature does not have."""


def breaks_iceberg(table: DeltaTable, before: State, after: State) -> bool:
    """Whether the change is refused: for kinds of columns, or for other partitions."""
    active = active_compatibility(table.protocol(), table.metadata())
    if not active:
        return False
    kinds = {column.kind for column in after.columns}
    if any(kinds & NOT_ICEBERG[name] for name in active):
        return True
    return bool(before.partition_by) and before.partition_by != after.partition_by
