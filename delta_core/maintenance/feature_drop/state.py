"""The state of a table's newest version that decides whether a feature can be dropped."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DeletionVectorDescriptor
from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import PathEscapeError
from delta_core.maintenance.feature_drop.history import CleanSince
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import canonical_log_path, encode_data_path
from delta_core.table_features.removal_rules import TableState


def table_state(snapshot: Snapshot, *, history: CleanSince | None = None) -> TableState:
    """The state for `plan_removal`. Loads live files, and tombstones if deletion vectors are supported.

    Args:
        snapshot: the newest version.
        history: the result of the check of older versions; None when they were not checked.
    """
    dvs = "deletionVectors" in (snapshot.protocol.reader_features or ())
    return TableState(
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        version=snapshot.version,
        oldest_version=0 if history is None else history.oldest_version,
        has_deletion_vectors=snapshot.files.has_deletion_vectors,
        has_removed_deletion_vectors=dvs and bool(revived_files(snapshot)),
        has_v2_checkpoint=snapshot.has_v2_checkpoint,
        has_row_ids=has_row_ids(snapshot),
        domains=snapshot.domain_metadata,
        clean_since_version=None if history is None else history.version,
        clean_since_ms=None if history is None else history.time_ms,
    )


def has_row_ids(snapshot: Snapshot) -> bool:
    """Whether a live file has a base row id or a default row commit version."""
    names = ["base_row_id", "default_row_commit_version"]
    return any(
        batch.column(name).null_count < batch.num_rows
        for batch in snapshot.files.batches(names)
        for name in names
    )


def files_with_row_ids(snapshot: Snapshot) -> pa.Table:
    """The live files with a base row id or a default row commit version, with all columns."""
    files = snapshot.files.to_table(LIVE_FILE_SCHEMA.names)
    return files.filter(
        pc.or_(pc.is_valid(files["base_row_id"]), pc.is_valid(files["default_row_commit_version"]))
    )


def revived_files(snapshot: Snapshot) -> frozenset[str]:
    """Paths of live files without a deletion vector that also have a tombstone with a deletion vector.

    A restore creates such files. A reader without support for deletion vectors identifies files by path
    alone. In a checkpoint with both actions it takes the file for removed. Reads the log's tombstones of
    every age.
    """
    removed = snapshot.tombstones(since_ms=0)
    paths = {canonical_log_path(path) for path in deletion_vector_paths(removed)}
    if not paths:
        return frozenset()
    return frozenset(
        path
        for batch in snapshot.files.batches(["path"])
        for path in batch.column("path").to_pylist()
        if canonical_log_path(path) in paths
    )


def deletion_vector_files_without_tombstone(snapshot: Snapshot) -> dict[str, int]:
    """Deletion vector files that older versions within the retention need, by path in the log's spelling.

    Files that have an equally recent tombstone of their own are left out. Reads the log's tombstones.

    Returns:
        For each file, when the last data file with a deletion vector in it was removed, in epoch
        milliseconds.
    """
    needed: dict[str, int] = {}
    for row in snapshot.tombstones().select(["deletion_timestamp_ms", "deletion_vector"]).to_pylist():
        dv = row["deletion_vector"]
        if dv is None or dv["storage_type"] is None:
            continue
        try:
            path = deletion_vector_path(DeletionVectorDescriptor(**dv), root_uri=snapshot.store.uri)
        except (ValueError, PathEscapeError):
            continue  # An invalid path is not a file of this table.
        if path is not None:
            name = encode_data_path(path)
            needed[name] = max(needed.get(name, 0), row["deletion_timestamp_ms"] or 0)
    if not needed:
        return {}
    removed = snapshot.tombstones(since_ms=0)
    times = zip(removed["path"].to_pylist(), removed["deletion_timestamp_ms"].to_pylist(), strict=True)
    known = {canonical_log_path(path): time_ms or 0 for path, time_ms in times}
    return {path: time for path, time in needed.items() if known.get(canonical_log_path(path), -1) < time}


def deletion_vector_paths(files: pa.Table | pa.RecordBatch) -> list[str]:
    """The paths of files, or tombstones, with a deletion vector."""
    kinds = pc.struct_field(files.column("deletion_vector"), "storage_type")
    paths: list[str] = files.column("path").filter(pc.is_valid(kinds)).to_pylist()
    return paths
