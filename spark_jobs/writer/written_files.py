"""The files that a job wrote, with the partition values that Spark's directories spell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from delta_core.schema.partition_values import HIVE_NULL, hive_directory, unescape_hive
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import local_root


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One data file.

    Attributes:
        path: relative to the table root.
        partition_values: as the log holds them, by the columns' names in files.
    """

    path: str
    size_bytes: int
    modified_ms: int
    partition_values: Mapping[str, str | None]


def written_files(store: LogStore, prefix: str, partition_columns: Sequence[str]) -> list[WrittenFile]:
    """The data files below the prefix, in order; checksum files of the local file system are deleted.

    Readers ignore them, but vacuum, which deletes what the log does not name, would leave them for ever.
    """
    found = []
    for info in store.walk(prefix):
        name = info.path.rsplit("/", 1)[-1]
        if name.endswith(".parquet") and not name.startswith((".", "_")):
            found.append(
                WrittenFile(
                    path=info.path,
                    size_bytes=info.size_bytes,
                    modified_ms=info.modified_ms,
                    partition_values=_spelled_values(info.path.removeprefix(f"{prefix}/"), partition_columns),
                )
            )
        elif name.startswith(".") and name.endswith(".crc"):
            store.delete(info.path)
    return sorted(found, key=lambda file: file.path)


def in_directories_spelled_alike(
    store: LogStore, prefix: str, files: Sequence[WrittenFile]
) -> list[WrittenFile]:
    """The files where every directory has the name that `hive_directory` gives it.

    Spark leaves letters beyond ASCII as they are, and `_` at the start. Nothing else may write below the
    prefix: for after the job, whose directories are renamed here.
    """
    placed: dict[str, str] = {}
    for file in files:
        directory = os.path.dirname(file.path)
        if directory not in placed:
            names = (hive_directory(column, text) for column, text in file.partition_values.items())
            placed[directory] = "/".join((prefix, *names))
            _rename(store, directory, placed[directory])
    return [
        replace(file, path=f"{placed[directory]}/{name}")
        for file in files
        for directory, name in [os.path.split(file.path)]
    ]


def _rename(store: LogStore, directory: str, new: str) -> None:
    if new == directory:
        return
    root = local_root(store)
    assert root is not None, "Spark writes to file systems"
    # Unlike rename(), it makes the parents, and removes those that are empty then.
    os.renames(root / directory, root / new)


def _spelled_values(below_prefix: str, partition_columns: Sequence[str]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for directory in below_prefix.split("/")[:-1]:
        name, _, text = directory.partition("=")
        values[unescape_hive(name)] = None if text == HIVE_NULL else unescape_hive(text)
    return {column: values.get(column) for column in partition_columns}
