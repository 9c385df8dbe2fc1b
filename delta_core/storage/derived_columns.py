"""Columns derived from an immutable object, cached for other processes.

Decoding and parsing a checkpoint of a million files takes longer than reading it from the disk. The decoded
columns are stored next to the object in the cache of a remote store. A local table has no cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import ipc

from delta_core.storage.disk_cache import DiskCache


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedColumns:
    """The cached batches of one object, by name.

    Attributes:
        cache: stores the batches, and checks them when they are read.
        key: identifies the object as it was listed, and optionally its content.
    """

    cache: DiskCache
    key: str

    def of_content(self, digest: bytes) -> DerivedColumns:
        """The batches for a content with this digest: an object with the same name and time may differ."""
        return replace(self, key=f"{self.key}\n{digest.hex()}")

    def get(self, name: str, schema: pa.Schema, num_rows: int) -> pa.RecordBatch | None:
        """A cached batch; None without a batch of this schema and length. No request."""
        cached = self.cache.get(f"{self.key}\n{name}")
        if cached is None:
            return None
        try:
            batch = ipc.open_stream(cached).read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, OSError, StopIteration):
            return None
        return batch if batch.schema.equals(schema) and batch.num_rows == num_rows else None

    def put(self, name: str, batch: pa.RecordBatch) -> None:
        """Cache a batch. The name must identify everything that the batch depends on besides the object."""
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self.cache.put(f"{self.key}\n{name}", sink.getvalue())
