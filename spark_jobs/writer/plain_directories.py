"""Partition directories of plain ASCII names, where they cannot be renamed after the job.

Spark does not escape letters beyond ASCII, and engines encode such letters differently in the log. In a local
directory the job's directories are renamed. Elsewhere names and values are percent-encoded before Spark
writes them: Spark escapes each `%` once more, so the names are ASCII and can be decoded.
See docs/adr/2026-11-25-partition-directories.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from delta_core.schema.partition_values import HIVE_NULL, unescape_hive
from spark_jobs.expressions.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOT_PLAIN = r"[^ -~]|[%~]"
_OF_NAMES = re.compile(rf"^[_.]|{_NOT_PLAIN}")


def plain_name(name: str) -> str:
    """A column's name as it is written into directory names before Spark escapes it."""
    return _OF_NAMES.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def with_plain_directories(frame: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """The rows with encoded partition columns: names by `plain_name`, values for `decoded_values`.

    Args:
        frame: the rows, with partition columns as strings.
        partition_columns: their names.
    """
    from pyspark.sql import functions as fn

    columns = []
    for name in frame.columns:
        column = fn.col(quoted(name))
        if name in partition_columns:
            # Every encoded value contains a percent sign, and no other value does.
            encoded = fn.when(column.rlike(_NOT_PLAIN), fn.url_encode(column)).otherwise(column)
            column = encoded.alias(plain_name(name))
        columns.append(column)
    return frame.select(*columns)


def decoded_values(directories: Sequence[str], partition_columns: Sequence[str]) -> Mapping[str, str | None]:
    """The partition values from the names of a file's directories, by column."""
    values: dict[str, str | None] = {}
    for directory in directories:
        name, _, escaped = directory.partition("=")
        value = unescape_hive(escaped)
        decoded = unquote_plus(value) if "%" in value else value
        values[unescape_hive(name)] = None if escaped == HIVE_NULL else decoded
    return {name: values.get(plain_name(name)) for name in partition_columns}
