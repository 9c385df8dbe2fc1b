"""The files that a conversion adds, and the partition values in their directory names.

A file of unknown kind stops the conversion. If it were left out, its rows would be missing without an error,
and the next vacuum would delete it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import unquote_to_bytes

from delta_core.errors import CorruptLogError, InvalidTableError, SchemaError
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.maintenance.inner_tables import inner_root
from delta_core.maintenance.vacuum.listing import FileKind, classify
from delta_core.schema.partition_values import HIVE_NULL, is_shortened, parse, serialize
from delta_core.schema.types import STRING, StructField, StructType
from delta_core.storage.listed_files import ListedFiles, walk_batches
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.name_columns import names_in

PartitionStrategy = Literal["hive", "directory"]


def data_files(store: LogStore) -> list[ObjectInfo]:
    """The files that are not hidden, ordered by path. One listing of the directory; links are not followed.

    Files and directories whose names begin with `_` or `.` are hidden, except directories of a partition
    column (`_day=1`). A vacuum of the table keeps hidden files, too. The caller has checked that the log is
    empty; hidden files in the log directory are from a writer that stopped before version 0.

    Raises:
        InvalidTableError: the directory has no such file, or another Delta table.
    """
    files = []
    for batch in walk_batches(store):
        for link in batch.links:
            _require_no_log(f"{link}/", store)
        files += [info for info in _infos(batch) if _is_data_file(info.path, store)]
    if not files:
        raise InvalidTableError(
            f"The directory {store.uri} has no Parquet files to convert.",
            cause="The directory is empty or missing, or the names of all its files begin with '_' or '.'.",
            fix="Check the path. To create an empty table, use DeltaTable.create.",
        )
    return sorted(files, key=lambda info: info.path)


def require_partitioning_given(paths: Iterable[str]) -> None:
    """Refuse directories that look like partitions when no partition columns are given.

    The directory names contain the columns' names but not their types. A guessed type would be permanent.

    Raises:
        SchemaError: the message names the columns and the argument to pass.
    """
    for path in paths:
        names = [_decoded(part.partition("=")[0], path) for part in path.split("/")[:-1] if "=" in part]
        if names:
            example = ", ".join(f"({name!r}, pa.string())" for name in names)
            raise SchemaError(
                f"The directories of {path!r} look like the partition columns {', '.join(names)}.",
                cause="The directory names do not contain the column types, and partition_by was not given.",
                fix=f"Pass partition_by=pa.schema([{example}]) with the right types.",
            )


def partition_values(
    path: str, columns: Sequence[StructField], *, strategy: PartitionStrategy = "hive"
) -> Mapping[str, str | None]:
    """The partition values of a file, as the log stores them (PROTOCOL.md, "Partition Value Serialization").

    Percent-escapes are decoded once, as UTF-8. Times without a time zone are UTC.

    Args:
        path: the file's path below the root, in the store's spelling.
        columns: the partition columns, with their types.
        strategy: `hive` for directories `column=value` in the columns' order; `directory` for the values
            alone.

    Raises:
        SchemaError: the directories do not match the columns, or a value does not match its column's type.
    """
    directories = path.split("/")[:-1]
    if not columns:
        return {}  # Directories of an unpartitioned table have no meaning.
    if len(directories) != len(columns):
        raise _other_directories(path, columns, strategy)
    values: dict[str, str | None] = {}
    for column, directory in zip(columns, directories, strict=True):
        value = directory
        if strategy == "hive":
            name, equals, value = directory.partition("=")
            if is_shortened(directory):
                raise SchemaError(
                    f"The file {path!r} has no complete partition value for the column {column.name}.",
                    cause="The value was too long for a directory name, and ends in a digest instead.",
                    fix="Take the partition values from the log of the table that the file was written for.",
                )
            if not equals or _decoded(name, path).casefold() != column.name.casefold():
                raise _other_directories(path, columns, strategy)
        values[column.name] = _value(_decoded(value, path), column, path)
    return values


def partitioning(columns: Sequence[StructField]) -> StructType:
    """The partition columns as a schema, nullable, since a directory can stand for null."""
    return StructType(tuple(StructField(name=field.name, data_type=field.data_type) for field in columns))


def _infos(batch: ListedFiles) -> Iterator[ObjectInfo]:
    sizes, times = batch.size_bytes.tolist(), batch.modified_ms.tolist()
    for path, size_bytes, modified_ms in zip(names_in(batch.paths()), sizes, times, strict=True):
        yield ObjectInfo(path=path, size_bytes=size_bytes, modified_ms=modified_ms)


def _is_data_file(path: str, store: LogStore) -> bool:
    if path.startswith(f"{LOG_DIRECTORY}/."):
        return False
    _require_no_log(path, store)
    columns = [part.partition("=")[0] for part in path.split("/")[:-1] if "=" in part]
    return classify(path, partition_columns=columns) is FileKind.DATA


def _require_no_log(path: str, store: LogStore) -> None:
    """Refuse a file in a log. Raises InvalidTableError."""
    if path.startswith(f"{LOG_DIRECTORY}/"):
        inner: str | None = "."
    else:
        inner = inner_root(path)
    if inner is not None:
        raise InvalidTableError(
            f"The directory {inner!r} in {store.uri} is a Delta table.",
            cause="Some of its files may be removed from that table, and its vacuum would delete them.",
            fix="Move that table away, or convert another directory.",
        )


def _value(string: str, column: StructField, path: str) -> str | None:
    if string in (HIVE_NULL, ""):
        return None
    if column.data_type == STRING:
        return string
    try:
        return serialize(parse(string, column.data_type), column.data_type)
    except (CorruptLogError, SchemaError) as error:
        raise SchemaError(
            f"The file {path!r} has no valid partition value for the column {column.name}.",
            cause=f"The string {string!r} is not a valid {column.data_type}.",
            fix="Pass the type of the values in the directory names. The type string fits every value.",
        ) from error


def _decoded(escaped: str, path: str) -> str:
    # Writers escape some ASCII characters or, as in URIs, bytes of UTF-8: both decode the same way.
    try:
        return unquote_to_bytes(escaped).decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise SchemaError(
            f"The partition values of the file {path!r} cannot be decoded.",
            cause="The name of a directory is not valid UTF-8.",
            fix="Rename the directory.",
        ) from error


def _other_directories(path: str, columns: Sequence[StructField], strategy: str) -> SchemaError:
    if strategy == "hive":
        expected = "/".join(f"{column.name}=..." for column in columns)
    else:
        expected = "/".join(f"<{column.name}>" for column in columns)
    return SchemaError(
        f"The directories of the file {path!r} do not match the partition columns.",
        cause=f"The expected directories are {expected}.",
        fix="Pass all partition columns in the order of the directories, or move the file away.",
    )
