"""The files of one read, as the log has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.file_update import records_in_statistics
from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.storage import LogStore
from delta_core.storage.data_access import DataAccess, ObjectLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A file to read, as the log has it.

    Attributes:
        path: as in the log.
        values: the constants of the file, serialised as partition values, by physical name.
        rows: the rows to read.
        num_rows: the number of rows of the file according to the log; None if unknown.
        size_bytes: the size of the file according to the log; None if unknown.
    """

    path: str
    values: Mapping[str, str | None]
    rows: RowChoice = ALL_ROWS
    num_rows: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFile:
    """A file to read, and where it is."""

    file: TableFile
    place: ObjectLocation


def table_files(files: pa.Table, added: Mapping[str, str] = MappingProxyType({})) -> Iterator[TableFile]:
    """The files that a scan selected.

    Args:
        files: columns of LIVE_FILE_SCHEMA: `path` and `partition_values`; where files have deletion vectors
            `deletion_vector` and, if known, `stats`; and the columns of `added`.
        added: additional constants of each file, each with its column of numbers in `files`.
    """
    nothing = [None] * files.num_rows

    def column(name: str) -> Sequence[Any]:
        values: Sequence[Any] = files.column(name).to_pylist() if name in files.column_names else nothing
        return values

    numbers = [(name, column(source)) for name, source in added.items()]
    listed = zip(
        column("path"),
        column("partition_values"),
        column("deletion_vector"),
        column("size_bytes"),
        strict=True,
    )
    # Statistics are long, and only those of files with a deletion vector are needed.
    stats = files.column("stats") if "stats" in files.column_names else None
    for index, (path, pairs, vector, size_bytes) in enumerate(listed):
        values = dict(pairs or ())
        for name, of_files in numbers:
            values[name] = None if of_files[index] is None else str(of_files[index])
        if vector is None:
            yield TableFile(path=path, values=values, size_bytes=size_bytes)
            continue
        yield TableFile(
            path=path,
            values=values,
            rows=RowChoice.left_by(DeletionVectorDescriptor(**vector)),
            num_rows=None if stats is None else records_in_statistics(stats[index].as_py()),
            size_bytes=size_bytes,
        )


def located_files(files: Iterable[TableFile], *, store: LogStore, access: DataAccess) -> list[LocatedFile]:
    """The files with their locations, which are checked before the first file is opened.

    Args:
        files: the files.
        store: the table's store.
        access: the access to the objects that the table's log lists.

    Raises:
        PathEscapeError: a path or a symbolic link leads out of the table and the allowed roots.
    """
    found = [LocatedFile(file=file, place=access.locate(file.path, store=store)) for file in files]
    paths: dict[LogStore, list[str]] = {}
    for item in found:
        paths.setdefault(item.place.store, []).append(item.place.path)
    for root, of_root in paths.items():
        access.require_links_inside_roots(root, of_root)
    return found
