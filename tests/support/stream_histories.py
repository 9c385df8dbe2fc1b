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
    table: Path,
    rng: random.Random,
    *,
    steps: int,
    changes: bool,
    vectors: bool,
    feed: bool = False,
    columns: bool = False,
) -> int:
    """Write a table of `steps` commits or so, and return the number of ids that it used.

    Args:
        table: the directory of the new table.
        rng: draws the commits.
        steps: the number of commits.
        changes: whether commits delete and change rows.
        vectors: whether rows are deleted by deletion vectors.
        feed: whether changes are recorded.
        columns: whether commits add, rename, drop and widen columns.
    """
    configuration = {"delta.enableDeletionVectors": str(vectors).lower()}
    if feed:
        configuration["delta.enableChangeDataFeed"] = "true"
    if columns:
        configuration |= {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    write_deltalake(
        str(table), rows(rng, 0, count=5), mode="append", partition_by=["part"], configuration=configuration
    )
    used = 5
    for number in range(steps):
        if columns and rng.random() < 0.4:
            change_columns(table, rng, number)
        used += step(table, rng, used, changes=changes)
    return used


def change_columns(table: Path, rng: random.Random, number: int) -> None:
    """A commit that changes the columns. All but `id` and `part` are made and changed here."""
    handle = DeltaTable(str(table))
    fields = {field.name: field for field in handle.schema()}
    kind = rng.choice(["add", "add", "rename", "drop", "widen", "widen", "nullable"])
    others = sorted(fields.keys() - {"id", "part"})
    if kind == "nullable":
        change = handle.alter.set_not_null if fields["id"].nullable else handle.alter.drop_not_null
        change("id")
    elif kind == "add" or not others:
        handle.alter.add_columns([pa.field(f"c{number}", pa.int32())])
    elif kind == "rename":
        handle.alter.rename_column(rng.choice(others), f"r{number}")
    elif kind == "drop":
        handle.alter.drop_columns([rng.choice(others)])
    else:
        narrow = [name for name in others if str(fields[name].data_type) != "long"]
        if narrow:
            handle.alter.change_type(rng.choice(narrow), pa.int64())


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
