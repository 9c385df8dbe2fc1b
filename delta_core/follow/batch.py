"""One batch of a stream: some files with rows, and the positions before and after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.follow.position import StreamPosition
from delta_core.follow.stream_rows import StreamRows


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFile:
    """The rows of one file that a stream reads.

    Attributes:
        version: the version that the rows belong to.
        index: the number of the file in the version, from 0.
        path: as in the log.
        values: the columns that are constant in the file, by physical name, serialised as partition values.
            A change feed has its own columns among them.
        rows: the rows of the file to read.
        stats: the statistics of a file with a deletion vector, if the log has them.
        size_bytes: the size of the file; None if the log does not have it.
    """

    version: int
    index: int
    path: str
    values: Mapping[str, str | None]
    rows: RowChoice = ALL_ROWS
    stats: str | None = None
    size_bytes: int | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The file from the result of `to_document`."""
        rows = document.get("rows")
        return cls(
            version=document["version"],
            index=document["index"],
            path=document["path"],
            values=document["values"],
            rows=ALL_ROWS if rows is None else RowChoice.from_document(rows),
            stats=document.get("stats"),
            size_bytes=document.get("size_bytes"),
        )

    def to_document(self) -> dict[str, Any]:
        """The file as values for JSON."""
        document: dict[str, Any] = {
            "version": self.version,
            "index": self.index,
            "path": self.path,
            "values": dict(self.values),
            "size_bytes": self.size_bytes,
        }
        if not self.rows.chooses_all:
            document |= {"rows": self.rows.to_document(), "stats": self.stats}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """The files of one batch. Rows are read on demand.

    Attributes:
        start: the position before the batch.
        position: the position after the batch, from which the next one is planned.
        files: the files, in the order in which the stream reads them.
    """

    start: StreamPosition
    position: StreamPosition
    files: tuple[StreamFile, ...]
    _rows: StreamRows = field(repr=False, compare=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._rows.schema

    @property
    def size_bytes(self) -> int:
        """The size of the files, as far as the log has it."""
        return sum(file.size_bytes or 0 for file in self.files)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, file by file, in bounded memory.

        Raises:
            MissingDataFileError: vacuum has deleted a file.
            InvalidTableError: a file cannot be read.
            PathEscapeError: a path leads out of the table and the allowed roots.
        """
        for file in self.files:
            yield from self._rows.read(file.path, file.values, file.rows)

    def to_table(self) -> pa.Table:
        """The rows as one table; raises as `to_batches`."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)
