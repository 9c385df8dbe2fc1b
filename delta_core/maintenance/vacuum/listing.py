"""Which listed files a vacuum may look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo

RESERVED_DIRECTORIES = frozenset({"_delta_log", "_deltaward"})
"""Never looked into, whatever their age."""

STAGING_DIRECTORY = "_temporary"
"""Where Spark's committer keeps unfinished files; ours are in `<job-id>/_temporary`."""


class FileKind(Enum):
    """How a listed file is treated."""

    DATA = "data"
    STAGING = "staging"
    KEPT = "kept"


def classify(path: str, *, partition_columns: Sequence[str], keeps_deletion_vectors: bool) -> FileKind:
    """What a store path is to a vacuum.

    Names that start with `_` or `.` are kept, files and directories alike, as other engines use them;
    a directory of a partition column (`_day=1`) is no such name, and the unfinished files of one of our
    jobs are known leftovers.
    """
    parts = path.split("/")
    if parts[0] in RESERVED_DIRECTORIES:
        return FileKind.KEPT
    if len(parts) > 2 and parts[1] == STAGING_DIRECTORY and _is_job_directory(parts[0]):
        return FileKind.STAGING
    *directories, name = parts
    if name.startswith(("_", ".")):
        return FileKind.KEPT
    prefixes = tuple(f"{column}=" for column in partition_columns)
    if any(part.startswith(("_", ".")) and not part.startswith(prefixes) for part in directories):
        return FileKind.KEPT
    if keeps_deletion_vectors and name.startswith("deletion_vector") and name.endswith(".bin"):
        return FileKind.KEPT
    return FileKind.DATA


def listed_files(snapshot: Snapshot) -> Iterator[tuple[ObjectInfo, FileKind]]:
    """Every file below the root that is not kept for its name. Links are not followed.

    Raises:
        StorageError: a directory could not be listed; then nothing is known and nothing may be deleted.
    """
    features = snapshot.protocol.writer_features or frozenset()
    for info in snapshot.store.walk():
        kind = classify(
            info.path,
            partition_columns=snapshot.partition_columns,
            keeps_deletion_vectors="deletionVectors" in features,
        )
        if kind is not FileKind.KEPT:
            yield info, kind


def _is_job_directory(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name
