"""The files that a plan rewrites: are they still there, what is kept of them, and unneeded new files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DeletionVectorDescriptor
from delta_core.errors import ConcurrentDeleteDeleteError, DeltaError, MaintenanceError
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.sources import SourceFile
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
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

    Rows of them that were deleted since have a deletion vector here, and are left out as any others are.

    Args:
        latest: the newest version.
        planned: sizes by path, as in the log.
        planned_version: the version that the plan was made from, for messages.

    Raises:
        ConcurrentDeleteDeleteError: a file is gone or another one has its name.
    """
    columns = ["path", "partition_values", "size_bytes", "tags", "deletion_vector", "clustering_provider"]
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
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOfFile:
    """What the log says of a file besides its rows, that new files with these rows keep.

    Attributes:
        tags: of the `add` action.
        clustering_provider: who clustered it.
    """

    tags: Mapping[str, str | None]
    clustering_provider: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSources:
    """The planned files as the log has them, by the path that the log has.

    Attributes:
        files: to read.
        kept: what new files keep of them.
    """

    files: Mapping[str, SourceFile]
    kept: Mapping[str, KeptOfFile]

    @classmethod
    def of(cls, found: pa.Table, *, store: LogStore, access: DataAccess = TABLE_ONLY) -> LiveSources:
        """From what `still_live` returned, once it is certain that all of it may be read.

        Args:
            found: the files.
            store: the table's.
            access: where besides the table they, and their vectors, may be.

        Raises:
            PathEscapeError: one is elsewhere.
        """
        files, kept = {}, {}
        for row in found.to_pylist():
            stored = row["deletion_vector"]
            dv = None
            if stored is not None and stored["storage_type"] is not None:
                dv = DeletionVectorDescriptor(**stored)
            access.locate(row["path"], store=store)
            if dv is not None and dv.storage_type == "p":
                access.locate(dv.path_or_inline_dv, store=store)
            files[row["path"]] = SourceFile(
                path=row["path"],
                deletion_vector=dv,
                base_row_id=row["base_row_id"],
                default_row_commit_version=row["default_row_commit_version"],
            )
            kept[row["path"]] = KeptOfFile(
                tags=dict(row["tags"] or ()), clustering_provider=row["clustering_provider"]
            )
        return cls(files=files, kept=kept)

    @property
    def num_deletion_vectors(self) -> int:
        """How many of the files have one."""
        return sum(file.deletion_vector is not None for file in self.files.values())

    @property
    def num_deleted_rows(self) -> int:
        """How many rows their vectors name."""
        dvs = [file.deletion_vector for file in self.files.values()]
        return sum(dv.cardinality for dv in dvs if dv is not None)

    def of_paths(self, files: Sequence[PlannedFile]) -> list[SourceFile]:
        """The files to read, in the order of the plan."""
        return [self.files[file.path] for file in files]

    def common(self, files: Sequence[PlannedFile]) -> KeptOfFile:
        """What all of some files agree on: a file with the rows of all of them keeps that."""
        first, *others = [self.kept[file.path] for file in files]
        tags = {
            key: value
            for key, value in first.tags.items()
            if all(key in other.tags and other.tags[key] == value for other in others)
        }
        alike = all(other.clustering_provider == first.clustering_provider for other in others)
        return KeptOfFile(tags=tags, clustering_provider=first.clustering_provider if alike else None)


def delete_unused(store: LogStore, results: Iterable[JsonObject]) -> None:
    """Delete finished files of a rewriting that failed: no commit was tried, so none names them."""
    for result in results:
        try:
            store.delete(resolve_data_path(result["path"], root_uri=store.uri))
        except DeltaError as error:
            _LOGGER.warning(
                "a rewritten file stays until vacuum", extra={"path": result["path"], "why": str(error)}
            )
