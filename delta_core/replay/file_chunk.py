"""Chunks of live files as columns."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol

import pyarrow as pa

from delta_core.forks import renew_lock_in_children
from delta_core.replay.map_strings import CodedStrings, coded_strings

# The statistics of a column take three arrays with eight bytes a row.
_MEMO_VALUES = 32

PARTITION = "partition"
"""The memo's name for a partition column."""


class FileChunk(Protocol):
    """A chunk of files with the columns of LIVE_FILE_SCHEMA, each available separately. It never changes.

    Attributes:
        memo: values that callers have derived from the chunk, for later use.
    """

    memo: Memo

    @property
    def num_rows(self) -> int:
        """The number of rows, including rows of removed files."""
        ...

    def column(self, name: str) -> pa.Array:
        """One column. A map column may have dictionary-encoded keys and items."""
        ...

    def uncached_column(self, name: str) -> pa.Array:
        """One column like `column`, but a newly decoded column is not kept in memory."""
        ...

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        ...

    def maybe_has_deletion_vectors(self) -> bool:
        """False when certainly no row has a deletion vector."""
        ...

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """The batch with this name from the store's cache, one row for each row of the chunk, or None."""
        ...

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Put a batch into the store's cache, if there is one, for other processes.

        The name must identify everything on which the batch depends, except for the chunk itself.
        """
        ...


class Memo:
    """A thread-safe cache of values by key. The oldest values are dropped when there are too many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """The value of a key, or None."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        """Store the value of a key."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MEMO_VALUES:
                del self._values[next(iter(self._values))]


class MemoryChunk:
    """A chunk of files in memory, such as files that commits added."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.memo = Memo()

    @property
    def num_rows(self) -> int:
        """The number of rows, including rows of removed files."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """A column of LIVE_FILE_SCHEMA."""
        return self.batch.column(name)

    def uncached_column(self, name: str) -> pa.Array:
        """A column of LIVE_FILE_SCHEMA."""
        return self.batch.column(name)

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        values: CodedStrings | None = self.memo.get((PARTITION, name))
        if values is None:
            values = coded_strings(self.batch.column("partition_values"), name)
            self.memo.put((PARTITION, name), values)
        return values

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row has a deletion vector."""
        dvs = self.batch.column("deletion_vector")
        return bool(dvs.null_count < len(dvs))

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """None: files of commits are few and not cached."""
        return None

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Do nothing: a chunk in memory is not cached."""
