"""How a table is read after each step: as it is, from its commits, from a checkpoint, by a peer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from delta_core import DeltaTable
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import Clock
from tests.support.rows import canonical, canonical_rows

_LOG = "_delta_log"
_UNSUPPORTED = ("unsupported", "not supported")


def canonical_model(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The model's rows in the form that `canonical_rows` gives a table's."""
    return sorted(repr({name: canonical(row[name]) for name in sorted(row)}) for row in rows)


def ours(path: Path, clock: Clock, version: int | None = None) -> list[str]:
    """The rows by a handle that has seen nothing before."""
    return canonical_rows(DeltaTable(path, version, clock=clock).to_pyarrow_table())


def deltalake_rows(path: Path, version: int | None = None) -> list[str] | None:
    """The rows by deltalake; None where it says that it does not know a feature of the table."""
    try:
        table = deltalake.DeltaTable(str(path), version=version)
        found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    except Exception as error:
        if any(word in str(error).lower() for word in _UNSUPPORTED):
            return None
        raise
    return canonical_rows(pa.table(found))


class Mirror:
    """The table's commits and data files under another root, and nothing else: all of its history.

    Names are hard links, so that what a vacuum or a clean-up deletes stays here.
    """

    def __init__(self, source: Path, root: Path, clock: Clock) -> None:
        self._source, self._root, self._clock = source, root, clock
        self._table: DeltaTable | None = None

    def from_commits(self) -> list[str]:
        """The newest rows by who has nothing but commits."""
        for path in _files(self._source):
            if path.parts[0] != _LOG or (
                path.suffix == ".json" and path.stem.isdigit() and len(path.parts) == 2
            ):
                _link(self._source / path, self._root / path)
        self._table = DeltaTable(self._root, clock=self._clock)
        return canonical_rows(self._table.to_pyarrow_table())

    def from_checkpoint(self) -> list[str]:
        """As that, by who has a checkpoint of the version, written from the commits, and none of them."""
        assert self._table is not None
        log, aside = self._root / _LOG, self._root / "_aside"
        before = set(_files(log))
        info = write_checkpoint(self._table.snapshot)
        version = self._table.version()
        assert info.version == version
        aside.mkdir()
        for path in before:
            if int(path.stem) < version:
                os.rename(log / path, aside / path)
        rows = ours(self._root, self._clock)
        for path in _files(log):
            if path not in before:
                (log / path).unlink()
        for path in aside.iterdir():
            os.rename(path, log / path.name)
        aside.rmdir()
        return rows


def _files(root: Path) -> list[Path]:
    found = []
    for folder, _, names in os.walk(root):
        inside = Path(folder).relative_to(root)
        found += [inside / name for name in names if not name.startswith(".")]
    return found


def data_files(root: Path) -> frozenset[str]:
    """Every file of the table that is not part of its log."""
    return frozenset(str(path) for path in _files(root) if path.parts[0] != _LOG)


def newest_version(root: Path) -> int:
    """By the names of its commits."""
    names = (path.stem for path in (root / _LOG).glob("*.json"))
    return max(int(name) for name in names if name.isdigit())


def _link(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
