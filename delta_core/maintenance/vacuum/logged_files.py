"""The files that the log names as removed, without a listing of the table's directory (`VACUUM ... LITE`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.actions import DeletionVectorDescriptor, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.log.commit_reader import read_commits
from delta_core.maintenance.vacuum.listing import KINDS, OLD_FILES, FileKind, Listing, classify
from delta_core.maintenance.vacuum.listing import may_have_iceberg_metadata as is_for_iceberg
from delta_core.maintenance.vacuum.protected import commits_in_log
from delta_core.numpy_columns import from_numpy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.name_columns import name_column
from delta_core.storage.parallel import parallel
from delta_core.storage.uri import resolve_data_path

_FILES_AT_ONCE = 1024
_COMMITS_AT_ONCE = 64


def logged_files(snapshot: Snapshot, *, cutoff_ms: int) -> tuple[Listing, pa.Table]:
    """The files that exist and that the log names as removed before the cutoff.

    These are the files of the tombstones, and of the `remove` actions in all older commits that are still in
    the log, and the files of their deletion vectors. Files of unfinished writes, and files whose commits are
    deleted from the log, are not among them: only a listing finds these.

    Cost: one listing of the log, one request for each of its commits before the cutoff, and one request for
    each removed file.

    Returns:
        As `listed_files`: the numbers of the files, and the files with the schema OLD_FILES.

    Raises:
        StorageError: a commit, or the state of a file, could not be read.
    """
    of_kind = partial(
        classify, partition_columns=snapshot.partition_columns, for_iceberg=is_for_iceberg(snapshot)
    )
    paths = {path: of_kind(path) for path in _removed_paths(snapshot, cutoff_ms=cutoff_ms)}
    wanted = [path for path, kind in paths.items() if kind is FileKind.DATA]
    found = [info for info in _existing(snapshot.store, wanted) if info.modified_ms < cutoff_ms]
    numbers = [
        np.array([value(info) for info in found], dtype=kind)
        for value, kind in (
            (lambda info: info.size_bytes, np.int64),
            (lambda info: info.modified_ms, np.int64),
            (lambda _: KINDS.index(FileKind.DATA), np.int8),
        )
    ]
    listing = Listing(
        num_files=len(found),
        total_bytes=sum(info.size_bytes for info in found),
        num_directories=len({info.path.rpartition("/")[0] for info in found}),
        inner_tables=(),
    )
    names = name_column([info.path for info in found])
    return listing, pa.table([names, *map(from_numpy, numbers)], schema=OLD_FILES)


def _existing(store: LogStore, paths: list[str]) -> Iterator[ObjectInfo]:
    for first in range(0, len(paths), _FILES_AT_ONCE):
        calls = [partial(_head, store, path) for path in paths[first : first + _FILES_AT_ONCE]]
        yield from (info for info in parallel(store, calls) if info is not None)


def _head(store: LogStore, path: str) -> ObjectInfo | None:
    with suppress(ObjectNotFoundError):
        return store.head(path)
    return None


def _removed_paths(snapshot: Snapshot, *, cutoff_ms: int) -> Iterator[str]:
    """Store paths of removed files. A path outside of the table belongs to another table."""
    root_uri = snapshot.store.uri
    tombstones = snapshot.tombstones(since_ms=0).select(["path", "deletion_vector"])
    for row in tombstones.to_pylist():
        yield from _paths_of(row["path"], _descriptor(row["deletion_vector"]), root_uri=root_uri)
    commits = [item for item in commits_in_log(snapshot) if item.info.modified_ms < cutoff_ms]
    for first in range(0, len(commits), _COMMITS_AT_ONCE):
        for commit in read_commits(snapshot.store, commits[first : first + _COMMITS_AT_ONCE]):
            for action in decode_commit(commit.data, path=commit.path):
                if isinstance(action, RemoveFile):
                    yield from _paths_of(action.path, action.deletion_vector, root_uri=root_uri)


def _descriptor(value: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    return None if value is None or value["storage_type"] is None else DeletionVectorDescriptor(**value)


def _paths_of(path: str, dv: DeletionVectorDescriptor | None, *, root_uri: str) -> Iterable[str]:
    with suppress(PathEscapeError):
        yield resolve_data_path(path, root_uri=root_uri)
    if dv is not None:
        with suppress(PathEscapeError, ValueError):
            of_dv = deletion_vector_path(dv, root_uri=root_uri)
            if of_dv is not None:
                yield of_dv
