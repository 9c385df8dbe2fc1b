"""Which listed files a vacuum may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.maintenance.inner_tables import inner_root, is_within
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.feature import writer_features

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


ICEBERG_DIRECTORY = "metadata"
"""Where tables that are Iceberg's too have Iceberg's metadata, below their root."""


def classify(path: str, *, partition_columns: Sequence[str], for_iceberg: bool = False) -> FileKind:
    """What a store path is to a vacuum.

    Names that start with `_` or `.` are kept, files and directories alike, as other engines use them;
    a directory of a partition column (`_day=1`) is no such name, nor is that of change data, and the
    unfinished files of one of our jobs are known leftovers.

    Args:
        path: below the table's root.
        partition_columns: the table's.
        for_iceberg: whether Iceberg's metadata may lie there; its folder is kept then, too.
    """
    parts = path.split("/")
    if parts[0] in RESERVED_DIRECTORIES or (for_iceberg and parts[0] == ICEBERG_DIRECTORY and len(parts) > 1):
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


def may_be_icebergs(snapshot: Snapshot) -> bool:
    """Whether Iceberg's metadata may lie below the table's root: no log says which files of it are in use."""
    formats = snapshot.metadata.configuration.get("delta.universalFormat.enabledFormats", "")
    return "iceberg" in formats.lower() or any(
        name.startswith("icebergCompat") for name in writer_features(snapshot.protocol)
    )


def is_change_data(path: str) -> bool:
    """Whether a store path is below the directory of change data."""
    return path.startswith(f"{CHANGE_DATA_DIRECTORY}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a vacuum found below the root.

    Attributes:
        files: those that are not kept for their name, each with how it is treated.
        inner_tables: folders that are other Delta tables. What is in them is not among the files.
    """

    files: tuple[tuple[ObjectInfo, FileKind], ...]
    inner_tables: tuple[str, ...]


def listed_files(snapshot: Snapshot) -> Listing:
    """Every file of the table's below the root. One walk; links are not followed.

    Raises:
        StorageError: a directory could not be listed; then nothing is known and nothing may be deleted.
    """
    for_iceberg = may_be_icebergs(snapshot)
    files: list[tuple[ObjectInfo, FileKind]] = []
    inner: set[str] = set()
    for info in snapshot.store.walk():
        kind = classify(info.path, partition_columns=snapshot.partition_columns, for_iceberg=for_iceberg)
        if kind is not FileKind.KEPT:
            files.append((info, kind))
        elif (root := inner_root(info.path)) is not None and root.split("/")[0] not in RESERVED_DIRECTORIES:
            inner.add(root)
    if inner:
        files = [(info, kind) for info, kind in files if not is_within(info.path, inner)]
    return Listing(files=tuple(files), inner_tables=tuple(sorted(inner)))


def _is_job_directory(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name
