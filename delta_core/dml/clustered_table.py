"""The write plan of a clustered table (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from delta_core.data.write_plan import WritePlan
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot


def write_plan_of(snapshot: Snapshot) -> WritePlan:
    """The write plan of a table. It includes statistics of the clustering columns.

    Raises:
        InvalidTableError: the table's requirements for rows contradict each other.
        SchemaError: the schema cannot be read.
    """
    clustering = clustering_of(snapshot)
    return WritePlan.of(
        snapshot.protocol, snapshot.metadata, clustered_by=() if clustering is None else clustering.columns
    )
