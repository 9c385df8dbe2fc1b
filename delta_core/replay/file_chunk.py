"""A run of live files as columns."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol

import pyarrow as pa

from delta_core.forks import renew_lock_in_children
from delta_core.replay.map_strings import CodedStrings, coded_strings

# Statistics of a column take three arrays of eight bytes a row.
_MEMO_VALUES = 32

PARTITION = "partition"
"""The memo's name for a partition column."""


class FileChunk(Protocol):
    """Columns of LIVE_FILE_SCHEMA, each available by itself.

    Attributes:
        memo: what others have worked out from the chunk, which never changes, and want to find again.
    """

    memo: Memo

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        ...

    def column(self, name: str) -> pa.Array:
        """One column. A map column may have dictionary-encoded keys and items."""
        ...

    def passing(self, name: str) -> pa.Array:
        """As `column`, but what has to be decoded for it is not kept."""
        ...

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        ...

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row can have one."""
        ...

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """What another process has kept of the chunk, a row for each of the chunk's; None when nothing."""
        ...

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Keep it for others, where there is a cache. The name says on what it depends but the chunk."""
        ...


class Memo:
    """Values by key; the oldest go when there are too many. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MEMO_VALUES:
                del self._values[next(iter(self._values))]


class MemoryChunk:
    """Files that commits added."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.memo = Memo()

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """One column."""
        return self.batch.column(name)

    def passing(self, name: str) -> pa.Array:
        """One column."""
        return self.batch.column(name)

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        found: CodedStrings | None = self.memo.get((PARTITION, name))
        if found is None:
            found = coded_strings(self.batch.column("partition_values"), name)
            self.memo.put((PARTITION, name), found)
        return found

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row has one."""
        dvs = self.batch.column("deletion_vector")
        return bool(dvs.null_count < len(dvs))

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """Commits are small; nothing is kept."""
        return None

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Does nothing."""
