"""Sidecars: the files of a checkpoint, in Parquet files beside it (PROTOCOL.md, "Sidecar Files").

Each is streamed, so that memory does not grow with the table; nobody reads one before a checkpoint names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa

from delta_core.checkpoint.create_only import created_by_us
from delta_core.checkpoint.rows import CheckpointRows, write_parquet
from delta_core.errors import DeltaError
from delta_core.log.log_path import sidecar_path
from delta_core.storage.log_store import LogStore, ObjectInfo

_COLUMNS = ["add", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A sidecar that was written, and how many actions it holds."""

    info: ObjectInfo
    num_actions: int


def write_sidecars(rows: CheckpointRows, *, max_actions: int) -> list[Sidecar]:
    """Write a version's files and tombstones to new sidecars, one after the other.

    What an attempt that fails has written is deleted, as far as possible; what stays is nobody's, and goes
    with a later log cleanup. Two requests for each.

    Args:
        rows: whose.
        max_actions: how many actions a sidecar may hold.

    Raises:
        StorageError: one was not written, or that cannot be told.
    """
    store, version = rows.snapshot.store, rows.snapshot.version
    schema = pa.schema([rows.schema.field(name) for name in _COLUMNS])
    batches = _Cut(group.select(_COLUMNS) for group in rows.file_groups())
    paths: list[str] = []
    written: list[Sidecar] = []
    try:
        while not batches.exhausted:
            paths.append(sidecar_path(version, len(paths) + 1, uuid4()))
            with created_by_us(store, paths[-1], clock=rows.snapshot.clock) as sink:
                num_actions = write_parquet(
                    sink, schema, batches.next_rows(max_actions), encoded=rows.encoded
                )
            written.append(Sidecar(info=store.head(paths[-1]), num_actions=num_actions))
    except BaseException:
        delete_sidecars(store, paths)
        raise
    return written


def delete_sidecars(store: LogStore, paths: Sequence[str]) -> None:
    """Delete sidecars that no checkpoint names. What cannot be deleted is in nobody's way."""
    for path in paths:
        with suppress(DeltaError):
            store.delete(path)


class _Cut:
    """Groups of rows, so many rows at a time."""

    def __init__(self, groups: Iterator[pa.Table]) -> None:
        self._groups = groups
        self._next = next(groups, None)

    @property
    def exhausted(self) -> bool:
        """Whether there is no row any more."""
        return self._next is None

    def next_rows(self, count: int) -> Iterator[pa.Table]:
        """The next rows, as many as that or all that are left."""
        while self._next is not None and count:
            taken = self._next.slice(0, count)
            rest = self._next.slice(taken.num_rows)
            self._next = rest if rest.num_rows else next(self._groups, None)
            count -= taken.num_rows
            yield taken
