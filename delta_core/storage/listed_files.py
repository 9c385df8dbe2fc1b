"""Listings in columns: the result of `LogStore.walk` without a Python object for each file.

A store may have a method `walk_batches(path)` that yields `ListedFiles`, marked with `@in_place_of(walk)`.
For other stores the batches are built from the results of `walk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.numpy_columns import from_numpy
from delta_core.storage.log_store import LogStore, ObjectInfo, stand_in
from delta_core.storage.name_columns import name_column, names_in

BATCH_ROWS: Final = 1 << 13
"""The number of files in a batch."""

Integers = npt.NDArray[np.int64]

_NO_SEPARATOR: Final = name_column([""])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFiles:
    """Files of a listing, one per row.

    Attributes:
        folders: the folders of the files, relative to the root, which is `""`. A folder may occur twice, or
            have none of the files.
        folder_of: for each file, the index of its folder.
        names: the file names; see `name_columns`.
        size_bytes, modified_ms: as in `ObjectInfo`.
        links: paths of symbolic links that the listing has met and not followed, if the store reports them.
    """

    folders: tuple[str, ...]
    folder_of: Integers
    names: pa.Array
    size_bytes: Integers
    modified_ms: Integers
    links: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def paths(self, rows: npt.NDArray[Any] | None = None) -> pa.Array:
        """The paths of some of the files, or of all, as a column of names."""
        names, folder_of = self.names, self.folder_of
        if rows is not None:
            names, folder_of = names.take(from_numpy(rows)), folder_of[rows]
        before = name_column([f"{folder}/" if folder else "" for folder in self.folders])
        if len(before) == 1:
            return pc.binary_join_element_wise(before[0], names, _NO_SEPARATOR)
        return pc.binary_join_element_wise(before.take(from_numpy(folder_of)), names, _NO_SEPARATOR)


class ListedRows:
    """Collects the files of a listing until there are enough for a batch.

    A caller that lists a folder calls `enter`, then appends one value per file to each of the three lists.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.size_bytes: list[int] = []
        self.modified_ms: list[int] = []
        self.links: list[str] = []
        self._folders: list[str] = []
        self._begins: list[int] = []

    def enter(self, folder: str) -> None:
        """Set the folder of the files that are appended from now on."""
        self._folders.append(folder)
        self._begins.append(len(self.names))

    def add(self, path: str, size_bytes: int, modified_ms: int) -> None:
        """Append a file by its path."""
        folder, _, name = path.rpartition("/")
        if not self._folders or self._folders[-1] != folder:
            self.enter(folder)
        self.names.append(name)
        self.size_bytes.append(size_bytes)
        self.modified_ms.append(modified_ms)

    @property
    def are_enough(self) -> bool:
        """Whether there are enough files to `take` a batch."""
        return len(self.names) >= BATCH_ROWS

    def take(self) -> ListedFiles:
        """The collected files. Then collecting starts again, in the same folder."""
        begins = np.array([*self._begins, len(self.names)], dtype=np.int64)
        batch = ListedFiles(
            folders=tuple(self._folders),
            folder_of=np.repeat(np.arange(len(self._folders), dtype=np.int64), np.diff(begins)),
            names=name_column(self.names),
            size_bytes=np.array(self.size_bytes, dtype=np.int64),
            modified_ms=np.array(self.modified_ms, dtype=np.int64),
            links=tuple(self.links),
        )
        for column in (self.names, self.size_bytes, self.modified_ms, self.links):
            column.clear()
        self._folders, self._begins = self._folders[-1:], [0] if self._folders else []
        return batch


def walk_batches(store: LogStore, path: str = "") -> Iterator[ListedFiles]:
    """Every object below a directory, as `LogStore.walk` lists them, in batches.

    Raises:
        StorageError: a directory could not be listed.
    """
    own = stand_in(store, "walk_batches")
    batches: Iterator[ListedFiles] = _of_infos(store.walk(path)) if own is None else own(path)
    return batches


def listed_sizes(store: LogStore) -> dict[str, int]:
    """The size in bytes of every object below the root, by its path."""
    sizes: dict[str, int] = {}
    for batch in walk_batches(store):
        sizes.update(zip(names_in(batch.paths()), batch.size_bytes.tolist(), strict=True))
    return sizes


def _of_infos(infos: Iterable[ObjectInfo]) -> Iterator[ListedFiles]:
    rows = ListedRows()
    for info in infos:
        rows.add(info.path, info.size_bytes, info.modified_ms)
        if rows.are_enough:
            yield rows.take()
    if rows.names:
        yield rows.take()
