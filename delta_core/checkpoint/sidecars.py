"""Sidecars: Parquet files with the file actions of a V2 checkpoint (PROTOCOL.md, "Sidecar Files").

Each sidecar is streamed, so memory does not grow with the table. Readers ignore a sidecar until a checkpoint
refers to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa

from delta_core.checkpoint.create_if_absent import created_with_unique_name
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.errors import DeltaError
from delta_core.log.log_path import sidecar_path
from delta_core.storage.log_store import LogStore, ObjectInfo

_COLUMNS = ["add", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A sidecar that was written, and the number of its actions."""

    info: ObjectInfo
    num_actions: int


def write_sidecars(rows: CheckpointRows, *, max_actions: int) -> list[Sidecar]:
    """Write a version's files and tombstones to new sidecars, one after the other.

    When an attempt fails, the function deletes the sidecars that it has written, as far as possible. A later
    log cleanup deletes the others. Two requests for each sidecar.

    Args:
        rows: the rows of the version's checkpoint.
        max_actions: the maximum number of actions in one sidecar.

    Raises:
        StorageError: a sidecar was not written, or may have been written.
    """
    store, version = rows.snapshot.store, rows.snapshot.version
    schema = pa.schema([rows.schema.field(name) for name in _COLUMNS])
    batches = _Cut(group.select(_COLUMNS) for group in rows.file_groups())
    paths: list[str] = []
    written: list[Sidecar] = []
    try:
        while not batches.exhausted:
            paths.append(sidecar_path(version, len(paths) + 1, uuid4()))
            with created_with_unique_name(store, paths[-1], clock=rows.snapshot.clock) as sink:
                num_actions = write_parquet(
                    sink, schema, batches.next_rows(max_actions), parquet_format=rows.parquet_format
                )
            written.append(Sidecar(info=store.head(paths[-1]), num_actions=num_actions))
    except BaseException:
        delete_sidecars(store, paths)
        raise
    return written


def delete_sidecars(store: LogStore, paths: Sequence[str]) -> None:
    """Delete sidecars that no checkpoint refers to. Failures are ignored: log cleanup deletes the rest."""
    for path in paths:
        with suppress(DeltaError):
            store.delete(path)


class _Cut:
    """Cuts groups of rows into parts with the numbers of rows that the caller requests."""

    def __init__(self, groups: Iterator[pa.Table]) -> None:
        self._groups = groups
        self._next = next(groups, None)

    @property
    def exhausted(self) -> bool:
        """True when no row is left."""
        return self._next is None

    def next_rows(self, count: int) -> Iterator[pa.Table]:
        """The next `count` rows, or all that are left."""
        while self._next is not None and count:
            taken = self._next.slice(0, count)
            rest = self._next.slice(taken.num_rows)
            self._next = rest if rest.num_rows else next(self._groups, None)
            count -= taken.num_rows
            yield taken
