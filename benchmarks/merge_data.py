"""The sources of the MERGE cases: 120,000 rows of lineitem, half of them changed and half new; a stream."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import lineitem_table

UPDATES = 60_000
INSERTS = 60_000
ON = "t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
_NEW_KEYS_FROM = 10_000_000


def merge_target(cache: Path) -> Path:
    """The table that is merged into: lineitem SF1 (6,001,215 rows) in eight files."""
    return lineitem_table(cache, files=8)


def merge_source(cache: Path) -> Path:
    """The source as one Parquet file, in random order: its updates hit every file of the target."""
    file = cache / "merge-source.parquet"
    if file.exists():
        return file
    names = sorted(merge_target(cache).glob("*.parquet"))
    rows = pa.concat_tables([pq.read_table(name) for name in names])
    step = rows.num_rows // (UPDATES + INSERTS)
    picked = rows.take(pa.array([i * step for i in range(UPDATES + INSERTS)], pa.int64()))
    changed = picked.take(pa.array(range(0, picked.num_rows, 2), pa.int64()))
    added = picked.take(pa.array(range(1, picked.num_rows, 2), pa.int64()))
    changed = _with(changed, "l_comment", pc.binary_join_element_wise(changed["l_comment"], "changed", " "))
    added = _with(added, "l_orderkey", pc.add(added["l_orderkey"], _NEW_KEYS_FROM))
    source = pa.concat_tables([changed, added])
    order = [(index * 7_919) % source.num_rows for index in range(source.num_rows)]
    scratch = cache / "merge-source.partial"
    pq.write_table(source.take(pa.array(order, pa.int64())), scratch)
    shutil.move(scratch, file)
    return file


def _with(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(position), values)


_STREAMED_ROWS = 100_000
_SPREAD = 1_000_003
"""Prime, so that the products of it and consecutive numbers are a permutation."""


def source_stream(rows: int, keys: str) -> pa.RecordBatchReader:
    """A stream of rows with distinct keys in no order, `string` or `integer`, and two values."""

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, _STREAMED_ROWS):
            numbers = np.arange(start, min(start + _STREAMED_ROWS, rows), dtype=np.int64) * _SPREAD % rows
            yield keyed_rows(numbers, keys, note="new")

    return pa.RecordBatchReader.from_batches(keyed_rows(np.arange(1), keys, note="").schema, batches())


def keyed_rows(numbers: npt.NDArray[np.int64], keys: str, *, note: str) -> pa.RecordBatch:
    """Rows of the streamed case: the key of each number, a measure and a note."""
    key = pa.array(numbers)
    if keys == "string":
        digits = pc.utf8_lpad(key.cast(pa.string()), 12, "0")
        key = pc.binary_join_element_wise("customer", digits, "-")
    measure = pa.array(numbers / 7)
    notes = pc.binary_join_element_wise(note, pa.array(numbers % 1000).cast(pa.string()), " ")
    return pa.RecordBatch.from_arrays([key, measure, notes], names=["key", "measure", "note"])
