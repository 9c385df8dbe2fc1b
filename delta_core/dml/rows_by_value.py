"""Finds rows that a rewrite has sorted: by their values.

Without row ids a row is nothing but its values. Rows with equal values are interchangeable, so of several
such rows any may be deleted. No map is kept for that: without a deletion meanwhile it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.deletion_vectors.file_update import count_records, physical_records
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.scan.record_batches import FileReader
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.transaction.row_map import OldRows, PartitionRows, by_partition
from delta_core.transaction.row_resolver import NO_POSITIONS

MOST_ROWS: Final = 1_000_000
"""The limit for the deleted rows of a partition and one winner, because their values are in memory."""

Codes = npt.NDArray[np.int64]
_BITS: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.float16(): pa.int16(),
    pa.float32(): pa.int32(),
    pa.float64(): pa.int64(),
}


class RowsByValue:
    """The row map of a rewrite in a table without row tracking.

    Requests: the deleted rows are read from the old files, and all rows from the new files of their
    partitions. Memory: the deleted rows of one partition, the rows of the new files that are equal to them,
    and one batch.
    """

    def __init__(self, snapshot: Snapshot, *, access: DataAccess) -> None:
        """Prepare the map of a rewrite of this version."""
        self._store = snapshot.store
        self._access = access
        partitions = {name.casefold() for name in snapshot.partition_columns}
        self._reader = FileReader(
            schema=snapshot.schema,
            columns=[field.name for field in snapshot.schema if field.name.casefold() not in partitions],
            partition_columns=snapshot.partition_columns,
            mapping=snapshot.column_mapping,
            access=access,
        )
        self._taken: dict[str, Positions] = {}

    def new_positions(
        self, rows: Sequence[OldRows], new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        """See `RowMap`. None also when more than MOST_ROWS rows of a partition are deleted."""
        found: dict[str, Positions] = {}
        for new in new_files:
            if new.deletion_vector is not None:
                count = physical_records(new)
                if count is None:
                    count = count_records(self._store, new, access=self._access)
                gone = read_deletion_vector(
                    self._store, new.deletion_vector, num_rows=count, access=self._access
                )
                self._taken[new.path] = np.union1d(self._taken.get(new.path, NO_POSITIONS), gone)
        for group in by_partition(rows, new_files):
            if sum(len(old.positions) for old in group.rows) > MOST_ROWS:
                return None
            chosen = self._of_partition(group)
            if chosen is None:
                return None
            found |= chosen
        for path, positions in found.items():
            self._taken[path] = np.union1d(self._taken.get(path, NO_POSITIONS), positions)
        return found

    def _of_partition(self, group: PartitionRows) -> dict[str, Positions] | None:
        wanted = pa.Table.from_batches(
            (
                batch
                for old in group.rows
                for batch in self._rows(old.file.remove.path, group.partition_values, old.positions)
            ),
            self._reader.arrow_schema,
        )
        paths: list[str] = []
        places: list[Positions] = []
        tables: list[pa.Table] = []
        for new in group.new_files:
            positions, rows = self._candidates(new.path, group.partition_values, wanted)
            paths += [new.path] * len(positions)
            places.append(positions)
            tables.append(rows)
        candidates = pa.concat_tables([wanted.slice(0, 0), *tables])
        codes = _codes(pa.concat_tables([wanted, candidates]))
        chosen = _chosen(codes[: wanted.num_rows], codes[wanted.num_rows :])
        if chosen is None:
            return None
        at = np.concatenate([NO_POSITIONS, *places])
        found: dict[str, list[int]] = {}
        for index in chosen.tolist():
            found.setdefault(paths[index], []).append(int(at[index]))
        return {path: np.sort(np.array(positions, np.int64)) for path, positions in found.items()}

    def _rows(
        self, path: str, partition_values: Mapping[str, str | None], only: Positions | None = None
    ) -> Iterator[pa.RecordBatch]:
        place = self._access.locate(path, store=self._store)
        return self._reader.read(
            place.store, place.path, partition_values, only=None if only is None else lambda _: only
        )

    def _candidates(
        self, path: str, partition_values: Mapping[str, str | None], wanted: pa.Table
    ) -> tuple[Positions, pa.Table]:
        """The rows of a new file that can be equal to a wanted row, and their positions."""
        taken = self._taken.get(path, NO_POSITIONS)
        known = {
            index: _flat(wanted.column(index)).unique()
            for index, field in enumerate(wanted.schema)
            if not (pa.types.is_nested(field.type) or pa.types.is_null(field.type))
        }
        first, places, parts = 0, [NO_POSITIONS], [wanted.slice(0, 0)]
        for batch in self._rows(path, partition_values):
            positions: Positions = np.arange(first, first + batch.num_rows, dtype=np.int64)
            keep = np.isin(positions, taken, assume_unique=True, invert=True)
            for index, values in known.items():
                if not keep.any():
                    break
                keep &= pc.is_in(_flat(batch.column(index)), value_set=values).to_numpy(zero_copy_only=False)
            places.append(positions[keep])
            parts.append(pa.Table.from_batches([batch.filter(pa.array(keep))], wanted.schema))
            first += batch.num_rows
        return np.concatenate(places), pa.concat_tables(parts)


def _chosen(wanted: Codes, candidates: Codes) -> npt.NDArray[np.int64] | None:
    """Indexes of as many candidates with each code as are wanted; None when there are too few."""
    size = int(max(wanted.max(initial=-1), candidates.max(initial=-1))) + 1
    needed = np.bincount(wanted, minlength=size)
    if (np.bincount(candidates, minlength=size) < needed).any():
        return None
    order = np.argsort(candidates, kind="stable")
    ordered = candidates[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    return order[rank < needed[ordered]]


def _codes(rows: pa.Table) -> Codes:
    """A number for each row, equal for rows with equal values only."""
    codes: Codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        values = _flat(column)
        if pa.types.is_null(values.type):
            continue
        if pa.types.is_nested(values.type):
            values = pa.chunked_array([pa.array([repr(value) for value in values.to_pylist()], pa.string())])
        encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
        indices = encoded.indices if isinstance(encoded, pa.DictionaryArray) else encoded.chunk(0).indices
        own = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        combined = codes * (own.max(initial=0) + 1) + own
        codes = np.unique(combined, return_inverse=True)[1].astype(np.int64, copy=False)
    return codes


def _flat(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values, with floating-point numbers as their bits: NaN equals itself, and the zeros differ."""
    bits = _BITS.get(values.type)
    if bits is None:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
    return values.view(bits)
