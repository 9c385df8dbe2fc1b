"""The clustering columns of a table (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns
from delta_core.table_features.upgrade import supported_features


def clustering_of(snapshot: Snapshot) -> ClusteringColumns | None:
    """The clustering columns of a table; None if the protocol or the domain metadata does not define them.

    Does not load the live files.

    Raises:
        InvalidTableError: the domain metadata is invalid.
    """
    if "clustering" not in supported_features(snapshot.protocol):
        return None
    domain = snapshot.domain(DOMAIN)
    return None if domain is None else ClusteringColumns.of_domains({DOMAIN: domain})
