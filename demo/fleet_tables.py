"""A fleet of generated tables that are sick in known ways. The same seed gives the same sicknesses."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.clock import SystemClock

KINDS: Final[Mapping[str, float]] = {
    "healthy": 0.45,
    "small_files": 0.2,
    "long_tail": 0.1,
    "deleted_rows": 0.1,
    "retention_debt": 0.1,
    "empty": 0.05,
}
"""The share of each kind of table."""

_OLD_MS = 20 * 86_400_000
_ROWS = 20


class _LongAgo(SystemClock):
    """A clock that is twenty days behind."""

    def now_ms(self) -> int:
        return super().now_ms() - _OLD_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A generated table: its path below the root, and its kind."""

    path: str
    kind: str
    files: int


def make_fleet(
    root: Path,
    *,
    tables: int,
    seed: int = 30,
    files: int = 30,
    zipf: float | None = None,
    usual_checkpoints: bool = False,
    kinds: Mapping[str, float] = KINDS,
) -> list[Made]:
    """Create tables below `root/<schema>/<table>`.

    Args:
        root: a directory that does not exist or is empty.
        tables: number of tables.
        seed: decides which table is of which kind.
        files: the number of files of a table that is sick or healthy by its files.
        zipf: with an exponent, the numbers of files follow Zipf's law from `files * 20` down to 4.
        usual_checkpoints: whether the writers of all kinds but `long_tail` wrote a checkpoint for every ten
            commits, as usual writers do, and the numbers of files differ by up to ten.
        kinds: the share of each kind.
    """
    chance = random.Random(seed)
    templates = root.parent / f".{root.name}-templates"
    shutil.rmtree(templates, ignore_errors=True)
    known: dict[tuple[str, int], Path] = {}
    made = []
    for number in range(tables):
        kind = chance.choices(list(kinds), weights=list(kinds.values()))[0]
        count = files if zipf is None else max(4, round(files * 20 / (number + 1) ** zipf))
        if usual_checkpoints and kind in ("small_files", "retention_debt"):
            count += chance.randrange(10)
        template = known.get((kind, count))
        if template is None:
            place = templates / f"{kind}-{count}"
            template = known[kind, count] = _template(place, kind, count, usual_checkpoints)
        path = f"schema_{number % 20:02d}/{kind}_{number:05d}"
        _copy(template, root / path, chance, checkpoint=kind == "healthy")
        made.append(Made(path=path, kind=kind, files=count))
    shutil.rmtree(templates, ignore_errors=True)
    return made


def _template(path: Path, kind: str, files: int, usual_checkpoints: bool) -> Path:
    uri = str(path)
    often = usual_checkpoints and kind != "long_tail"
    quiet = {} if often else {"delta.checkpointInterval": "1000000"}
    if kind == "empty":
        DeltaTable.create(uri, _rows(0).schema)
    elif kind == "healthy":
        write_deltalake(uri, _rows(0), mode="append")
    elif kind == "long_tail":
        for number in range(files):
            write_deltalake(uri, _rows(number), mode="overwrite", configuration=quiet)
    elif kind == "deleted_rows":
        on = {**quiet, "delta.enableDeletionVectors": "true"}
        write_deltalake(
            uri, pa.concat_tables([_rows(n) for n in range(files)]), mode="append", configuration=on
        )
        DeltaTable(uri).delete("id % 2 = 0")
    elif kind == "retention_debt":
        for number in range(max(2, files // 3)):
            rows = _rows(number, wide=True)
            write_deltalake(uri, rows, mode="overwrite", configuration=quiet, clock=_LongAgo())
        _age(path)
    else:
        for number in range(files):
            write_deltalake(uri, _rows(number), mode="append", configuration=quiet)
    return path


def _rows(number: int, *, wide: bool = False) -> pa.Table:
    ids = range(number * _ROWS, (number + 1) * _ROWS)
    text = [f"{row:040d}" * (50 if wide else 1) for row in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(text, pa.string())})


def _age(path: Path) -> None:
    """Set back the times of data files and commits, which a vacuum compares with its retention."""
    old = time.time() - _OLD_MS / 1000
    for file in (*path.glob("*.parquet"), *path.glob("_delta_log/*.json")):
        os.utime(file, (old, old))


def _copy(template: Path, target: Path, chance: random.Random, *, checkpoint: bool) -> None:
    """Copy a table, and give the copy an id of its own."""
    shutil.copytree(template, target)
    first = target / "_delta_log" / f"{0:020d}.json"
    lines = []
    for line in first.read_text().splitlines():
        action = json.loads(line)
        if "metaData" in action:
            action["metaData"]["id"] = str(UUID(int=chance.getrandbits(128), version=4))
            line = json.dumps(action, separators=(",", ":"))
        lines.append(line)
    first.write_text("\n".join(lines) + "\n")
    for checksum in (target / "_delta_log").glob("*.crc"):
        checksum.unlink()
    if checkpoint:
        DeltaTable(str(target)).create_checkpoint()
