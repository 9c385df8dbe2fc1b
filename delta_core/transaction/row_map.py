"""Row maps: where a rewrite has put the rows of its old files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from delta_core.actions import AddFile, RemoveFile
from delta_core.deletion_vectors.roaring import Positions
from delta_core.storage.uri import canonical_log_path


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFile:
    """A file that a rewrite has replaced, and the rows that it read.

    Attributes:
        remove: the rewrite's own action for the file.
        left_out: the positions of the rows that were deleted when the rewrite read the file.
        num_records: the number of rows of the file, including deleted rows.
    """

    remove: RemoveFile
    left_out: Positions
    num_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRows:
    """Rows of an old file that the rewrite has copied, by their positions in the old file."""

    file: OldFile
    positions: Positions


class RowMap(Protocol):
    """Where a rewrite has put the rows of its old files."""

    def new_positions(
        self, rows: Sequence[OldRows], new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        """The positions of rows in new files, by the path of the new file as in the log.

        It is called once for each winner, with rows that no earlier call had.

        Args:
            rows: rows of old files.
            new_files: the rewrite's actions for its new files.

        Returns:
            None when the rows are not all found, so that the conflict stands.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """Rows of the old files of one partition, and the new files that they can be in."""

    partition_values: Mapping[str, str | None]
    rows: Sequence[OldRows]
    new_files: Sequence[AddFile]


def by_partition(rows: Sequence[OldRows], new_files: Sequence[AddFile]) -> Iterator[PartitionRows]:
    """The rows by their partition, for a row map that looks for them in new files."""
    groups: dict[tuple[tuple[str, str | None], ...], list[OldRows]] = {}
    for old in rows:
        values = old.file.remove.partition_values or {}
        groups.setdefault(tuple(sorted(values.items())), []).append(old)
    for key, group in groups.items():
        values = dict(key)
        same = [add for add in new_files if add.partition_values == values]
        yield PartitionRows(partition_values=values, rows=group, new_files=same)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRows:
    """Where the live rows of one old file are: in one new file, one after the other.

    Attributes:
        path: the old file, as in the log.
        target: the new file, as in the log.
        first_row: the position of the first row in the new file.
        count: the number of rows.
    """

    path: str
    target: str
    first_row: int
    count: int


class RowsInOrder:
    """The row map of a rewrite that keeps the order of the rows of each file, such as a compaction."""

    def __init__(self, moved: Iterable[MovedRows]) -> None:
        """Take the place of each old file's rows."""
        self._moved = {canonical_log_path(rows.path): rows for rows in moved}

    def new_positions(
        self, rows: Sequence[OldRows], new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        """See `RowMap`. Makes no request."""
        found: dict[str, list[Positions]] = {}
        for old in rows:
            file = old.file
            moved = self._moved.get(canonical_log_path(file.remove.path))
            if moved is None or moved.count != file.num_records - len(file.left_out):
                return None
            ordinals: Positions = old.positions - np.searchsorted(file.left_out, old.positions)
            found.setdefault(moved.target, []).append(moved.first_row + ordinals)
        return {path: np.concatenate(parts) for path, parts in found.items()}
