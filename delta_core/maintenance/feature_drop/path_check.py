"""The check, before the first commit of a drop, that its steps may open the files that they read.

A shallow clone refers to files of its source, which may be opened only below the roots that the caller
allows. Without this check a drop could fail half way, with the feature disabled but still in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.feature_drop.state import files_with_row_ids, has_row_ids, revived_files
from delta_core.maintenance.row_counts import uncounted_paths
from delta_core.schema.column_mapping import ColumnMappingMode
from delta_core.schema.type_changes import recorded_type_changes
from delta_core.snapshot.snapshot import Snapshot


def require_allowed_paths(drop: Drop, latest: Snapshot) -> None:
    """Check that every file that `PREPARATIONS` opens for the feature may be opened.

    Raises:
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    if drop.feature in _FILES_TO_OPEN:
        drop.run.access.require_allowed_paths(_FILES_TO_OPEN[drop.feature](latest), store=latest.store)


def _with_deletion_vectors(snapshot: Snapshot) -> Iterator[str]:
    yield from revived_files(snapshot)
    if snapshot.files.has_deletion_vectors:
        for batch in snapshot.files.batches(["path", "deletion_vector"]):
            yield from _data_and_deletion_vectors(batch, all_data=False)


def _uncounted(snapshot: Snapshot) -> Iterator[str]:
    if has_row_ids(snapshot):
        yield from uncounted_paths(files_with_row_ids(snapshot))


def _mapped(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.column_mapping.mode is not ColumnMappingMode.NONE:
        yield from _all(snapshot)


def _widened(snapshot: Snapshot) -> Iterator[str]:
    if next(iter(recorded_type_changes(snapshot.schema)), None) is not None:
        yield from _all(snapshot)


def _all(snapshot: Snapshot) -> Iterator[str]:
    for batch in snapshot.files.batches(["path", "deletion_vector"]):
        yield from _data_and_deletion_vectors(batch, all_data=True)


def _data_and_deletion_vectors(batch: pa.RecordBatch, *, all_data: bool) -> Iterator[str]:
    """Paths of data files (all, or those with deletion vectors), and absolute deletion vector paths."""
    for row in batch.to_pylist():
        dv = row["deletion_vector"]
        kind = None if dv is None else dv["storage_type"]
        if all_data or kind is not None:
            yield row["path"]
        if kind == "p":
            yield dv["path_or_inline_dv"]


_FILES_TO_OPEN: Mapping[str, Callable[[Snapshot], Iterator[str]]] = {
    "deletionVectors": _with_deletion_vectors,
    "rowTracking": _uncounted,
    "columnMapping": _mapped,
    "typeWidening": _widened,
    "typeWidening-preview": _widened,
}
