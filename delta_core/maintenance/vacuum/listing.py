"""Which listed files a vacuum may look at."""

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
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.listed_files import Integers, ListedFiles, walk_batches
from delta_core.storage.name_columns import NAME
from delta_core.table_features.feature import writer_features

RESERVED_DIRECTORIES = frozenset({"_delta_log", "_deltaward"})
"""Never looked into, whatever their age."""

STAGING_DIRECTORY = "_temporary"
"""Where Spark's committer keeps unfinished files; ours are in `<job-id>/_temporary`."""


HIDDEN = ("_", ".")
"""How names begin that are kept."""


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
    folder, _, name = path.rpartition("/")
    kind = kind_in_folder(folder, partition_columns=partition_columns, for_iceberg=for_iceberg)
    return FileKind.KEPT if name.startswith(HIDDEN) and kind is not FileKind.STAGING else kind


def kind_in_folder(folder: str, *, partition_columns: Sequence[str], for_iceberg: bool = False) -> FileKind:
    """What the files in a folder are to a vacuum, but for those that are kept for their own names.

    Args:
        folder: below the table's root; `""` is the root.
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


def may_be_icebergs(snapshot: Snapshot) -> bool:
    """Whether Iceberg's metadata may lie below the table's root: no log says which files of it are in use."""
    formats = snapshot.metadata.configuration.get("delta.universalFormat.enabledFormats", "")
    return "iceberg" in formats.lower() or any(
        name.startswith("icebergCompat") for name in writer_features(snapshot.protocol)
    )


OLD_FILES: Final = pa.schema(
    [("path", NAME), ("size_bytes", pa.int64()), ("modified_ms", pa.int64()), ("kind", pa.int8())]
)
"""Files from before a cutoff. `kind` is an index into KINDS."""

KINDS: Final = tuple(FileKind)

_STAGING = KINDS.index(FileKind.STAGING)
_FIRST_FOLDERS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a vacuum found below the root, without what is kept for its name and what is another table's.

    Attributes:
        num_files, total_bytes: all of it.
        num_directories: those that hold it.
        old_files: what was written before the cutoff, as OLD_FILES, in no order.
        inner_tables: folders that are other Delta tables.
    """

    num_files: int
    total_bytes: int
    num_directories: int
    old_files: pa.Table
    inner_tables: tuple[str, ...]


def listed_files(snapshot: Snapshot, *, cutoff_ms: int) -> Listing:
    """Every file of the table's below the root. One walk; links are not followed.

    Memory: the files from before the cutoff, and the folders.

    Raises:
        StorageError: a directory could not be listed; then nothing is known and nothing may be deleted.
    """
    folders = _Folders(partition_columns=snapshot.partition_columns, for_iceberg=may_be_icebergs(snapshot))
    found: list[tuple[pa.RecordBatch, Integers]] = []
    for batch in walk_batches(snapshot.store):
        of_rows = folders.look_at(batch)
        rows = np.flatnonzero((of_rows >= 0) & (batch.modified_ms < cutoff_ms))
        if len(rows):
            found.append((_old_files(batch, rows, folders.kinds[of_rows[rows]]), of_rows[rows]))
    within = folders.within_inner_tables()
    old = [
        batch.filter(pa.array(~within[of_rows])) if folders.inner_tables else batch
        for batch, of_rows in found
    ]
    counted = folders.num_files[: len(within)][~within]
    return Listing(
        num_files=int(counted.sum()),
        total_bytes=int(folders.total_bytes[: len(within)][~within].sum()),
        num_directories=int(np.count_nonzero(counted)),
        old_files=pa.Table.from_batches(old, schema=OLD_FILES),
        inner_tables=tuple(sorted(folders.inner_tables)),
    )


def _old_files(batch: ListedFiles, rows: Integers, kinds: npt.NDArray[np.int8]) -> pa.RecordBatch:
    columns = [batch.paths(rows), batch.size_bytes[rows], batch.modified_ms[rows], kinds]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=OLD_FILES)


class _Folders:
    """The folders whose files are looked at, numbered as they are met, with what was found in each.

    Attributes:
        kinds, num_files, total_bytes: one for each folder, and then some that mean nothing.
        inner_tables: folders that are other Delta tables, as far as was seen.
    """

    def __init__(self, *, partition_columns: Sequence[str], for_iceberg: bool) -> None:
        self._kind = partial(kind_in_folder, partition_columns=partition_columns, for_iceberg=for_iceberg)
        self._numbers: dict[str, int] = {}
        self.kinds = np.zeros(_FIRST_FOLDERS, dtype=np.int8)
        self.num_files = np.zeros(_FIRST_FOLDERS, dtype=np.int64)
        self.total_bytes = np.zeros(_FIRST_FOLDERS, dtype=np.int64)
        self.inner_tables: set[str] = set()

    def look_at(self, batch: ListedFiles) -> Integers:
        """Count a batch's files; the number of each one's folder, -1 where the file is kept for its name."""
        files = np.bincount(batch.folder_of, minlength=len(batch.folders)).tolist()
        # Where nothing lies, such as a log without any file, is nothing.
        numbers = np.array(
            [
                self._number(folder) if count else -1
                for folder, count in zip(batch.folders, files, strict=True)
            ],
            dtype=np.int64,
        )
        of_rows: Integers = numbers[batch.folder_of]
        hidden = np.zeros(len(batch), dtype=np.bool_)
        for begin in HIDDEN:
            hidden |= pc.starts_with(batch.names, begin).to_numpy(zero_copy_only=False)
        of_rows[hidden & (self.kinds[of_rows] != _STAGING)] = -1
        looked = of_rows >= 0
        np.add.at(self.num_files, of_rows[looked], 1)
        np.add.at(self.total_bytes, of_rows[looked], batch.size_bytes[looked])
        return of_rows

    def within_inner_tables(self) -> npt.NDArray[np.bool_]:
        """Which of the folders are another table's."""
        if not self.inner_tables:
            return np.zeros(len(self._numbers), dtype=np.bool_)
        found = [is_within(f"{folder}/", self.inner_tables) for folder in self._numbers]
        return np.array(found, dtype=np.bool_)

    def _number(self, folder: str) -> int:
        number = self._numbers.get(folder)
        if number is not None:
            return number
        kind = self._kind(folder)
        if kind is FileKind.KEPT:
            root = inner_root(f"{folder}/")
            if root is not None and root.split("/")[0] not in RESERVED_DIRECTORIES:
                self.inner_tables.add(root)
            return -1
        number = self._numbers[folder] = len(self._numbers)
        if number == len(self.kinds):
            self.kinds = np.resize(self.kinds, 2 * number)
            for name in ("num_files", "total_bytes"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(number, dtype=np.int64)]))
        self.kinds[number] = KINDS.index(kind)
        return number


def _is_job_directory(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name
