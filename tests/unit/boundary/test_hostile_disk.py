"""A disk that is full, refuses or breaks makes public calls raise typed errors, and nothing stays behind."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.clock import SystemClock
from delta_core.errors import (
    CommitRejectedError,
    DeltaError,
    StorageError,
    StorageFullError,
    StorePermissionError,
)
from delta_core.storage import local, local_system
from tests.support.hostile_calls import Call, calls, prepared

CALLS = [call for call in calls() if not call.name.startswith(("CommitProp", "Identity", "define"))]
WRITES = (
    "TableOptimizer.compact",
    "TableOptimizer.z_order",
    "TableOptimizer.purge",
    "TableAlterer.add_columns",
    "DeltaTable.create",
    "DeltaTable.create_checkpoint",
    "DeltaTable.delete",
    "DeltaTable.update",
    "clone_table",
    "convert_to_deltalake",
    "write_deltalake",
    "GroupCommit.append",
)
_READS = frozenset({"read", "scandir", "stat", "fstat", "lstat"})
_ALL = frozenset({"open", "write", "fsync", "link", "replace", "unlink", "utime"}) | _READS


class BrokenSystem:
    """The functions of `os`, of which some fail."""

    def __init__(self, code: int, failing: frozenset[str]) -> None:
        self._code = code
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        return self._failed if name in self._failing else getattr(os, name)

    def _failed(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(self._code, os.strerror(self._code), "the disk")


class BrokenArrow:
    """Arrow, whose files cannot be opened or, on a full disk, be written to."""

    def __init__(self, code: int, modes: str) -> None:
        self._code = code
        self._modes = modes

    def __getattr__(self, name: str) -> Any:
        return getattr(pa, name)

    def OSFile(self, path: Any, mode: str = "r") -> Any:  # noqa: N802 - the name is Arrow's
        if mode[0] not in self._modes:
            return pa.OSFile(path, mode)
        if mode == "wb" and self._code == errno.ENOSPC:
            # What is written here finds no room, and the file as it should be is there.
            pa.OSFile(path, mode).close()
            return pa.OSFile("/dev/full", mode)
        raise OSError(self._code, os.strerror(self._code), os.fsdecode(path))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("tables"))


def broken(monkeypatch: pytest.MonkeyPatch, code: int, failing: frozenset[str], modes: str) -> None:
    system = BrokenSystem(code, failing)
    monkeypatch.setattr(local, "os", system)
    monkeypatch.setattr(local_system, "os", system)
    monkeypatch.setattr(local, "pa", BrokenArrow(code, modes))
    # What became of a commit is asked again and again, until the time for it is over.
    slept = [0.0]
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: slept.append(seconds + 60))
    monkeypatch.setattr(SystemClock, "monotonic_seconds", lambda self: time.monotonic() + sum(slept))


def left_behind(place: Path) -> Iterator[Path]:
    return place.rglob(".tmp-*")


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_a_disk_that_fails_is_a_typed_error(
    call: Call, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code in (errno.ENOSPC, errno.EACCES, errno.EIO):
        for failing, modes in ((_ALL, "rw"), (_READS, "r"), (frozenset({"fsync"}), "")):
            with monkeypatch.context() as patch:
                broken(patch, code, failing, modes)
                with suppress(DeltaError):
                    call(places)
    assert list(left_behind(places)) == []


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.ENOSPC, StorageFullError), (errno.EACCES, StorePermissionError), (errno.EIO, StorageError)],
)
def test_a_write_says_what_the_disk_said(
    name: str, code: int, kind: type[StorageError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (call,) = [one for one in CALLS if one.name == name]
    place = prepared(tmp_path)
    before = sorted(path for path in place.rglob("*") if path.is_file())
    with monkeypatch.context() as patch:
        broken(patch, code, frozenset({"write", "link", "replace"}), "w")
        with pytest.raises(DeltaError) as caught:
            call(place)
    assert os.strerror(code) in str(caught.value)
    # What the store refuses to a commit is a commit's rejection.
    assert isinstance(caught.value, (kind, CommitRejectedError))
    if code == errno.ENOSPC:
        assert type(caught.value) is StorageFullError
        assert "ENOSPC" in str(caught.value)
        assert "Make room" in caught.value.fix
        assert caught.value.retryable
    assert sorted(path for path in place.rglob("*") if path.is_file()) == before
    call(place)
