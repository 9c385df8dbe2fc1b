"""When a change would break what a table that stays convertible to Iceberg promises."""

from __future__ import annotations

from delta_core import DeltaTable
from delta_core.table_features.iceberg_compat import active_compatibility
from tests.state_machine.model import State


def breaks_iceberg(table: DeltaTable, before: State, after: State) -> bool:
    """Whether the change is refused: arrays and maps by the first version, other partitions by both."""
    active = active_compatibility(table.protocol(), table.metadata())
    if not active:
        return False
    kinds = {column.kind for column in after.columns}
    if "icebergCompatV1" in active and kinds & {"list", "map"}:
        return True
    return bool(before.partition_by) and before.partition_by != after.partition_by
