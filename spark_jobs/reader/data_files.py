"""The files of one scan by Spark's Parquet reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from delta_core.schema.partition_values import HIVE_NULL

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

PartitionTuple = tuple[str | None, ...]
"""One file's partition values in the order of the partition columns, as canonical strings; None is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Files below one root.

    Attributes:
        root: the root as a URI for Spark.
        paths: decoded paths relative to the root.
        partitions: the partition values of each path.
    """

    root: str
    paths: Sequence[str]
    partitions: Sequence[PartitionTuple] = field(repr=False)

    def __len__(self) -> int:
        return len(self.paths)


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
