"""Logs of a million files that nobody wrote: a checkpoint and ten commits, no data files.

`regular`: one partition column, every file alike. `realistic`: UUID names, two partition columns with
nulls, 10 % of the files with a deletion vector, 5 % of the rows tombstones between the files, statistics
of four columns.
"""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA

_ROW_GROUP_ROWS = 200_000
_COMMITS = 10
_TIME_MS = 1_700_000_000_000
_FEATURES = ["deletionVectors"]

COUNTRIES = ("DE", "FR", "US", "JP", None)


def snapshot_log(cache: Path, kind: str, *, files: int, seed: int = 11) -> Path:
    """The table, made once and kept in the cache. The checkpoint has JSON statistics and footers' own."""
    table = cache / f"snapshot-{kind}-{files}"
    if table.exists():
        return table
    scratch = cache / f"{table.name}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    log = scratch / "_delta_log"
    log.mkdir(parents=True)
    generator = random.Random(seed)
    checkpoint = log / f"{9:020}.checkpoint.parquet"
    with pq.ParquetWriter(checkpoint, CHECKPOINT_SCHEMA, compression="snappy") as writer:
        for rows in _row_groups(kind, generator, files):
            writer.write_table(pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA))
    (log / f"{9:020}.json").write_text(json.dumps({"commitInfo": {"timestamp": _TIME_MS}}) + "\n")
    for number in range(_COMMITS):
        write_commit(scratch, kind, version=10 + number, number=files + number)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 9, "size": files + 2}))
    scratch.rename(table)
    return table


def write_commit(table: Path, kind: str, *, version: int, number: int) -> None:
    """A commit that adds one file."""
    add = _add(kind, random.Random(number), number)
    add["partitionValues"] = dict(add["partitionValues"])
    lines = [{"commitInfo": {"timestamp": _TIME_MS + version, "operation": "WRITE"}}, {"add": add}]
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    (table / "_delta_log" / f"{version:020}.json").write_text(text + "\n")


def partition(kind: str, number: int) -> tuple[str, str]:
    """A partition column and one of its values: one in 360 files has it."""
    return "day", f"2013-{1 + number % 12:02}-{1 + number % 30:02}"


def _row_groups(kind: str, generator: random.Random, files: int) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = [_protocol(kind), _metadata(kind)]
    for number in range(files):
        rows.append({"add": _add(kind, generator, number)})
        if kind == "realistic" and number % 20 == 7:
            rows.append({"remove": _remove(generator, number)})
        if len(rows) >= _ROW_GROUP_ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def _add(kind: str, generator: random.Random, number: int) -> dict[str, Any]:
    column, day = partition(kind, number)
    values: list[tuple[str, str | None]] = [(column, day)]
    if kind == "realistic":
        values.append(("country", COUNTRIES[number % len(COUNTRIES)]))
        directory = f"day={day}/country={values[1][1] or '__HIVE_DEFAULT_PARTITION__'}"
        path = f"{directory}/part-{number % 1000:05}-{_uuid(generator)}.c000.snappy.parquet"
    else:
        path = f"day={day}/part-{number:08}.snappy.parquet"
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": values,
        "size": 100_000 + generator.randrange(100_000) if kind == "realistic" else 131_072,
        "modificationTime": _TIME_MS + (number if kind == "realistic" else 0),
        "dataChange": True,
        "stats": _stats(kind, generator, number),
    }
    if kind == "realistic" and number % 10 == 3:
        name = "".join(generator.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20))
        add["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": name,
            "offset": 1,
            "sizeInBytes": 40,
            "cardinality": 1 + number % 50,
        }
    return add


def _stats(kind: str, generator: random.Random, number: int) -> str:
    low, high = {"id": number * 1000}, {"id": number * 1000 + 999}
    nulls = {"id": 0}
    if kind == "realistic":
        low |= {"amount": generator.random(), "name": _string(generator), "at": "2013-01-01T00:00:00.000Z"}
        high |= {
            "amount": 1 + generator.random(),
            "name": _string(generator),
            "at": "2013-12-31T23:59:59.999Z",
        }
        nulls |= {"amount": 0, "name": number % 7, "at": 0}
    return json.dumps(
        {"numRecords": 1000, "minValues": low, "maxValues": high, "nullCount": nulls}, separators=(",", ":")
    )


def _remove(generator: random.Random, number: int) -> dict[str, Any]:
    return {
        "path": f"day=2012-01-01/country=DE/part-{number % 1000:05}-{_uuid(generator)}.c000.snappy.parquet",
        "deletionTimestamp": _TIME_MS + number,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": [("day", "2012-01-01"), ("country", "DE")],
        "size": 100_000,
    }


def _protocol(kind: str) -> dict[str, Any]:
    if kind == "regular":
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {"protocol": {**versions, "readerFeatures": _FEATURES, "writerFeatures": _FEATURES}}


def _metadata(kind: str) -> dict[str, Any]:
    types = {"id": "long", "amount": "double", "name": "string", "at": "timestamp", "day": "string"}
    partitions = ["day"]
    if kind == "realistic":
        types["country"] = "string"
        partitions.append("country")
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return {
        "metaData": {
            "id": str(uuid.UUID(int=1)),
            "format": {"provider": "parquet", "options": []},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": partitions,
            "configuration": [],
            "createdTime": _TIME_MS,
        }
    }


def _uuid(generator: random.Random) -> uuid.UUID:
    return uuid.UUID(int=generator.getrandbits(128))


def _string(generator: random.Random) -> str:
    return "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=8))
