"""Hundreds of paths out of the table, wherever a log can name a file: nothing outside is opened."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import AddCdcFile, AddFile, DeletionVectorDescriptor
from delta_core.clock import ManualClock
from delta_core.errors import DeltaError, DeltaWarning, InvalidTableError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.maintenance.restore.plan import plan_restore
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.run import Run
from delta_core.scan.appended import appended_batches
from delta_core.scan.change_data import ChangeDataScan
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.hostile_paths import AuditedStore, hostile_paths
from tests.support.log_builder import DAY_MS, NOW_MS, LogBuilder, add, metadata, protocol, remove
from tests.support.soak import rounds

FEATURES = frozenset({"deletionVectors", "v2Checkpoint", "changeDataFeed"})
PROTOCOL = protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=FEATURES - {"changeDataFeed"},
    writer_features=FEATURES,
)
CDF = {"delta.enableChangeDataFeed": "true"}
_BUFFER = io.BytesIO()
pq.write_table(pa.table({"id": [1]}), _BUFFER)
FILE = _BUFFER.getvalue()
LATER = ManualClock(NOW_MS + 30 * DAY_MS)


class Case:
    """A table with two good files, next to a file that is none of its business."""

    def __init__(self, folder: Path, *, plain: bool = False) -> None:
        self.outside = folder / "outside" / "secret.parquet"
        self.outside.parent.mkdir()
        self.outside.write_bytes(FILE)
        self.log = LogBuilder(folder / "table")
        self.log.root.mkdir()
        for name in ("a.parquet", "b.parquet"):
            (self.log.root / name).write_bytes(FILE)
        rules = (protocol(), metadata()) if plain else (PROTOCOL, metadata(configuration=CDF))
        self.log.commit(*rules, self.good("a.parquet"), self.good("b.parquet"))

    def good(self, path: str, **changes: Any) -> AddFile:
        return add(path, size_bytes=len(FILE), stats=None, **changes)

    def opened(self) -> Snapshot:
        self.store = AuditedStore(self.log.root)
        return Snapshot.load(self.store, clock=LATER)


def read(case: Case, raw: str) -> None:
    case.log.commit(case.good(raw))
    Scan(case.opened()).to_table()


def read_a_shard(case: Case, raw: str) -> None:
    case.log.commit(case.good(raw))
    list(Scan(case.opened()).to_batches(shard=(0, 1)))


def tail(case: Case, raw: str) -> None:
    case.log.commit(case.good(raw))
    list(appended_batches(case.opened(), since_version=0))


def optimize(case: Case, raw: str) -> None:
    case.log.commit(case.good(raw))
    snapshot = case.opened()
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(clock=LATER))


def deletion_vector(case: Case, raw: str) -> None:
    dv = DeletionVectorDescriptor(
        storage_type="p", path_or_inline_dv=raw, offset=1, size_in_bytes=30, cardinality=1
    )
    case.log.commit(case.good("a.parquet", deletion_vector=dv))
    Scan(case.opened()).to_table()


def change_data(case: Case, raw: str) -> None:
    case.log.commit(AddCdcFile(path=raw, partition_values={"p": "1"}, size_bytes=len(FILE)))
    ChangeDataScan(case.opened(), starting_version=1).to_table()


def removed(case: Case, raw: str) -> None:
    case.log.commit(remove(raw, data_change=True, partition_values={"p": "1"}))
    ChangeDataScan(case.opened(), starting_version=1).to_table()


def sidecar(case: Case, raw: str) -> None:
    lines: list[dict[str, object]] = [
        {"checkpointMetadata": {"version": 0}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
                      "writerFeatures": ["v2Checkpoint"]}},
        {"metaData": json.loads((case.log.log / f"{0:020d}.json").read_text().splitlines()[1])["metaData"]},
        {"sidecar": {"path": raw, "sizeInBytes": len(FILE), "modificationTime": 1}},
    ]  # fmt: skip
    name = f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    case.log.raw(name, "\n".join(map(json.dumps, lines)).encode())
    case.log.remove_commits([0])
    case.log.commit(case.good("c.parquet"), version=1)
    (case.log.root / "c.parquet").write_bytes(FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)  # it looks for a way around the checkpoint first
        Scan(case.opened()).to_table()


OPENING = (
    read,
    read_a_shard,
    tail,
    optimize,
    deletion_vector,
    change_data,
    removed,
    sidecar,
)


def test_there_are_enough_of_them(tmp_path: Path) -> None:
    paths = hostile_paths(tmp_path / "table", tmp_path / "outside" / "secret.parquet")
    assert len(paths) >= 200
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("operation", OPENING, ids=lambda operation: operation.__name__)
def test_what_opens_files_refuses_them(tmp_path: Path, operation: Callable[[Case, str], None]) -> None:
    wrong: list[str] = []
    paths = hostile_paths(Path("/base/table"), Path("/base/outside/secret.parquet"))
    # Operations that follow each other have every path between them.
    stride = rounds(usual=3, soak=1)
    for number, raw in enumerate(paths[OPENING.index(operation) % stride :: stride]):
        folder = tmp_path / str(number)
        folder.mkdir()
        raw = raw.replace("/base/", f"{folder}/").replace("%2fbase%2f", f"{folder}/".replace("/", "%2f"))
        case = Case(folder, plain=operation is optimize)
        try:
            operation(case, raw)
        except DeltaError as error:
            if not isinstance(error, InvalidTableError):
                wrong.append(f"{raw}: {error!r}")
        else:
            wrong.append(f"{raw}: no error")
        if case.store.outside():
            wrong.append(f"{raw}: opened {case.store.outside()}")
    assert wrong == []


def test_plans_name_nothing_outside(tmp_path: Path) -> None:
    """Paths out of the table protect nothing and are never proposed for deletion."""
    case = Case(tmp_path, plain=True)
    paths = hostile_paths(case.log.root, case.outside)
    usable = [raw for raw in paths if raw and "\0" not in raw]
    for raw in usable:
        case.log.commit(remove(raw, deletion_timestamp_ms=NOW_MS, partition_values={}))
    (case.log.root / "stray.parquet").write_bytes(b"x")
    (case.log.root / "link").symlink_to(case.outside.parent)
    (case.log.root / "link.parquet").symlink_to(case.outside)
    snapshot = case.opened()
    planned = {file.path for file in plan_vacuum(snapshot, clock=ManualClock(2**45)).files}
    assert planned == {"stray.parquet"}
    with contextlib.suppress(DeltaError):
        plan_restore(snapshot, version=0, run=Run(clock=LATER))
    assert case.store.outside() == []
