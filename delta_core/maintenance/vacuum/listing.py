"""Lists and classifies the files that a vacuum may delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.maintenance.inner_tables import inner_root, is_within
from delta_core.numpy_columns import from_numpy, to_numpy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.listed_files import Integers, ListedFiles, walk_batches
from delta_core.storage.name_columns import NAME
from delta_core.table_features.feature import writer_features

RESERVED_DIRECTORIES = frozenset({"_delta_log", "_deltaward"})
"""Directories whose files a vacuum never deletes."""

STAGING_DIRECTORY = "_temporary"
"""The directory of Spark's committer for unfinished files. Deltaward's jobs use `<job-id>/_temporary`."""


HIDDEN = ("_", ".")
"""Prefixes of the names of files and directories that a vacuum keeps."""


class FileKind(Enum):
    """The kind of a listed file. Files of deletion vectors are DATA, like the data files beside them."""

    DATA = "data"
    CHANGE_DATA = "change data"
    STAGING = "staging"
    KEPT = "kept"


ICEBERG_DIRECTORY = "metadata"
"""The directory of the Iceberg metadata of a table, below the table's root."""


def classify(path: str, *, partition_columns: Sequence[str], for_iceberg: bool = False) -> FileKind:
    """The kind of a file, by its store path.

    Files and directories whose names start with `_` or `.` are KEPT, because other engines use such names.
    Exceptions are directories of partition columns (`_day=1`), the directory of change data, and directories
    of unfinished files of Deltaward's jobs.

    Args:
        path: path relative to the table's root.
        partition_columns: the table's partition columns.
        for_iceberg: True when the table may have Iceberg metadata, which is KEPT too.
    """
    folder, _, name = path.rpartition("/")
    kind = kind_in_folder(folder, partition_columns=partition_columns, for_iceberg=for_iceberg)
    return FileKind.KEPT if name.startswith(HIDDEN) and kind is not FileKind.STAGING else kind


def kind_in_folder(folder: str, *, partition_columns: Sequence[str], for_iceberg: bool = False) -> FileKind:
    """The kind of the files in a directory, before the check of the file's own name.

    Args:
        folder: path of the directory, relative to the table's root; `""` is the root.
        partition_columns, for_iceberg: see `classify`.
    """
    parts = folder.split("/") if folder else [""]
    if parts[0] in RESERVED_DIRECTORIES or (for_iceberg and parts[0] == ICEBERG_DIRECTORY):
        return FileKind.KEPT
    if len(parts) > 1 and parts[1] == STAGING_DIRECTORY and _is_job_directory(parts[0]):
        return FileKind.STAGING
    of_changes = parts[0] == CHANGE_DATA_DIRECTORY
    prefixes = tuple(f"{column}=" for column in partition_columns)
    for part in parts[1:] if of_changes else parts:
        if part.startswith(HIDDEN) and not part.startswith(prefixes):
            return FileKind.KEPT
    return FileKind.CHANGE_DATA if of_changes else FileKind.DATA


def may_have_iceberg_metadata(snapshot: Snapshot) -> bool:
    """True when the table may have Iceberg metadata, whose used files the Delta log does not record."""
    formats = snapshot.metadata.configuration.get("delta.universalFormat.enabledFormats", "")
    return "iceberg" in formats.lower() or any(
        name.startswith("icebergCompat") for name in writer_features(snapshot.protocol)
    )


OLD_FILES: Final = pa.schema(
    [("path", NAME), ("size_bytes", pa.int64()), ("modified_ms", pa.int64()), ("kind", pa.int8())]
)
"""The schema of files that were modified before a cutoff. `kind` is an index into KINDS."""

KINDS: Final = tuple(FileKind)

