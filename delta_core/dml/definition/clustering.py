"""Changes the clustering columns of a table (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_core.dml.definition.change import commit_change
from delta_core.dml.definition.statistics_check import require_file_statistics
from delta_core.errors import InvalidTableError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns, require_statistics
from delta_core.table_features.enablement import ProtocolRequest
from delta_core.transaction.commit_result import Committed

_NEEDED = ProtocolRequest(features=frozenset({"clustering"}), properties={}, clusters=True)


def cluster_by(
    snapshot: Snapshot, columns: Sequence[str | Sequence[str]] | None, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Cluster a table by these columns, or end its clustering. Files are not rewritten.

    The commit also contains the metadata, so that it conflicts with every concurrent writer. A writer that
    collected statistics for the former columns must not commit after it.

    Args:
        snapshot: the version of the table.
        columns: a name or path for each column. None or an empty sequence ends the clustering. It changes
            nothing when the table is not clustered.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        SchemaError: a column does not exist or has a type without bounds, there are too many columns, or the
            table is partitioned.
        ConfigurationError: a column has no statistics, because of the table's properties or in a file.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    before = _current(snapshot)
    if not columns and DOMAIN not in snapshot.domain_metadata:
        # A table without the domain is not clustered. Do not add the domain with an empty list of columns.
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    chosen = ClusteringColumns.choose(
        snapshot.schema, columns or (), partition_columns=snapshot.partition_columns if columns else ()
    )
    require_statistics(chosen, snapshot.schema, snapshot.metadata.configuration)
    current = () if before is None else before.columns
    require_file_statistics(snapshot, [path for path in chosen.columns if path not in current])
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
        # The statistics of files that other writers add before the commit were not checked.
        reads_rows=bool(chosen.columns),
        run=run,
    )


def _current(snapshot: Snapshot) -> ClusteringColumns | None:
    """The clustering columns, or None. Also None for an invalid domain, which this operation repairs."""
    try:
        return clustering_of(snapshot)
    except InvalidTableError:
        return None
