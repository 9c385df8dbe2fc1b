"""Inputs of the benchmarks, made once under a cache directory and never modified.

TPC-H's lineitem comes from `tpchgen-cli`; the large log is written as plain JSON and given its
checkpoint by deltalake, so that none of the contestants reads a log of its own making.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def lineitem(cache: Path, *, scale: str = "1") -> Path:
    """The lineitem table as one Parquet file (SF1: 6,001,215 rows)."""
    folder = cache / f"tpch-{scale}"
    file = folder / "lineitem.parquet"
    if not file.exists():
        command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet", "-s", scale]
        scratch = cache / f"tpch-{scale}.partial"
        subprocess.run([*command, "--tables=lineitem", f"--output-dir={scratch}", "-c", "snappy"], check=True)
        scratch.rename(folder)
    return file


def lineitem_table(cache: Path, *, scale: str = "1", files: int) -> Path:
    """A Delta table (written by deltalake) of lineitem in about `files` files of equal row counts."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, create_table_with_add_actions

    table = cache / f"lineitem-{scale}-{files}"
    if table.exists():
        return table
    scratch = cache / f"{table.name}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rows = pq.read_table(lineitem(cache, scale=scale))
    schema = pa.schema([f.with_type(_plain(f.type)) for f in rows.schema])
    rows = rows.cast(schema)
    step = -(-rows.num_rows // files)
    actions = []
    for index, start in enumerate(range(0, rows.num_rows, step)):
        part = rows.slice(start, step)
        name = f"part-{index:05}-{uuid.UUID(int=index)}-c000.snappy.parquet"
        pq.write_table(part, scratch / name)
        stats = json.dumps({"numRecords": part.num_rows})
        size = (scratch / name).stat().st_size
        actions.append(AddAction(name, size, {}, 1_700_000_000_000, True, stats))
    create_table_with_add_actions(
        str(scratch), Schema.from_arrow(schema), actions, mode="overwrite", partition_by=[]
    )
    assert DeltaTable(str(scratch)).version() == 0
    scratch.rename(table)
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


def wide_log(cache: Path, *, files: int, seed: int = 7) -> Path:
    """A table of `files` live files (the files themselves do not exist), one partition column.

    Ten JSON commits, a checkpoint by deltalake, then ten more commits of one file each.
    """
    from deltalake import DeltaTable

    table = cache / f"log-{files}"
    if table.exists():
        return table
    scratch = cache / f"{table.name}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    log = scratch / "_delta_log"
    log.mkdir(parents=True)
    generator = random.Random(seed)
    fields = [("id", "long"), ("amount", "double"), ("name", "string"), ("day", "string")]
    schema = {
        "type": "struct",
        "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields],
    }
    metadata = {
        "id": str(uuid.UUID(int=generator.getrandbits(128))),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    first = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    per_commit = files // 10
    for version in range(10):
        lines = (first if version == 0 else []) + [
            {"add": _add(generator, version * per_commit + i)} for i in range(per_commit)
        ]
        _commit(log, version, lines)
    DeltaTable(str(scratch)).create_checkpoint()
    for version in range(10, 20):
        _commit(log, version, [{"add": _add(generator, files + version)}])
    scratch.rename(table)
    return table


def _add(generator: random.Random, number: int) -> dict[str, object]:
    day = f"2013-{1 + number % 12:02}-{1 + number % 28:02}"
    stats = {
        "numRecords": 1000,
        "minValues": {"id": number * 1000, "amount": generator.random(), "name": "a" * 8},
        "maxValues": {"id": number * 1000 + 999, "amount": 1 + generator.random(), "name": "z" * 8},
        "nullCount": {"id": 0, "amount": 0, "name": 3},
    }
    name = uuid.UUID(int=generator.getrandbits(128))
    return {
        "path": f"day={day}/part-{number % 1000:05}-{name}.c000.snappy.parquet",
        "partitionValues": {"day": day},
        "size": 100_000 + generator.randrange(100_000),
        "modificationTime": 1_700_000_000_000 + number,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def _commit(log: Path, version: int, actions: list[dict[str, object]]) -> None:
    info = {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}
    text = "\n".join(json.dumps(action, separators=(",", ":")) for action in [info, *actions])
    (log / f"{version:020}.json").write_text(text + "\n")


def clone(table: Path, target: Path) -> Path:
    """A private copy whose data files are hard links: cheap, and no contestant can harm the original."""
    shutil.rmtree(target, ignore_errors=True)

    def place(source: str, destination: str) -> str:
        if "_delta_log" in source:
            shutil.copy2(source, destination)
        else:
            os.link(source, destination)
        return destination

    shutil.copytree(table, target, copy_function=place)
    return target
