"""The files that a plan rewrites: checks that they are live, and deletes new files of a failed rewrite."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DeletionVectorDescriptor
from delta_core.errors import ConcurrentDeleteDeleteError, DeltaError
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.sources import SourceFile
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path

_LOGGER = logging.getLogger(__name__)


class StalePlanError(ConcurrentDeleteDeleteError):
    """A planned file is not live any more when the rewrite begins. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file to rewrite; `path` is as in the log."""

    path: str
    size_bytes: int


def still_live(latest: Snapshot, planned: Mapping[str, int], *, planned_version: int) -> pa.Table:
    """The planned files as in the newest version, one row per file, without statistics.

    The rows contain the newest deletion vectors, so rows that were deleted after the plan are left out too.

    Args:
        latest: the newest version.
        planned: sizes by path, as in the log.
        planned_version: the version that the plan was made from, for error messages.

    Raises:
        StalePlanError: a file is no longer live, or another file has its path.
    """
    columns = ["path", "partition_values", "size_bytes", "tags", "deletion_vector", "clustering_provider"]
    files = latest.files.to_table([*columns, "base_row_id", "default_row_commit_version"])
    live = files.filter(pc.is_in(files["path"], value_set=pa.array(list(planned), pa.string())))
    sizes = dict(zip(live["path"].to_pylist(), live["size_bytes"].to_pylist(), strict=True))
    missing = [path for path, size in planned.items() if sizes.get(path) != size]
    if missing:
        raise StalePlanError(
            f"{len(missing)} of {len(planned)} planned files are no longer in the table, "
            f"such as {missing[0]!r}.",
            cause=f"A commit between versions {planned_version} and {latest.version} removed them.",
            fix="Make a new plan from the newest version.",
        )
    return live


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedFields:
    """The fields of an `add` action that a new file with the same rows inherits.

    Attributes:
        tags: `tags` of the `add` action.
        clustering_provider: `clusteringProvider` of the `add` action.
    """

    tags: Mapping[str, str | None]
    clustering_provider: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSources:
    """The planned files as in the log, by their path in the log.

    Attributes:
        files: the files to read.
        inherited: the fields that new files inherit from each file.
    """

    files: Mapping[str, SourceFile]
    inherited: Mapping[str, InheritedFields]

    @classmethod
    def of(cls, live: pa.Table, *, store: LogStore, access: DataAccess = TABLE_ONLY) -> LiveSources:
        """The files that `still_live` returned, after a check that all of them may be read.

        Args:
            live: the result of `still_live`.
            store: the table's store.
            access: the roots outside the table that the files and their deletion vectors may be in.

        Raises:
            PathEscapeError: a file is neither in the table nor below an allowed root.
        """
        files, inherited = {}, {}
        for row in live.to_pylist():
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
            inherited[row["path"]] = InheritedFields(
                tags=dict(row["tags"] or ()), clustering_provider=row["clustering_provider"]
            )
        return cls(files=files, inherited=inherited)

    @property
    def num_deletion_vectors(self) -> int:
        """The number of files with a deletion vector."""
        return sum(file.deletion_vector is not None for file in self.files.values())

    @property
    def num_deleted_rows(self) -> int:
        """The number of rows that the files' deletion vectors mark as deleted."""
        dvs = [file.deletion_vector for file in self.files.values()]
        return sum(dv.cardinality for dv in dvs if dv is not None)

    def of_paths(self, files: Sequence[PlannedFile]) -> list[SourceFile]:
        """The files to read, in the order of the plan."""
        return [self.files[file.path] for file in files]

    def common(self, files: Sequence[PlannedFile]) -> InheritedFields:
        """The tags and the provider that all of some files share, which their merged file inherits."""
        first, *others = [self.inherited[file.path] for file in files]
        tags = {
            key: value
            for key, value in first.tags.items()
            if all(key in other.tags and other.tags[key] == value for other in others)
        }
        shared = all(other.clustering_provider == first.clustering_provider for other in others)
        return InheritedFields(tags=tags, clustering_provider=first.clustering_provider if shared else None)


def delete_unused(store: LogStore, results: Iterable[JsonObject]) -> None:
    """Delete the new files of a rewrite that was not committed, so that no commit refers to them."""
    for result in results:
        try:
            store.delete(resolve_data_path(result["path"], root_uri=store.uri))
        except DeltaError as error:
            _LOGGER.warning(
                "An unused new file could not be deleted; vacuum will delete it.",
                extra={"path": result["path"], "why": str(error)},
            )
