"""The statistics of a checkpoint by Arrow's JSON reader alone: no log, no checks, no cache."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import json as arrow_json

_strings: list[pa.Array] = []


def open_for_statistics(uri: str) -> int:
    """Keep the texts of the statistics; the checkpoint's other columns are not read."""
    (checkpoint,) = (Path(uri) / "_delta_log").glob("*.checkpoint.parquet")
    adds = pq.ParquetFile(checkpoint).read(columns=["add.stats"]).column("add")
    _strings[:] = [pc.struct_field(chunk, "stats").drop_null() for chunk in adds.chunks]
    return sum(map(len, _strings))


def range_predicate(uri: str, column: str, low: int, high: int) -> int:
    """Parse every text and count the files whose bounds reach into the range."""
    found = 0
    for strings in _strings:
        lines = pa.ListArray.from_arrays(pa.array([0, len(strings)], pa.int32()), strings)
        joined = pc.binary_join(lines, "\n")[0].as_buffer()
        table = arrow_json.read_json(pa.BufferReader(joined))
        smallest, largest = (pc.struct_field(table[name], column) for name in ("minValues", "maxValues"))
        reached = pc.and_(pc.less_equal(smallest, high), pc.greater_equal(largest, low))
        found += pc.sum(reached).as_py() or 0
    return found