_STAGING = KINDS.index(FileKind.STAGING)
_FIRST_FOLDERS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The listed files below the root, without files of the kind KEPT and files of other tables.

    Attributes:
        num_files, total_bytes: number and total size of the files.
        num_directories: number of directories with such files.
        inner_tables: directories below the root that are other Delta tables.
    """

    num_files: int
    total_bytes: int
    num_directories: int
    inner_tables: tuple[str, ...]


def listed_files(snapshot: Snapshot, *, cutoff_ms: int) -> tuple[Listing, pa.Table]:
    """List all files of the table. Walks the root once and does not follow symbolic links.

    A symbolic link named `_delta_log`, or in a directory with that name, makes a directory another table.

    Memory: the files that were modified before the cutoff, and the directories.

    Returns:
        The numbers of all files; and the files that were modified before the cutoff, with the schema
        OLD_FILES, unsorted, in at most one chunk.

    Raises:
        StorageError: a directory could not be listed. The listing is then incomplete, so no file may be
            deleted.
    """
    folders = _Folders(
        partition_columns=snapshot.partition_columns, for_iceberg=may_have_iceberg_metadata(snapshot)
    )
    old_batches: list[tuple[pa.RecordBatch, Integers]] = []
    for batch in walk_batches(snapshot.store):
        folder_numbers = folders.count(batch)
        rows = np.flatnonzero((folder_numbers >= 0) & (batch.modified_ms < cutoff_ms))
        if len(rows):
            old_files = _old_files(batch, rows, folders.kinds[folder_numbers[rows]])
            old_batches.append((old_files, folder_numbers[rows]))
    within = folders.within_inner_tables()
    old = [
        batch.filter(from_numpy(~within[folder_numbers])) if folders.inner_tables else batch
        for batch, folder_numbers in old_batches
    ]
    counted = folders.num_files[: len(within)][~within]
    listing = Listing(
        num_files=int(counted.sum()),
        total_bytes=int(folders.total_bytes[: len(within)][~within].sum()),
        num_directories=int(np.count_nonzero(counted)),
        inner_tables=tuple(sorted(folders.inner_tables)),
    )
    return listing, pa.Table.from_batches(old, schema=OLD_FILES).combine_chunks()


def _old_files(batch: ListedFiles, rows: Integers, kinds: npt.NDArray[np.int8]) -> pa.RecordBatch:
    numbers = [from_numpy(column) for column in (batch.size_bytes[rows], batch.modified_ms[rows], kinds)]
    return pa.RecordBatch.from_arrays([batch.paths(rows), *numbers], schema=OLD_FILES)


class _Folders:
    """The directories with files that are not KEPT, numbered in the order of the walk, with their totals.

    Attributes:
        kinds, num_files, total_bytes: one entry for each directory; longer than the number of directories.
        inner_tables: directories that are other Delta tables, among those listed so far.
    """

    def __init__(self, *, partition_columns: Sequence[str], for_iceberg: bool) -> None:
        self._kind = partial(kind_in_folder, partition_columns=partition_columns, for_iceberg=for_iceberg)
        self._numbers: dict[str, int] = {}
        self.kinds = np.zeros(_FIRST_FOLDERS, dtype=np.int8)
        self.num_files = np.zeros(_FIRST_FOLDERS, dtype=np.int64)
        self.total_bytes = np.zeros(_FIRST_FOLDERS, dtype=np.int64)
        self.inner_tables: set[str] = set()

    def count(self, batch: ListedFiles) -> Integers:
        """Count the files of a batch. Returns the number of each file's directory, -1 for KEPT files."""
        files = np.bincount(batch.folder_of, minlength=len(batch.folders)).tolist()
        # Ignores directories without files, so that an empty log does not make a directory a table.
        numbers = np.array(
            [
                self._number(folder) if num_files else -1
                for folder, num_files in zip(batch.folders, files, strict=True)
            ],
            dtype=np.int64,
        )
        folder_numbers: Integers = numbers[batch.folder_of]
        hidden = np.zeros(len(batch), dtype=np.bool_)
        for prefix in HIDDEN:
            hidden |= to_numpy(pc.starts_with(batch.names, prefix))
        folder_numbers[hidden & (self.kinds[folder_numbers] != _STAGING)] = -1
        for link in batch.links:
            self._note_inner_table(link)
        counted = folder_numbers >= 0
        np.add.at(self.num_files, folder_numbers[counted], 1)
        np.add.at(self.total_bytes, folder_numbers[counted], batch.size_bytes[counted])
        return folder_numbers

    def within_inner_tables(self) -> npt.NDArray[np.bool_]:
        """For each directory: True when it is in an inner Delta table."""
        if not self.inner_tables:
            return np.zeros(len(self._numbers), dtype=np.bool_)
        within = [is_within(f"{folder}/", self.inner_tables) for folder in self._numbers]
        return np.array(within, dtype=np.bool_)

    def _number(self, folder: str) -> int:
        number = self._numbers.get(folder)
        if number is not None:
            return number
        self._note_inner_table(folder)
        kind = self._kind(folder)
        if kind is FileKind.KEPT:
            return -1
        number = self._numbers[folder] = len(self._numbers)
        if number == len(self.kinds):
            self.kinds = np.resize(self.kinds, 2 * number)
            for name in ("num_files", "total_bytes"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(number, dtype=np.int64)]))
        self.kinds[number] = KINDS.index(kind)
        return number

    def _note_inner_table(self, path: str) -> None:
        root = inner_root(f"{path}/")
        if root is not None and root.split("/")[0] not in RESERVED_DIRECTORIES:
            self.inner_tables.add(root)


def _is_job_directory(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name
