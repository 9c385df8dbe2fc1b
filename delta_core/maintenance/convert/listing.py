"""Which files a conversion takes, and the partition that each one's directories spell.

A file of which nobody knows what it is stands in the way: left out it would be lost to the table in silence,
and to the next vacuum for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from urllib.parse import unquote_to_bytes

from delta_core.errors import CorruptLogError, InvalidTableError, SchemaError
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.maintenance.inner_tables import inner_root
from delta_core.maintenance.vacuum.listing import FileKind, classify
from delta_core.schema.partition_values import HIVE_NULL, is_shortened, parse, serialize
from delta_core.schema.types import STRING, StructField, StructType
from delta_core.storage.log_store import LogStore, ObjectInfo

PartitionStrategy = Literal["hive", "directory"]


def data_files(store: LogStore) -> list[ObjectInfo]:
    """The files that are no hidden ones, by name. One walk through the directory; links are not followed.

    Names that begin with `_` or `.` are hidden, files and directories alike, unless a directory is one of a
    partition column (`_day=1`): what a vacuum of the table will keep. The caller has seen that the log is
    empty; what is hidden in it was left by a writer that died before it had made version 0.

    Raises:
        InvalidTableError: there is none, or another Delta table lies within.
    """
    found = []
    for info in store.walk():
        *directories, _ = info.path.split("/")
        if info.path.startswith(f"{LOG_DIRECTORY}/."):
            continue
        if LOG_DIRECTORY in directories:
            where = inner_root(info.path) or "."
            raise InvalidTableError(
                f"The directory {where!r} in {store.uri} is a Delta table.",
                cause="Its files may be removed ones, and its vacuum would delete some of them.",
                fix="Move it away, or convert another directory.",
            )
        columns = [directory.partition("=")[0] for directory in directories if "=" in directory]
        if classify(info.path, partition_columns=columns) is FileKind.DATA:
            found.append(info)
    if not found:
        raise InvalidTableError(
            f"There is no Parquet file to convert in {store.uri}.",
            cause="The directory is empty or missing, or has only files with names that begin with _ or '.'.",
            fix="Check the path; an empty table is created with DeltaTable.create.",
        )
    return sorted(found, key=lambda info: info.path)


def require_partitioning_given(paths: Iterable[str]) -> None:
    """Refuse directories that look like partitions of which nothing was said.

    Their names tell the columns and not the types, and a guess would be part of the table for good.

    Raises:
        SchemaError: names the columns, and what to pass.
    """
    for path in paths:
        names = [_decoded(part.partition("=")[0], path) for part in path.split("/")[:-1] if "=" in part]
        if names:
            example = ", ".join(f"({name!r}, pa.string())" for name in names)
            raise SchemaError(
                f"The directories of {path!r} look like the partition columns {', '.join(names)}.",
                cause="Their types cannot be told from the names, and none were given.",
                fix=f"Pass partition_by=pa.schema([{example}]) with the right types.",
            )


def partition_values(
    path: str, columns: Sequence[StructField], *, strategy: PartitionStrategy = "hive"
) -> Mapping[str, str | None]:
    """The partition values of a file, as the log holds them (PROTOCOL.md, "Partition Value Serialization").

    Percent-escapes are decoded once, as UTF-8. Times without a zone are taken as UTC.

    Args:
        path: below the root, as the store has it.
        columns: the partition columns, with their types.
        strategy: `hive` for directories `column=value` in the columns' order; `directory` for the values
            alone.

    Raises:
        SchemaError: the directories are not those of the columns, or a value is not of its column's type.
    """
    directories = path.split("/")[:-1]
    if not columns:
        return {}  # Directories that are no partitions only keep files apart.
    if len(directories) != len(columns):
        raise _other_directories(path, columns, strategy)
    values: dict[str, str | None] = {}
    for column, directory in zip(columns, directories, strict=True):
        text = directory
        if strategy == "hive":
            name, equals, text = directory.partition("=")
            if is_shortened(directory):
                raise SchemaError(
                    f"The file {path!r} has no whole partition value of {column.name}.",
                    cause="The name of its directory ends in a digest: the value was too long for a name.",
                    fix="Take the values from the log of the table that the file was written for.",
                )
            if not equals or _decoded(name, path).casefold() != column.name.casefold():
                raise _other_directories(path, columns, strategy)
        values[column.name] = _value(_decoded(text, path), column, path)
    return values


def partitioning(columns: Sequence[StructField]) -> StructType:
    """The partition columns as a schema, nullable, since a directory can stand for null."""
    return StructType(tuple(StructField(name=field.name, data_type=field.data_type) for field in columns))


def _value(text: str, column: StructField, path: str) -> str | None:
    if text in (HIVE_NULL, ""):
        return None
    if column.data_type == STRING:
        return text
    try:
        return serialize(parse(text, column.data_type), column.data_type)
    except (CorruptLogError, SchemaError) as error:
        raise SchemaError(
            f"The file {path!r} has no partition value of {column.name}.",
            cause=f"{text!r} is no {column.data_type}.",
            fix="Pass the type that the directories have; text fits all of them.",
        ) from error


def _decoded(text: str, path: str) -> str:
    # Writers escape some ASCII characters or, as in URIs, bytes of UTF-8: both decode the same way.
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise SchemaError(
            f"The partition of the file {path!r} cannot be read.",
            cause="A name of a directory is not UTF-8.",
            fix="Rename the directory.",
        ) from error


def _other_directories(path: str, columns: Sequence[StructField], strategy: str) -> SchemaError:
    if strategy == "hive":
        wanted = "/".join(f"{column.name}=..." for column in columns)
    else:
        wanted = "/".join(f"<{column.name}>" for column in columns)
    return SchemaError(
        f"The file {path!r} is not in a directory of the partition columns.",
        cause=f"Expected is {wanted}.",
        fix="Pass all partition columns in the order of the directories, or move the file away.",
    )
