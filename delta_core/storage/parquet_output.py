"""Parquet files being written, where a failure stays the failure that it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@contextmanager
def parquet_writer(sink: pa.NativeFile, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """A writer that ends the file when the context ends normally.

    After an error it does nothing more. Arrow's own context would try to end the file then, and what that
    raises, such as that there is no footer, would stand in the place of a full disk.
    """
    writer = pq.ParquetWriter(sink, schema, **options)
    try:
        yield writer
        writer.close()
    finally:
        # Else a writer that was not closed would write a footer into the closed file when it is collected.
        writer.is_open = False
