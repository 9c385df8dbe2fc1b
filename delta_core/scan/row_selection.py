"""Selection of rows of a file, and their positions in the file."""

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
    """A mask of the selected rows of some row groups in sequence; None when all are selected.

    Raises:
        InvalidTableError: a position is beyond the last row of the file.
    """
    if deleted is None and only is None:
        return None
    sizes = _row_group_sizes(metadata)
    total = sum(sizes)
    for positions in (deleted, only):
        if positions is not None and len(positions) and int(positions[-1]) >= total:
            raise InvalidTableError(
                f"The deletion vector of the data file {path} refers to row {int(positions[-1])}.",
                cause=f"The file has {total} rows.",
                fix="Restore the file or the deletion vector from a backup, or restore an earlier version.",
            )
    selected = np.full(total, only is None)
    if only is not None:
        selected[only] = True
    if deleted is not None:
        selected[deleted] = False
    starts = np.concatenate(([0], np.cumsum(sizes)))
    parts = [selected[starts[group] : starts[group + 1]] for group in row_groups]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def slice_of(selected: npt.NDArray[np.bool_] | None, start: int, count: int) -> pa.Array | None:
    """The part of a mask for `count` rows, as a filter; None when it selects all of them."""
    if selected is None or selected[start : start + count].all():
        return None
    return pa.array(selected[start : start + count])


def runs_of_row_groups(
    metadata: pq.FileMetaData, row_groups: Sequence[int], *, max_rows: int
) -> Iterator[list[int]]:
    """The row groups in order, grouped so that each group has at most `max_rows` rows where possible."""
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
    """Maps the rows of some row groups in sequence to their positions in the file.

    Positions count every row of the file, including rows deleted by a deletion vector and rows of row groups
    that are not read.
    """

    def __init__(self, metadata: pq.FileMetaData, row_groups: Sequence[int]) -> None:
        sizes = np.array(_row_group_sizes(metadata), np.int64)
        chosen = np.array(row_groups, np.intp)
        starts_in_file = np.concatenate(([0], np.cumsum(sizes)))[chosen]
        self._ends = np.cumsum(sizes[chosen])
        self._shifts = starts_in_file - (self._ends - sizes[chosen])

    def slice(self, start: int, count: int) -> Positions:
        """The positions of `count` rows, starting with row `start` of the row groups."""
        rows: Positions = np.arange(start, start + count, dtype=np.int64)
        rows += self._shifts[np.searchsorted(self._ends, rows, side="right")]
        return rows


def _row_group_sizes(metadata: pq.FileMetaData) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
