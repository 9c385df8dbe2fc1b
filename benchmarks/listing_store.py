"""A store that lists as many files as wanted beside those of a local table; none of them is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from delta_core.storage import LocalLogStore
from delta_core.storage.listed_files import BATCH_ROWS, ListedFiles
from delta_core.storage.log_store import ObjectInfo, in_place_of
from delta_core.storage.name_columns import name_column

FOLDERS = 1000
OLD_OF = 100
"""One file of so many is from long ago."""


class ListingStore(LocalLogStore):
    """Lists orphans in a thousand folders, the others of them written a moment ago.

    Args:
        root: of the table.
        files: how many are listed.
        young_ms: the time of those that are not old.
        at_batch: called before each batch.
    """

    def __init__(
        self, root: Path, *, files: int, young_ms: int, at_batch: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(root)
        self._files = files
        self._young_ms = young_ms
        self._at_batch = at_batch

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """The files one by one, as stores list that know no columns."""
        if path:
            yield from super().walk(path)
            return
        for number in range(self._files):
            yield ObjectInfo(
                path=f"{_folder(number // BATCH_ROWS)}/{_name(number)}",
                size_bytes=1,
                modified_ms=0 if number % OLD_OF == 0 else self._young_ms,
            )

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """The same in columns."""
        if path:
            yield from super().walk_batches(path)
            return
        numbers = iter(range(self._files))
        while batch := list(islice(numbers, BATCH_ROWS)):
            self._at_batch()
            yield ListedFiles(
                folders=(_folder(batch[0] // BATCH_ROWS),),
                folder_of=np.zeros(len(batch), dtype=np.int64),
                names=name_column([_name(number) for number in batch]),
                size_bytes=np.ones(len(batch), dtype=np.int64),
                modified_ms=np.where(np.array(batch) % OLD_OF == 0, 0, self._young_ms),
            )


def _folder(number: int) -> str:
    return f"day={number % FOLDERS:03}"


def _name(number: int) -> str:
    return f"part-{number:08}-0f3c2b6e-1111-4222-8333-{number:012}-c000.snappy.parquet"
