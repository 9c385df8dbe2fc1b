"""What readers would refuse is refused before it is committed: it would take the whole table away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, GroupCommit, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.errors import CommitError, ConfigurationError, DeltaError
from delta_core.transaction.commit_properties import CommitProperties
from tests.support.waiting import PATIENCE_SECONDS

ROWS = pa.table({"a": pa.array([1], pa.int64())})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_deltalake(uri, ROWS)
    return uri


KEYS: list[dict[str, Any]] = [
    {"app_id": "x", "version": "1"},
    {"app_id": "x", "version": 1.5},
    {"app_id": "x", "version": True},
    {"app_id": "x", "version": 2**63},
    {"app_id": None, "version": 1},
    {"app_id": 7, "version": 1},
    {"app_id": ["x"], "version": 1},
    {"app_id": "x", "version": 1, "last_updated_ms": 1.5},
    {"app_id": "x", "version": 1, "last_updated_ms": 2**63},
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_that_no_table_holds(uri: str, key: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="not an idempotency key"):
        write_deltalake(uri, ROWS, mode="append", txn=SetTransaction(**key))
    with GroupCommit(uri) as group:
        with pytest.raises(ConfigurationError, match="not an idempotency key"):
            group.append(ROWS, txn=SetTransaction(**key))
        with pytest.raises(ConfigurationError, match="not an idempotency key"):
            group.append(ROWS, txn="job")  # type: ignore[arg-type]
        assert group.append(ROWS).result(timeout=PATIENCE_SECONDS).version == 1
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2


CHANGES: list[Callable[[DeltaTable], object]] = [
    lambda table: table.alter.set_properties({"delta.checkpointInterval": [5]}),  # type: ignore[dict-item]
    lambda table: table.alter.set_properties({"x": None}),  # type: ignore[dict-item]
    lambda table: table.alter.set_name(5),  # type: ignore[arg-type]
    lambda table: table.alter.set_description("x" * (64 << 20)),
]


@pytest.mark.parametrize("change", CHANGES, ids=["list", "null", "name", "long"])
def test_a_definition_that_no_reader_takes(uri: str, change: Callable[[DeltaTable], object]) -> None:
    table = DeltaTable(uri)
    with pytest.raises(DeltaError):
        change(table)
    assert DeltaTable(uri).version() == 0
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 1


def test_a_table_is_not_created_with_what_nobody_reads(tmp_path: Path) -> None:
    with pytest.raises(DeltaError):
        write_deltalake(
            str(tmp_path / "n"),
            ROWS,
            configuration={"x": [5]},  # type: ignore[dict-item]
        )
    assert not (tmp_path / "n" / "_delta_log").exists()


def test_provenance_that_is_too_long(uri: str) -> None:
    properties = CommitProperties(user_metadata="x" * (64 << 20))
    with pytest.raises(CommitError, match="commitInfo"):
        write_deltalake(uri, ROWS, mode="append", commit_properties=properties)
    assert DeltaTable(uri).version() == 0
    # What was written for it went again.
    assert len(list(Path(uri).glob("*.parquet"))) == 1
