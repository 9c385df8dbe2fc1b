"""Writing a checkpoint of a million files: opening the table is part of it, and so is our reading it back."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contestant import Contestant, Timing
from benchmarks.snapshot_log import snapshot_log

FILES = 1_000_000
_MOST_BYTES = 1 << 30

# What the table asks for besides JSON statistics.
_FORMS = {"json": {}, "struct": {"delta.checkpoint.writeStatsAsStruct": "true"}}


def write_checkpoint(kind: str, form: str, contestant: Contestant, cache: Path, scratch: Path) -> Timing:
    """Open the table and write a checkpoint of its last version, which asks for a form of statistics."""
    table, copy = snapshot_log(cache, kind, files=FILES), scratch / "table"
    log = copy / "_delta_log"
    log.mkdir(parents=True)
    for name in (table / "_delta_log").iterdir():
        (log / name.name).hardlink_to(name)
    version = 1 + max(int(path.stem) for path in log.glob("*.json"))
    # A hard link is replaced by its own name only: the cached table's hint stays.
    (log / "_last_checkpoint").unlink()
    _ask_for(log, version, form)
    timing = contestant.time("write_checkpoint", uri=str(copy))
    written = pq.ParquetFile(log / f"{version:020}.checkpoint.parquet")
    has_struct = any(name.startswith("add.stats_parsed") for name in _leaves(written))
    paths = pc.struct_field(written.read(["add.path"])["add"], "path")
    files = len(paths) - paths.null_count
    if timing.value != version or files < FILES or has_struct != (form == "struct"):
        raise AssertionError(f"{contestant.engine} wrote {files} files, stats_parsed: {has_struct}")
    if contestant.engine == "deltaward" and timing.peak_rss_bytes > _MOST_BYTES:
        raise AssertionError(f"{timing.peak_rss_bytes} bytes of memory at most, more than {_MOST_BYTES}")
    return timing


def _ask_for(log: Path, version: int, form: str) -> None:
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    rows = pq.ParquetFile(checkpoint).read_row_group(0, ["metaData"])["metaData"].to_pylist()
    metadata = next({key: value for key, value in row.items() if value is not None} for row in rows if row)
    metadata["configuration"] = {**dict(metadata.get("configuration") or ()), **_FORMS[form]}
    metadata["format"] = {"provider": "parquet", "options": {}}
    lines = [{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, {"metaData": metadata}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020}.json").write_text(text)


def _leaves(file: pq.ParquetFile) -> list[str]:
    return [file.schema.column(index).path for index in range(len(file.schema))]


CHECKPOINT_RUNS = {
    f"checkpoint-{form}-{kind}-1m": (
        partial(write_checkpoint, kind, form),
        f"open and write a checkpoint, statistics as {form}; ours reads it back",
    )
    for kind in ("regular", "realistic")
    for form in _FORMS
}
"""Case name -> (run, note)."""
