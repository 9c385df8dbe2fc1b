"""Multiset difference of rows in both directions, by 128-bit hashes, in bounded memory.

A row is identified by two 64-bit hashes with random seeds for each comparison, so different rows do not
collide by chance or on purpose. Only hashes and places are stored, 24 bytes for each row. They are in memory
up to the limit, and otherwise in a temporary directory, partitioned by hash so that each partition fits.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.maintenance.verify.row_hash import hash_rows

DEFAULT_ROWS_IN_MEMORY: Final = 4_000_000
"""About 100 MB of hashes, and the same amount while they are sorted."""

_MOST_PARTS = 256
_ENTRY = np.dtype([("low", "<u8"), ("high", "<u8"), ("file", "<u4"), ("row", "<u4")])
Entries = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """The rows of one side without a match: their number, and the places (file, row) of the first few."""

    rows: int
    places: tuple[tuple[int, int], ...]


class RowMatcher:
    """Collects the rows of two sides and compares them; a context manager, since it may write files.

    Args:
        expected_rows: estimated rows of both sides together. It decides the number of partitions and does not
            affect the result.
        rows_in_memory: approximate number of rows that are compared at once.
    """

    def __init__(self, *, expected_rows: int, rows_in_memory: int = DEFAULT_ROWS_IN_MEMORY) -> None:
        self._parts = min(_MOST_PARTS, max(1, -(-expected_rows // rows_in_memory)))
        self._seeds = (secrets.randbits(64), secrets.randbits(64))
        self._collected: tuple[list[Entries], list[Entries]] = ([], [])
        self._folder = Path(tempfile.mkdtemp(prefix="deltaward-diff-")) if self._parts > 1 else None

    def __enter__(self) -> RowMatcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, side: int, columns: Sequence[pa.Array], *, rows: int, file: int, first_row: int) -> None:
        """Add rows to a side (0 or 1).

        Args:
            columns: the compared columns, in the same order and of the same types on both sides.
            rows: the number of rows.
            file: number of their file within the side.
            first_row: number of the first row within the file.
        """
        entries = np.empty(rows, dtype=_ENTRY)
        entries["low"] = hash_rows(columns, rows, seed=self._seeds[0])
        entries["high"] = hash_rows(columns, rows, seed=self._seeds[1])
        entries["file"] = file
        entries["row"] = np.arange(first_row, first_row + rows, dtype=np.uint32)
        if self._folder is None:
            self._collected[side].append(entries)
            return
        parts = entries["low"] % np.uint64(self._parts)
        for part in np.unique(parts).tolist():
            with (self._folder / f"{side}-{part}").open("ab") as file_of_part:
                entries[parts == part].tofile(file_of_part)

    def compare(
        self, *, left_out: tuple[frozenset[int], frozenset[int]], most_places: int
    ) -> tuple[Unmatched, Unmatched]:
        """The rows that each side has more often than the other.

        Args:
            left_out: for each side, numbers of files whose rows are ignored.
            most_places: the most places to return for each side, ordered by file and row.
        """
        counts = [0, 0]
        places: list[list[tuple[int, int]]] = [[], []]
        for first, second in self._partitions():
            pair = (_without(first, left_out[0]), _without(second, left_out[1]))
            for side in (0, 1):
                unmatched = _unmatched(pair[side], pair[1 - side])
                counts[side] += len(unmatched)
                places[side] = sorted([*places[side], *_first(unmatched, most_places)])[:most_places]
        return (
            Unmatched(rows=counts[0], places=tuple(places[0])),
            Unmatched(rows=counts[1], places=tuple(places[1])),
        )

    def _partitions(self) -> Iterator[tuple[Entries, Entries]]:
        if self._folder is None:
            yield _joined(self._collected[0]), _joined(self._collected[1])
            return
        for part in range(self._parts):
            paths = [self._folder / f"{side}-{part}" for side in (0, 1)]
            first, second = (
                np.fromfile(path, dtype=_ENTRY) if path.exists() else np.empty(0, dtype=_ENTRY)
                for path in paths
            )
            yield first, second


def _unmatched(ours: Entries, theirs: Entries) -> Entries:
    """For each distinct row, the surplus over the other side: the last occurrences in order."""
    if not len(ours) or not len(theirs):
        return ours
    low = np.concatenate([ours["low"], theirs["low"]])
    high = np.concatenate([ours["high"], theirs["high"]])
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    group = np.cumsum(begins) - 1
    mine = order < len(ours)
    matches = np.bincount(group[~mine], minlength=int(group[-1]) + 1)
    # The sort is stable and `ours` comes first, so the rank is the row's position among equal rows of `ours`.
    rank = np.arange(len(order)) - np.flatnonzero(begins)[group]
    surplus: Entries = ours[order[mine & (rank >= matches[group])]]
    return surplus


def _first(entries: Entries, count: int) -> list[tuple[int, int]]:
    places = (entries["file"].astype(np.uint64) << np.uint64(32)) | entries["row"].astype(np.uint64)
    if len(places) > count:
        places = np.partition(places, count)[:count]
    return [(place >> 32, place & 0xFFFFFFFF) for place in sorted(places.tolist())]


def _without(entries: Entries, files: frozenset[int]) -> Entries:
    if not files:
        return entries
    return entries[~np.isin(entries["file"], np.array(sorted(files), dtype=np.uint32))]


def _joined(pieces: list[Entries]) -> Entries:
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=_ENTRY)
