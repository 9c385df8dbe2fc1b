"""The facts about a table that maintenance decisions depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.log.listing import LogListing, list_log
from delta_core.maintenance.clustering.cluster_plan import column_names, unclustered_files
from delta_core.maintenance.clustering.columns import clustering_columns, cube_of
from delta_core.maintenance.observe.operations import last_times_ms
from delta_core.maintenance.rewriting.reach import reachable
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.storage.data_access import DataAccess

HISTORY_LIMIT: Final = 200
"""How many of the newest commits are read to find the last OPTIMIZE and VACUUM."""

_OPTIMIZE, _VACUUM = "OPTIMIZE", "VACUUM END"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """Facts about one version of a table.

    Attributes:
        small_files: files below three quarters of the target size.
        compactable_files: small files in a partition with at least two small files; in a clustered table,
            small files that are not clustered.
        log_tail_commits: commits after the newest checkpoint, which each load of the snapshot must read.
        commits_in_log: all commit files in the log.
        tombstones, tombstone_bytes: removed files that the log still records.
        expired_tombstones, expired_tombstone_bytes: tombstones whose retention has passed.
        unclustered_files, unclustered_bytes: files that are not in Z-order by the requested columns; in a
            clustered table, files that were never clustered. 0 without requested or clustering columns.
        clustered_by: the table's clustering columns.
        last_optimize_ms, last_vacuum_ms: time of the last OPTIMIZE and of the last VACUUM, from the newest
            200 commits or from the earlier facts; None when neither contains one.
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
            ConfigurationError: a field is missing. Unknown fields, from a newer release, are ignored.
        """
        known = {item.name: document[item.name] for item in fields(cls) if item.name in document}
        try:
            return cls(**{**known, "clustered_by": tuple(document.get("clustered_by") or ())})
        except TypeError as error:
            raise ConfigurationError(
                "The facts about a table cannot be read.",
                cause=str(error),
                fix="Pass the facts of an earlier result without changes, or pass none.",
            ) from error


def observe(
    snapshot: Snapshot,
    *,
    target_size_bytes: int | None = None,
    cluster_columns: Sequence[str] = (),
    before: TableHealth | None = None,
    reach: DataAccess | None = None,
    listing: LogListing | None = None,
    history_limit: int = HISTORY_LIMIT,
    clock: Clock = SYSTEM_CLOCK,
) -> TableHealth:
    """Gather the facts about one version of a table. Reads no data file.

    Requests in addition to loading the snapshot: one listing, and a read of each newest commit until an
    OPTIMIZE and a VACUUM are found; at most `history_limit` commits, and no commit up to the version of
    `before`.

    Args:
        snapshot: the version to examine.
        target_size_bytes: target size of a file; `delta.targetFileSize` when None.
        cluster_columns: count the files that are not in Z-order by these columns. A clustered table uses its
            own clustering columns instead.
        before: the facts of an earlier version, which replace reading the commits up to that version.
            Ignored when they are from another table or a later version.
        reach: files that are neither in the table nor below a root allowed here count neither as small nor as
            unclustered; None counts all files.
        listing: the whole listing of the log from which the snapshot was loaded; None lists the log again.
        history_limit: most commits to examine for the times of the last OPTIMIZE and VACUUM. Commits in
            memory are examined in any case.
        clock: the current time, from which the retention is subtracted.

    Raises:
        ConfigurationError: the table cannot be put into Z-order by these columns.
    """
    target = target_size_bytes or snapshot.properties.target_file_size_bytes
    # Must precede the access to `snapshot.files`, which releases the bytes of the commits.
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
    if listing is None:
        listing = list_log(snapshot.store)
    times_ms = last_times_ms(
        snapshot,
        listing,
        (_OPTIMIZE, _VACUUM),
        after_version=-1 if before is None else before.version,
        limit=history_limit,
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
    """For each live file: True when the file is not in Z-order by the columns. All False without columns."""
    if not columns:
        return np.zeros(snapshot.files.num_files, dtype=np.bool_)
    names = [item.name for item in clustering_columns(snapshot, columns)]
    tags = snapshot.files.to_table(["tags"])["tags"].to_pylist()
    return np.array([cube_of(dict(item or ()), names) is None for item in tags], dtype=np.bool_)


def _partition_groups(snapshot: Snapshot) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each live file, a number that identifies the file's partition."""
    groups = np.zeros(snapshot.files.num_files, dtype=np.int64)
    fields = (field for field in snapshot.schema if field.name in snapshot.partition_columns)
    for name in map(snapshot.column_mapping.physical_name, fields):
        values = snapshot.files.partition_column(name).combine_chunks()
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Renumbered for each column, so that many columns cannot overflow.
        _, groups = np.unique(groups * (len(encoded.dictionary) + 1) + codes, return_inverse=True)
    return groups


def _sum(tombstones: pa.Table) -> int:
    return int(pc.sum(tombstones["size_bytes"]).as_py() or 0)
