"""Random histories of small tables for streams: appends, deletes, updates, merges of files, new columns."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake


def rows(rng: random.Random, start: int, *, count: int | None = None) -> pa.Table:
    ids = range(start, start + (count or rng.randint(1, 4)))
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [f"p{i % 3}" for i in ids]})


def random_history(
    table: Path, rng: random.Random, *, steps: int, changes: bool, vectors: bool, feed: bool = False
) -> int:
    """Write a table of `steps` commits or so, and return the number of ids that it used."""
    configuration = {"delta.enableDeletionVectors": str(vectors).lower()}
    if feed:
        configuration["delta.enableChangeDataFeed"] = "true"
    write_deltalake(
        str(table), rows(rng, 0, count=5), mode="append", partition_by=["part"], configuration=configuration
    )
    used = 5
    for _ in range(steps):
        used += step(table, rng, used, changes=changes)
    return used


def step(table: Path, rng: random.Random, used: int, *, changes: bool) -> int:
    """One more commit, and how many ids it used."""
    handle = DeltaTable(str(table))
    kind = rng.choice(
        ["append"] * 4 + ["compact", "properties"] + ["delete", "update", "overwrite"] * changes
    )
    if kind == "append":
        new = rows(rng, used)
        write_deltalake(str(table), new, mode="append")
        return new.num_rows
    if kind == "compact":
        handle.optimize.compact()
    elif kind == "properties":
        handle.alter.set_description(str(rng.random()))
    elif kind == "delete":
        handle.delete(f"id % 7 = {rng.randint(0, 6)}")
    elif kind == "update":
        handle.update({"id": "id + 1000"}, f"id = {rng.randint(0, used)}")
    else:
        new = rows(rng, used)
        write_deltalake(str(table), new, mode="overwrite", predicate=None)
        return new.num_rows
    return 0
