"""Columns that were worked out from an immutable object, kept beside it for other processes.

Decoding and parsing a checkpoint of a million files takes longer than reading it from the disk. What came of
it is kept where the object itself is: in the cache of a remote store. A local table has no cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import ipc

from delta_core.storage.disk_cache import DiskCache


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedColumns:
    """Batches by name, of one object.

    Attributes:
        cache: holds them, and checks them when they are read.
        key: the object, as it was when it was listed, and what is known of its bytes.
    """

    cache: DiskCache
    key: str

    def of_content(self, digest: bytes) -> DerivedColumns:
        """Those of the very bytes that have a digest: a name and a time may come to mean others."""
        return replace(self, key=f"{self.key}\n{digest.hex()}")

    def get(self, name: str, schema: pa.Schema, num_rows: int) -> pa.RecordBatch | None:
        """A batch that was kept; None when there is none of this schema and length. No request."""
        found = self.cache.get(f"{self.key}\n{name}")
        if found is None:
            return None
        try:
            batch = ipc.open_stream(found).read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, OSError, StopIteration):
            return None
        return batch if batch.schema.equals(schema) and batch.num_rows == num_rows else None

    def put(self, name: str, batch: pa.RecordBatch) -> None:
        """Keep a batch. Names say everything that the content depends on but the object."""
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self.cache.put(f"{self.key}\n{name}", sink.getvalue())
