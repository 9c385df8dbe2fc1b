"""After unclear answers a writer ends with its bytes in the store, whatever became of the requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.clock import ManualClock
from delta_core.conformance.check import Context
from delta_core.conformance.objects import commit_path, settle
from delta_core.conformance.place import Place
from delta_core.storage.local import LocalLogStore
from tests.support.faulty_store import FaultyStore, PutFault


@pytest.mark.parametrize(
    "faults",
    [
        [],
        [PutFault.DROP_REQUEST],
        [PutFault.CONFLICT_409],
        # A gateway may answer that the object exists, and hang up, before it has read the body.
        [PutFault.DROP_RESPONSE] * 10,
    ],
)
def test_the_bytes_are_there_in_the_end(tmp_path: Path, faults: list[PutFault]) -> None:
    store = FaultyStore(LocalLogStore(tmp_path / "table"))
    store.puts = faults
    context = Context(place=Place(str(tmp_path), {}), writers=1, clock=ManualClock())
    settle(context, store, commit_path(0), b"a line\n")
    assert store.inner.read(commit_path(0)) == b"a line\n"
