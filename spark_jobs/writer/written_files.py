"""The files that a job wrote, with the partition values from Spark's directory names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from delta_core.schema.partition_values import HIVE_NULL, hive_directory, unescape_hive
from delta_core.storage import LogStore, local_root
from spark_jobs.writer.plain_directories import decoded_values


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One data file.

    Attributes:
        path: the path relative to the table root.
        partition_values: the values in the log's format, by the columns' names in files.
    """

    path: str
    size_bytes: int
    modified_ms: int
    partition_values: Mapping[str, str | None]


def written_files(
    store: LogStore, prefix: str, partition_columns: Sequence[str], *, encoded: bool = False
) -> list[WrittenFile]:
    """The data files below the prefix, sorted by path. Deletes checksum files of the local file system.

    Readers ignore checksum files. A vacuum would never delete them, because their names start with a dot.
    `encoded` for rows of `with_plain_directories`.
    """
    values_of = decoded_values if encoded else _directory_values
    found = []
    for info in store.walk(prefix):
        name = info.path.rsplit("/", 1)[-1]
        if name.endswith(".parquet") and not name.startswith((".", "_")):
            found.append(
                WrittenFile(
                    path=info.path,
                    size_bytes=info.size_bytes,
                    modified_ms=info.modified_ms,
                    partition_values=values_of(
                        info.path.removeprefix(f"{prefix}/").split("/")[:-1], partition_columns
                    ),
                )
            )
        elif name.startswith(".") and name.endswith(".crc"):
            store.delete(info.path)
    return sorted(found, key=lambda file: file.path)


def with_canonical_directories(
    store: LogStore, prefix: str, files: Sequence[WrittenFile]
) -> list[WrittenFile]:
    """Rename the partition directories to the names of `hive_directory`, and return the files' new paths.

    Spark does not escape letters beyond ASCII and a leading `_`. Call this only after the job, because no
    task may write below the prefix during the rename.
    """
    renamed: dict[str, str] = {}
    for file in files:
        directory = os.path.dirname(file.path)
        if directory not in renamed:
            names = (hive_directory(column, value) for column, value in file.partition_values.items())
            renamed[directory] = "/".join((prefix, *names))
            _rename(store, directory, renamed[directory])
    return [
        replace(file, path=f"{renamed[directory]}/{name}")
        for file in files
        for directory, name in [os.path.split(file.path)]
    ]


def _rename(store: LogStore, directory: str, new: str) -> None:
    if new == directory:
        return
    root = local_root(store)
    assert root is not None  # other stores have no renames
    # Unlike rename(), renames() creates parent directories, and removes old ones that become empty.
    os.renames(root / directory, root / new)


def _directory_values(
    directories: Sequence[str], partition_columns: Sequence[str]
) -> Mapping[str, str | None]:
    values: dict[str, str | None] = {}
    for directory in directories:
        name, _, value = directory.partition("=")
        values[unescape_hive(name)] = None if value == HIVE_NULL else unescape_hive(value)
    return {column: values.get(column) for column in partition_columns}
