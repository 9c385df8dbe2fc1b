"""What a table's clustering asks of who writes to it (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from delta_core.data.write_plan import WritePlan
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot


def plan_of(snapshot: Snapshot) -> WritePlan:
    """What the table asks of rows, statistics of its clustering columns included.

    Raises:
        InvalidTableError: what the table says of its rows contradicts itself.
        SchemaError: the schema cannot be read.
    """
    found = clustering_of(snapshot)
    return WritePlan.of(
        snapshot.protocol, snapshot.metadata, clustered_by=() if found is None else found.columns
    )
