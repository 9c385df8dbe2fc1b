"""The files of a vacuum plan: a sequence of `VacuumFile`, stored as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.numpy_columns import from_numpy
from delta_core.storage.name_columns import NAME, name_column, names_in

COLUMNS: Final = pa.schema(
    [
        ("path", NAME),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("age_hours", pa.float64()),
        ("reason", pa.dictionary(pa.int32(), pa.string())),
    ]
)

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumFile:
    """One file that may be deleted.

    Attributes:
        path: store path: decoded, relative to the table root.
        age_hours: hours since the store's modification time.
        reason: a description of why the file may be deleted.
    """

    path: str
    size_bytes: int
    modified_ms: int
    age_hours: float
    reason: str


_FIELDS: Final = tuple(field.name for field in fields(VacuumFile))


class VacuumFiles(Sequence[VacuumFile]):
    """The files that may be deleted, each object created on access. Equal to a tuple of the same files."""

    def __init__(self, table: pa.Table) -> None:
        """Create the sequence from columns.

        Args:
            table: a table with the schema COLUMNS, without nulls.
        """
        self._table = table.combine_chunks()

    @classmethod
    def of(cls, files: Iterable[VacuumFile]) -> Self:
        """A sequence of the files of an iterable.

        Raises:
            TypeError, ValueError, OverflowError: a field has a value of a wrong type.
        """
        if isinstance(files, cls):
            return files
        rows = list(files)
        return cls._from_values({name: [getattr(row, name) for row in rows] for name in _FIELDS})

    @classmethod
    def from_json(cls, documents: Sequence[Mapping[str, Any]]) -> Self:
        """The files that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: a document is not such a file.
        """
        expected = set(_FIELDS)
        for document in documents:
            if document.keys() != expected:
                raise TypeError(f"A file has the fields {sorted(document)} instead of {sorted(expected)}")
        return cls._from_values({name: [document[name] for document in documents] for name in _FIELDS})

    @classmethod
    def _from_values(cls, values: Mapping[str, list[Any]]) -> Self:
        # Arrow would truncate fractions.
        if not all(
            isinstance(value, int) for name in ("size_bytes", "modified_ms") for value in values[name]
        ):
            raise TypeError("The size or the modification time of a file is not an integer")
        columns = [
            name_column(values["path"]),
            *(pa.array(values[item.name], item.type) for item in list(COLUMNS)[1:-1]),
            pa.array(values["reason"], pa.string()).dictionary_encode(),
        ]
        if any(column.null_count for column in columns):
            raise TypeError("A field of a file is null")
        return cls(pa.Table.from_arrays(columns, schema=COLUMNS))

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    @overload
    def __getitem__(self, index: int) -> VacuumFile: ...

    @overload
    def __getitem__(self, index: slice) -> VacuumFiles: ...

    def __getitem__(self, index: int | slice) -> VacuumFile | VacuumFiles:
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            if step == 1:
                return VacuumFiles(self._table.slice(first, max(0, end - first)))
            return VacuumFiles(self._table.take(from_numpy(np.arange(first, end, step, dtype=np.int64))))
        position = range(len(self))[index]
        return next(iter(_rows(self._table.slice(position, 1))))

    def __iter__(self) -> Iterator[VacuumFile]:
        for first in range(0, len(self), _ROWS_AT_ONCE):
            yield from _rows(self._table.slice(first, _ROWS_AT_ONCE))

    def __add__(self, other: Sequence[VacuumFile]) -> tuple[VacuumFile, ...]:
        return (*self, *other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VacuumFiles):
            return len(self) == len(other) and all(
                _plain(self._table.column(name)).equals(_plain(other._table.column(name))) for name in _FIELDS
            )
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} files, {self.total_bytes} bytes>"

    @property
    def total_bytes(self) -> int:
        """The total size of the files."""
        return int(pc.sum(self._table.column("size_bytes"), min_count=0).as_py())

    @property
    def paths(self) -> list[str]:
        """The paths of the files, as a list."""
        return list(self.each_path())

    def each_path(self) -> Iterator[str]:
        """The paths of the files, without a list of all paths in memory."""
        for first in range(0, len(self), _ROWS_AT_ONCE):
            yield from names_in(self._table.column("path").slice(first, _ROWS_AT_ONCE))

    def column(self, name: str) -> pa.Array:
        """A column, named as in COLUMNS, in one chunk."""
        column = self._table.column(name)
        return (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [_empty(name)])
        )

    def to_json(self) -> list[dict[str, Any]]:
        """The files as JSON objects."""
        return [dict(zip(_FIELDS, row, strict=True)) for row in zip(*_values(self._table), strict=True)]


def _rows(table: pa.Table) -> Iterator[VacuumFile]:
    for path, size_bytes, modified_ms, age_hours, reason in zip(*_values(table), strict=True):
        yield VacuumFile(
            path=path, size_bytes=size_bytes, modified_ms=modified_ms, age_hours=age_hours, reason=reason
        )


def _values(table: pa.Table) -> list[list[Any]]:
    return [names_in(table.column("path")), *(table.column(name).to_pylist() for name in _FIELDS[1:])]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Equal strings may have different dictionary indices.
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _empty(name: str) -> pa.Array:
    return pa.nulls(0, COLUMNS.field(name).type)
