"""The files of one read, with the paths for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from delta_core.errors import InvalidUriError
from delta_core.schema.partition_values import HIVE_NULL, parse, serialize
from delta_core.schema.types import StructType
from delta_core.storage import LogStore, local_root, resolve_data_path
from delta_core.storage.data_access import TABLE_ONLY

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

PartitionTuple = tuple[str | None, ...]
"""One file's partition values in the order of the partition columns, as canonical strings; None is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Files below one root.

    Attributes:
        root: the table's root as a URI for Spark.
        paths: decoded paths relative to the root.
        partitions: the partition values of each path.
    """

    root: str
    paths: Sequence[str]
    partitions: Sequence[PartitionTuple] = field(repr=False)

    def select(self, indices: Sequence[int]) -> DataFiles:
        """The files at `indices`."""
        return DataFiles(
            root=self.root,
            paths=[self.paths[i] for i in indices],
            partitions=[self.partitions[i] for i in indices],
        )

    def __len__(self) -> int:
        return len(self.paths)


def data_files(
    store: LogStore, files: pa.Table, *, schema: StructType, partition_columns: Sequence[str]
) -> DataFiles:
    """The files that a scan selected (`path` and `partition_values` of LIVE_FILE_SCHEMA).

    Raises:
        PathEscapeError: a path or a symbolic link leads out of the table.
        CorruptLogError: a partition value is not of its column's type.
    """
    types = {field.name: field.data_type for field in schema if field.name in partition_columns}
    canonical: dict[tuple[str, str | None], str | None] = {}

    def string_of(column: str, raw: str | None) -> str | None:
        key = (column, raw)
        if key not in canonical:
            canonical[key] = serialize(parse(raw, types[column]), types[column])
        return canonical[key]

    paths = [resolve_data_path(path, root_uri=store.uri) for path in files.column("path").to_pylist()]
    TABLE_ONLY.require_links_inside_roots(store, paths)
    partitions: list[PartitionTuple]
    if partition_columns:
        partitions = []
        for values in files.column("partition_values").to_pylist():
            raw: Mapping[str, str | None] = dict(values or ())
            partitions.append(tuple(string_of(column, raw.get(column)) for column in partition_columns))
    else:
        partitions = [()] * len(paths)
    return DataFiles(root=spark_root(store), paths=paths, partitions=partitions)


def spark_root(store: LogStore) -> str:
    """The table's root as a URI for Spark.

    The scheme is explicit, because Spark's default file system may not be the local one.

    Raises:
        InvalidUriError: Spark cannot open this store.
    """
    root = local_root(store)
    if root is None:
        raise InvalidUriError(
            f"Spark cannot open the table root {store.uri}.",
            cause="Only tables on a file system that the Spark workers share are supported.",
            fix="Use a local or mounted path.",
        )
    return f"file://{root}"


def hive_base(files: DataFiles, partition_columns: Sequence[str]) -> str | None:
    """The base directory from which Spark infers every partition value correctly, if there is one.

    Only the log's values are valid. The directories agree with the log when each path is
    `<base>/<column>=<value>/.../<name>` with the same base, the columns in order, and exactly the log's
    values.
    """
    bases: set[str] = set()
    depth = len(partition_columns)
    for path, values in zip(files.paths, files.partitions, strict=True):
        parts = path.split("/")
        if len(parts) < depth + 1:
            return None
        directories = parts[-1 - depth : -1]
        for directory, column, value in zip(directories, partition_columns, values, strict=True):
            name, equals, escaped = directory.partition("=")
            if not equals or _decode_as_spark(name) != column:
                return None
            found = None if escaped == HIVE_NULL else _decode_as_spark(escaped)
            if found != value:
                return None
        base = "/".join(parts[: -1 - depth])
        if "=" in base:
            return None
        bases.add(base)
        if len(bases) > 1:
            return None
    base = bases.pop()
    return f"{files.root}/{base}" if base else files.root


def _decode_as_spark(escaped: str) -> str:
    # Spark decodes an escape as a character; the protocol's escapes are bytes of UTF-8.
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), escaped)
