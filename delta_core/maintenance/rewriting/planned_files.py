"""The files that a plan rewrites: are they still there, and what becomes of new files nobody names."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ConcurrentDeleteDeleteError, DeltaError, MaintenanceError
from delta_core.execution.executor import JsonObject
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file to be rewritten; `path` is as in the log."""

    path: str
    size_bytes: int


def require_same_table(latest: Snapshot, table_id: str) -> None:
    """Check that a plan is for this table.

    Raises:
        MaintenanceError: it is for another one.
    """
    if latest.metadata.id != table_id:
        raise MaintenanceError(
            "the plan is for another table",
            cause=f"it names the table id {table_id}, the table there has {latest.metadata.id}",
            fix="plan again",
        )


def still_live(latest: Snapshot, planned: Mapping[str, int], *, planned_version: int) -> pa.Table:
    """The planned files' rows in the newest version, without statistics.

    Args:
        latest: the newest version.
        planned: sizes by path, as in the log.
        planned_version: the version that the plan was made from, for messages.

    Raises:
        ConcurrentDeleteDeleteError: a file is gone or another one has its name.
        MaintenanceError: rows of a file were deleted since.
    """
    columns = ["path", "partition_values", "size_bytes", "tags", "deletion_vector"]
    files = latest.files.to_table([*columns, "base_row_id", "default_row_commit_version"])
    found = files.filter(pc.is_in(files["path"], value_set=pa.array(list(planned), pa.string())))
    sizes = dict(zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True))
    gone = [path for path, size in planned.items() if sizes.get(path) != size]
    if gone:
        raise ConcurrentDeleteDeleteError(
            f"{len(gone)} of {len(planned)} planned files are no longer in the table, such as {gone[0]!r}",
            cause=f"a commit between version {planned_version} and {latest.version} removed or replaced them",
            fix="plan again from the newest version",
        )
    if found["deletion_vector"].null_count != found.num_rows:
        raise MaintenanceError(
            "a planned file has a deletion vector by now",
            cause="rows of it were deleted after the plan was made",
            fix="plan again from the newest version",
        )
    return found


def delete_unused(store: LogStore, results: Iterable[JsonObject]) -> None:
    """Delete finished files of a rewriting that failed: no commit was tried, so none names them."""
    for result in results:
        try:
            store.delete(resolve_data_path(result["path"], root_uri=store.uri))
        except DeltaError as error:
            _LOGGER.warning(
                "a rewritten file stays until vacuum", extra={"path": result["path"], "why": str(error)}
            )
