"""What a caller does with the news of its append is no matter for the others."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable, GroupCommit, write_deltalake
from tests.support.waiting import PATIENCE_SECONDS


def test_a_callback_that_raises_does_not_fail_what_is_committed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"a": pa.array([1], pa.int64())})
    write_deltalake(uri, rows)
    held = threading.Event()

    def raises(future: Future[Any]) -> None:
        raise CancelledError

    with GroupCommit(uri) as group:
        first = group.append(rows)
        first.add_done_callback(lambda future: held.wait(PATIENCE_SECONDS))
        outcomes = [group.append(rows) for _ in range(3)]
        outcomes[0].add_done_callback(raises)
        held.set()
        versions = [outcome.result(timeout=PATIENCE_SECONDS).version for outcome in outcomes]
        assert group.append(rows).result(timeout=PATIENCE_SECONDS).version > max(versions)
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 6


def test_a_callback_that_raises_over_a_failure_does_not_end_the_group(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"a": pa.array([1], pa.int64())})
    write_deltalake(uri, rows)

    def raises(future: Future[Any]) -> None:
        raise CancelledError

    with GroupCommit(uri) as group:
        for _ in range(3):
            unfit = group.append(pa.table({"other": ["x"]}))
            unfit.add_done_callback(raises)
        assert group.append(rows).result(timeout=PATIENCE_SECONDS).version == 1
