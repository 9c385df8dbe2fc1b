"""Changing by which columns a table is clustered (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from delta_core.dml.definition.change import applied_before, commit_change
from delta_core.dml.definition.statistics_check import require_file_statistics
from delta_core.errors import InvalidTableError
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns, require_statistics
from delta_core.table_features.enablement import ProtocolRequest
from delta_core.transaction.commit_result import Committed

_NEEDED = ProtocolRequest(features=frozenset({"clustering"}), properties={}, clusters=True)


def cluster_by(
    snapshot: Snapshot, columns: Sequence[str | Sequence[str]] | None, **options: Any
) -> Committed:
    """Cluster a table by these columns, or by nothing: files stay as they are until they are rewritten.

    The commit carries the metadata, too: a writer that took statistics by the former columns must not come
    after it, and metadata is what every writer looks out for.

    Args:
        snapshot: the table.
        columns: a name or path each; None or nothing for no clustering, which of a table that is not
            clustered changes nothing.
        options: those of the commit.

    Raises:
        SchemaError: no such column, too many, a type without bounds, or a table that is partitioned.
        ConfigurationError: the table's properties, or a file, leave a column without statistics.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    before = _known(snapshot)
    if not columns and DOMAIN not in snapshot.domain_metadata:
        # Without a domain a table is not clustered; with one it would be, by nothing.
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    chosen = ClusteringColumns.choose(
        snapshot.schema, columns or (), partition_columns=snapshot.partition_columns if columns else ()
    )
    require_statistics(chosen, snapshot.schema, snapshot.metadata.configuration)
    known = () if before is None else before.columns
    require_file_statistics(snapshot, [path for path in chosen.columns if path not in known])
    if before is not None:
        chosen = replace(chosen, other=before.other)
    return commit_change(
        snapshot,
        operation="CLUSTER BY",
        parameters={
            "oldClusteringColumns": "" if before is None else ",".join(before.names(snapshot.schema)),
            "newClusteringColumns": ",".join(chosen.names(snapshot.schema)),
        },
        metadata=snapshot.metadata,
        request=_NEEDED,
        actions=[chosen.action()],
        # Files that come meanwhile have not been looked at for statistics.
        reads_rows=bool(chosen.columns),
        **options,
    )


def _known(snapshot: Snapshot) -> ClusteringColumns | None:
    """By which columns it is clustered; None, too, where its domain cannot be read: this is what mends it."""
    try:
        return clustering_of(snapshot)
    except InvalidTableError:
        return None
