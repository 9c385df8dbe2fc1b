"""Which listed files a vacuum may look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo

RESERVED_DIRECTORIES = frozenset({"_delta_log", "_deltaward"})
"""Never looked into, whatever their age."""

STAGING_DIRECTORY = "_temporary"
"""Where Spark's committer keeps unfinished files; ours are in `<job-id>/_temporary`."""


class FileKind(Enum):
    """How a listed file is treated. Files of deletion vectors lie among the data files, and are as they."""

    DATA = "data"
    CHANGE_DATA = "change data"
    STAGING = "staging"
    KEPT = "kept"


def classify(path: str, *, partition_columns: Sequence[str]) -> FileKind:
    """What a store path is to a vacuum.

    Names that start with `_` or `.` are kept, files and directories alike, as other engines use them;
    a directory of a partition column (`_day=1`) is no such name, nor is that of change data, and the
    unfinished files of one of our jobs are known leftovers.
    """
    parts = path.split("/")
    if parts[0] in RESERVED_DIRECTORIES:
        return FileKind.KEPT
    if len(parts) > 2 and parts[1] == STAGING_DIRECTORY and _is_job_directory(parts[0]):
        return FileKind.STAGING
    *directories, name = parts[1:] if is_change_data(path) else parts
    if name.startswith(("_", ".")):
        return FileKind.KEPT
    prefixes = tuple(f"{column}=" for column in partition_columns)
    if any(part.startswith(("_", ".")) and not part.startswith(prefixes) for part in directories):
        return FileKind.KEPT
    return FileKind.CHANGE_DATA if is_change_data(path) else FileKind.DATA


def is_change_data(path: str) -> bool:
    """Whether a store path is below the directory of change data."""
    return path.startswith(f"{CHANGE_DATA_DIRECTORY}/")


def listed_files(snapshot: Snapshot) -> Iterator[tuple[ObjectInfo, FileKind]]:
    """Every file below the root that is not kept for its name. Links are not followed.

    Raises:
        StorageError: a directory could not be listed; then nothing is known and nothing may be deleted.
    """
    for info in snapshot.store.walk():
        kind = classify(info.path, partition_columns=snapshot.partition_columns)
        if kind is not FileKind.KEPT:
            yield info, kind


def _is_job_directory(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name
