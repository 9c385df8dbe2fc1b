"""Paths whose escapes are not UTF-8: each is a file of its own, as names of local files are."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.maintenance.vacuum import plan_vacuum
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

PATHS = ["p=1/x%FF-part-00000.parquet", "p=1/x%FE-part-00000.parquet", "p=1/x%EF%BF%BD-part-00000.parquet"]


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t").create(*(add(path) for path in PATHS))


def live(log: LogBuilder) -> list[str]:
    found: list[str] = Snapshot.load(log.store).files.to_table(["path"]).column("path").to_pylist()
    return sorted(found)


@pytest.mark.parametrize("checkpointed", [False, True])
def test_each_is_a_file_of_its_own(log: LogBuilder, checkpointed: bool) -> None:
    if checkpointed:
        write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    assert live(log) == sorted(PATHS)
    log.commit(remove(PATHS[0].lower()))
    assert live(log) == sorted(PATHS[1:])
    log.commit(add(PATHS[1].lower()))
    assert live(log) == sorted([PATHS[1].lower(), PATHS[2]])


def test_each_is_read_and_compacted(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t")
    log.commit(protocol(), metadata(partition_columns=()))
    for number, name in enumerate((b"x\xff.parquet", b"x\xfe.parquet", "x\ufffd.parquet".encode())):
        pq.write_table(pa.table({"p": ["a"], "id": [number]}), log.root / "new.parquet")
        size_bytes = (log.root / "new.parquet").stat().st_size
        (log.root / "new.parquet").rename(log.root / os.fsdecode(name))
        log.commit(add(quote(name), partition_values={}, size_bytes=size_bytes))
    table = DeltaTable(log.root)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    table.optimize.compact()
    assert sorted(DeltaTable(log.root).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    assert DeltaTable(log.root).snapshot.files.num_files == 1


def test_vacuum_keeps_the_file_that_is_live(log: LogBuilder) -> None:
    (log.root / "p=1").mkdir()
    names = [os.fsdecode(name) for name in (b"p=1/x\xff-part-00000.parquet", b"p=1/x\xfd-part-00000.parquet")]
    for name in names:
        (log.root / name).touch()
    later = ManualClock(2**45)
    plan = plan_vacuum(Snapshot.load(log.store, clock=later), clock=later)
    assert [file.path for file in plan.files] == names[1:]
