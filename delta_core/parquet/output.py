"""Writing Parquet files without hiding the original error of a failed write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@contextmanager
def parquet_writer(sink: pa.NativeFile, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """A writer that ends the file when the context ends normally.

    After an error this does nothing more. Arrow's own context manager would then try to close the file, and
    its exception, such as a missing footer, would replace the original one, such as a full disk.
    """
    writer = pq.ParquetWriter(sink, schema, **options)
    try:
        yield writer
        writer.close()
    finally:
        # Otherwise garbage collection of an open writer would write a footer into the closed file.
        writer.is_open = False
