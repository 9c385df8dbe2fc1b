"""The facts about a table that maintenance goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.log.listing import list_log
from delta_core.maintenance.clustering.cluster_plan import column_names, unclustered_files
from delta_core.maintenance.clustering.columns import clustering_columns, cube_of
from delta_core.maintenance.observe.operations import last_times_ms
from delta_core.maintenance.rewriting.reach import reachable
from delta_core.snapshot.clustering import clustering_of
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

_HISTORY_LIMIT = 200
_OPTIMIZE, _VACUUM = "OPTIMIZE", "VACUUM END"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """Facts about one version.

    Attributes:
        small_files: files below three quarters of the target size.
        compactable_files: small files that share their partition with another one; of a clustered table,
            small files that are not clustered.
        log_tail_commits: commits after the newest checkpoint, which every open must read.
        commits_in_log: commit files that are there at all.
        tombstones, tombstone_bytes: removed files that the log still names.
        expired_tombstones, expired_tombstone_bytes: those whose retention has passed.
        unclustered_files, unclustered_bytes: files that are not in Z-order by the columns asked about; of a
            clustered table, those that nobody clustered; 0 when no columns were asked about.
        clustered_by: the table's clustering columns.
        last_optimize_ms, last_vacuum_ms: from the newest 200 commits, or from what was seen before; None when
            neither tells.
    """

    uri: str
    table_id: str
    version: int
    timestamp_ms: int
    observed_ms: int
    num_files: int
    total_bytes: int
    average_file_bytes: int
    target_file_size_bytes: int
    small_files: int
    small_file_bytes: int
    compactable_files: int
    num_partitions: int
    checkpoint_version: int | None
    checkpoint_interval: int
    log_tail_commits: int
    commits_in_log: int
    tombstones: int
    tombstone_bytes: int
    expired_tombstones: int
    expired_tombstone_bytes: int
    deleted_file_retention_ms: int
    last_optimize_ms: int | None
    last_vacuum_ms: int | None
    unclustered_files: int = 0
    unclustered_bytes: int = 0
    clustered_by: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The facts as a JSON object."""
        return {**asdict(self), "clustered_by": list(self.clustered_by)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The facts that `to_json` wrote.

        Raises:
            ConfigurationError: a fact is missing. One that is not known, of a newer version, is left out.
        """
        known = {item.name: document[item.name] for item in fields(cls) if item.name in document}
        try:
            return cls(**{**known, "clustered_by": tuple(document.get("clustered_by") or ())})
        except TypeError as error:
            raise ConfigurationError(
                "The facts about a table cannot be read.",
                cause=str(error),
                fix="Pass what a result has as it was, or leave it out.",
            ) from error


def observe(
    snapshot: Snapshot,
    *,
    target_size_bytes: int | None = None,
    cluster_columns: Sequence[str] = (),
    before: TableHealth | None = None,
    reach: DataAccess | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> TableHealth:
    """Gather the facts. Reads no data file.

    Requests, besides those of loading the snapshot: one listing, and the newest commits until an OPTIMIZE and
    a VACUUM are found, at most 200 and none that was looked at before.

    Args:
        snapshot: the version to look at.
        target_size_bytes: what counts as full; `delta.targetFileSize` when None.
        cluster_columns: count the files that are not in Z-order by these; a clustered table goes by its own.
        before: the facts of an earlier version, which say what the commits up to it would. Those of another
            table, or of a later version, count for nothing.
        reach: files that are neither in the table nor below a root allowed here count neither as small nor as
            not clustered; None counts all.
        clock: the time that retention is counted back from.

    Raises:
        ConfigurationError: the table cannot be put into Z-order by these columns.
    """
    target = target_size_bytes or snapshot.properties.target_file_size_bytes
    # Before the live files are loaded: the commits' bytes are let go then.
    known = snapshot.commit_infos()
    if before is not None and (before.table_id != snapshot.metadata.id or before.version > snapshot.version):
        before = None
    files = snapshot.files
    sizes = files.to_table(["size_bytes"])["size_bytes"].to_numpy()
    within = np.ones(len(sizes), dtype=np.bool_)
    if reach is not None:
        within = reachable(files.to_table(["path"])["path"], snapshot.store, reach)
    small = (sizes < target * 3 // 4) & within
    groups = _partition_groups(snapshot)
    per_group = np.bincount(groups[small], minlength=int(groups.max()) + 1 if len(groups) else 0)
    now_ms = clock.now_ms()
    retention_ms = snapshot.properties.deleted_file_retention_ms
    tombstones = snapshot.tombstones(since_ms=0)
    expired = tombstones.filter(
        pc.less(pc.fill_null(tombstones["deletion_timestamp_ms"], 0), now_ms - retention_ms)
    )
    clustering = clustering_of(snapshot)
    if clustering is not None and clustering.columns:
        unordered = unclustered_files(snapshot, clustering) & within
        compactable = int((small & unordered).sum())
    else:
        unordered = _outside_order(snapshot, cluster_columns) & within
        compactable = int(per_group[per_group > 1].sum())
    segment = snapshot.segment
    listing = list_log(snapshot.store)
    times_ms = last_times_ms(
        snapshot,
        listing,
        (_OPTIMIZE, _VACUUM),
        after_version=-1 if before is None else before.version,
        limit=_HISTORY_LIMIT,
        known=known,
    )
    return TableHealth(
        uri=snapshot.store.uri,
        table_id=snapshot.metadata.id,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        observed_ms=now_ms,
        num_files=files.num_files,
        total_bytes=files.total_bytes,
        average_file_bytes=files.total_bytes // files.num_files if files.num_files else 0,
        target_file_size_bytes=target,
        small_files=int(small.sum()),
        small_file_bytes=int(sizes[small].sum()),
        compactable_files=compactable,
        num_partitions=len(np.unique(groups)),
        checkpoint_version=segment.checkpoint_version,
        checkpoint_interval=snapshot.properties.checkpoint_interval,
        log_tail_commits=len(segment.commits),
        commits_in_log=len(listing.commits),
        tombstones=tombstones.num_rows,
        tombstone_bytes=_sum(tombstones),
        expired_tombstones=expired.num_rows,
        expired_tombstone_bytes=_sum(expired),
        deleted_file_retention_ms=retention_ms,
        last_optimize_ms=times_ms.get(_OPTIMIZE, None if before is None else before.last_optimize_ms),
        last_vacuum_ms=times_ms.get(_VACUUM, None if before is None else before.last_vacuum_ms),
        unclustered_files=int(unordered.sum()),
        unclustered_bytes=int(sizes[unordered].sum()),
        clustered_by=column_names(clustering, snapshot) if clustering is not None else (),
    )


def _outside_order(snapshot: Snapshot, columns: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each live file whether it is out of the Z-order of the columns; nowhere when there are none."""
    if not columns:
        return np.zeros(snapshot.files.num_files, dtype=np.bool_)
    names = [item.name for item in clustering_columns(snapshot, columns)]
    tags = snapshot.files.to_table(["tags"])["tags"].to_pylist()
    return np.array([cube_of(dict(item or ()), names) is None for item in tags], dtype=np.bool_)


def _partition_groups(snapshot: Snapshot) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each live file a number that is the same within a partition."""
    groups = np.zeros(snapshot.files.num_files, dtype=np.int64)
    fields = (field for field in snapshot.schema if field.name in snapshot.partition_columns)
    for name in map(snapshot.column_mapping.physical_name, fields):
        values = snapshot.files.partition_column(name).combine_chunks()
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Renumbered each time, so that many columns cannot overflow.
        _, groups = np.unique(groups * (len(encoded.dictionary) + 1) + codes, return_inverse=True)
    return groups


def _sum(tombstones: pa.Table) -> int:
    return int(pc.sum(tombstones["size_bytes"]).as_py() or 0)
