"""Which rows of a file are wanted, and where in the file they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import InvalidTableError


def selected_rows(
    metadata: pq.FileMetaData,
    row_groups: Sequence[int],
    *,
    deleted: Positions | None,
    only: Positions | None,
    path: str,
) -> npt.NDArray[np.bool_] | None:
    """Which of the rows of some row groups, one after the other, are wanted; None when all are.

    Raises:
        InvalidTableError: a position is beyond the file's rows.
    """
    if deleted is None and only is None:
        return None
    sizes = _row_group_sizes(metadata)
    total = sum(sizes)
    for positions in (deleted, only):
        if positions is not None and len(positions) and int(positions[-1]) >= total:
            raise InvalidTableError(
                f"The deletion vector of the data file {path} names row {int(positions[-1])}",
                cause=f"The file has {total} rows",
                fix="Restore the file or the vector from a backup, or restore a version before them",
            )
    kept = np.full(total, only is None)
    if only is not None:
        kept[only] = True
    if deleted is not None:
        kept[deleted] = False
    starts = np.concatenate(([0], np.cumsum(sizes)))
    parts = [kept[starts[group] : starts[group + 1]] for group in row_groups]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def slice_of(kept: npt.NDArray[np.bool_] | None, start: int, count: int) -> pa.Array | None:
    """The part of a mask for some rows, as a filter; None when it keeps them all."""
    if kept is None or kept[start : start + count].all():
        return None
    return pa.array(kept[start : start + count])


def runs_of_row_groups(
    metadata: pq.FileMetaData, row_groups: Sequence[int], *, max_rows: int
) -> Iterator[list[int]]:
    """The row groups in their order, those together that have at most `max_rows` rows together."""
    run: list[int] = []
    rows = 0
    for group in row_groups:
        size = metadata.row_group(group).num_rows
        if run and rows + size > max_rows:
            yield run
            run, rows = [], 0
        run.append(group)
        rows += size
    if run:
        yield run


class RowPositions:
    """From the rows of some row groups, one after the other, to their positions in the file.

    Positions count every row of the file, also those that a deletion vector names and those of row groups
    that are not read.
    """

    def __init__(self, metadata: pq.FileMetaData, row_groups: Sequence[int]) -> None:
        sizes = np.array(_row_group_sizes(metadata), np.int64)
        chosen = np.array(row_groups, np.intp)
        starts_in_file = np.concatenate(([0], np.cumsum(sizes)))[chosen]
        self._ends = np.cumsum(sizes[chosen])
        self._shifts = starts_in_file - (self._ends - sizes[chosen])

    def slice(self, start: int, count: int) -> Positions:
        """The positions of `count` rows from the `start`-th of the row groups on."""
        rows: Positions = np.arange(start, start + count, dtype=np.int64)
        rows += self._shifts[np.searchsorted(self._ends, rows, side="right")]
        return rows


def _row_group_sizes(metadata: pq.FileMetaData) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
