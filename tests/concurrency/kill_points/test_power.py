"""The model of a power failure loses what was not flushed, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.concurrency.kill_points.power import Journal, PowerLoss, leave_durable

OLD = b"old"
NEW = b"new bytes"


class Disk:
    """A directory with one old file, and a journal of it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        (self.root / "inner").mkdir(parents=True)
        self.write("old", OLD)
        self.journal = Journal(self.root, folder / "journal")
        self._folder = folder / "journal"

    def write(self, name: str, data: bytes) -> None:
        (self.root / name).write_bytes(data)

    def sync(self, name: str) -> None:
        descriptor = os.open(self.root / name, os.O_RDONLY)
        self.journal.synced(descriptor)
        os.close(descriptor)

    def after(self, loss: PowerLoss, seed: int = 0) -> dict[str, bytes]:
        leave_durable(self.root, self._folder, loss, Random(seed))
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_what_was_there_stays(disk: Disk) -> None:
    times = (disk.root / "old").stat().st_mtime_ns
    assert disk.after(PowerLoss.ALL) == {"old": OLD}
    assert (disk.root / "old").stat().st_mtime_ns == times
    assert (disk.root / "inner").is_dir()


@pytest.mark.parametrize(
    ("flush", "all_lost", "bytes_lost"),
    [
        ((), {"old": OLD}, {"old": OLD, "inner/new": bytes(len(NEW))}),
        (("inner/new",), {"old": OLD}, {"old": OLD, "inner/new": NEW}),
        (("inner",), {"old": OLD, "inner/new": bytes(len(NEW))}, {"old": OLD, "inner/new": bytes(len(NEW))}),
        (("inner/new", "inner"), {"old": OLD, "inner/new": NEW}, {"old": OLD, "inner/new": NEW}),
    ],
)
def test_a_file_needs_its_bytes_and_its_name_flushed(
    disk: Disk,
    tmp_path: Path,
    flush: tuple[str, ...],
    all_lost: dict[str, bytes],
    bytes_lost: dict[str, bytes],
) -> None:
    twin = Disk(tmp_path / "twin")
    for one in (disk, twin):
        one.write("inner/new", NEW)
        for name in flush:
            one.sync(name)
    assert disk.after(PowerLoss.ALL) == all_lost
    assert twin.after(PowerLoss.BYTES) == bytes_lost


def _rename(disk: Disk) -> None:
    disk.write("temporary", NEW)
    disk.sync("temporary")
    os.replace(disk.root / "temporary", disk.root / "old")


def _delete(disk: Disk) -> None:
    os.unlink(disk.root / "old")
    # What would have the deleted file's number, if it were free.
    disk.write("another", NEW)
    os.unlink(disk.root / "another")


def _write_again(disk: Disk) -> None:
    disk.write("old", NEW)


@pytest.mark.parametrize("change", [_rename, _delete, _write_again])
def test_a_change_that_is_not_flushed_has_not_been(disk: Disk, change: Callable[[Disk], None]) -> None:
    change(disk)
    assert disk.after(PowerLoss.ALL) == {"old": OLD}


def test_of_what_is_not_flushed_some_is_lost(tmp_path: Path) -> None:
    found = set()
    for seed in range(20):
        disk = Disk(tmp_path / str(seed))
        disk.write("new", NEW)
        found.add(disk.after(PowerLoss.SOME, seed).get("new"))
    assert found == {None, NEW, bytes(len(NEW))}
