"""The tables that operations start from, as folders that are copied for each point.

They are the conflict matrix's table, with its objects written out and dated back, so that there is something
for a vacuum and for the cleaning of the log.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.dml.definition.properties import set_properties
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.concurrency.kill_points.operation import Start
from tests.concurrency.kill_points.places import BUCKET, EntriesInFolder, Place, table_root
from tests.concurrency.kill_points.recovery import LEFT
from tests.concurrency.matrix.layouts import template
from tests.concurrency.matrix.operations import LEVELS
from tests.concurrency.matrix.state import TableState

_AGE_MS = 60 * 86_400_000
_CREATED = re.compile(rb'"createdTime":(\d+)')

_INTERVAL = {"delta.checkpointInterval": "7"}
_EARLIER_CHECKPOINT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTable:
    """A start.

    Attributes:
        folder: to be copied.
        version: the newest; -1 where there is no table.
        state: its rows and definition.
        shown: the same as someone sees it who reads the objects alone.
        paths: the file of each label.
    """

    folder: Path
    version: int
    state: TableState | None
    shown: TableState | None
    paths: dict[str, str]


def start_table(start: Start, place: Place, folder: Path) -> StartTable:
    """Make a start in a new folder. The one with a dead writer is made of `TABLE` by killing one."""
    model = template(LEVELS[1])
    state = replace(model.state, keys=())
    root = table_root(folder)
    if start is Start.NOTHING:
        root.parent.mkdir(parents=True)
        return StartTable(folder=folder, version=-1, state=None, shown=None, paths={})
    for path in sorted(model.store.paths()):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_CREATED.sub(_dated_back, model.store.read(path)))
    version = model.version
    if start is Start.DUE:
        store = LocalLogStore(root)
        set_properties(Snapshot.load(store), _INTERVAL)
        version += 1
        write_checkpoint(Snapshot.load(store, version=_EARLIER_CHECKPOINT))
        state = state.with_properties(_INTERVAL)
    # The time of the newest commit is how late it is for the store.
    _date_back(root, but=f"{version:020}.json" if start is Start.DUE else "")
    if place is Place.DYNAMODB:
        write_entries(folder, version)
    shown = state
    if start is Start.INTERRUPTED:
        version, state = version + 1, state.plus(LEFT)
    return StartTable(folder=folder, version=version, state=state, shown=shown, paths=model.paths)


def copied(start: StartTable, folder: Path) -> Path:
    """A copy of the start's folder, times included."""
    shutil.copytree(start.folder, folder)
    return folder


def _dated_back(match: re.Match[bytes]) -> bytes:
    return b'"createdTime":%d' % (int(match[1]) - _AGE_MS)


def _date_back(root: Path, *, but: str) -> None:
    """A second between one commit and the next, as readers expect it."""
    for path in root.rglob("*"):
        if path.is_file() and path.name != but:
            version = int(path.name[:20]) if path.name[:20].isdigit() else 0
            seconds = path.stat().st_mtime - _AGE_MS / 1000 + version
            os.utime(path, (seconds, seconds))


def write_entries(folder: Path, version: int) -> None:
    """What DynamoDB holds of a table up to a version."""
    entries = EntriesInFolder(folder / "entries")
    for number in range(version + 1):
        name = f"{number:020}.json"
        item = {
            "tablePath": f"s3a://{BUCKET}/table",
            "fileName": name,
            "tempPath": f".tmp/{name}.gone",
            "complete": "true",
        }
        entries.put_item(Item={key: {"S": value} for key, value in item.items()})
