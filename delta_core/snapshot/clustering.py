"""By which columns a table is clustered (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns
from delta_core.table_features.upgrade import supported_features


def clustering_of(snapshot: Snapshot) -> ClusteringColumns | None:
    """By which columns a table is clustered; None where its protocol or its domains do not say so.

    Reads no list of files.

    Raises:
        InvalidTableError: the domain cannot be read.
    """
    if "clustering" not in supported_features(snapshot.protocol):
        return None
    domain = snapshot.domain(DOMAIN)
    return None if domain is None else ClusteringColumns.of_domains({DOMAIN: domain})
