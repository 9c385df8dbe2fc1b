"""A handle's clock is the clock of all that is committed through it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.schema.types import LONG, StructField

Change = Callable[[DeltaTable], object]

CHANGES: dict[str, Change] = {
    "add columns": lambda table: table.alter.add_columns(StructField(name="b", data_type=LONG)),
    "set properties": lambda table: table.alter.set_properties({"owner": "ann"}),
    "row tracking": lambda table: table.alter.set_properties({"delta.enableRowTracking": "true"}),
    "add feature": lambda table: table.alter.add_feature("vacuumProtocolCheck"),
    "add constraint": lambda table: table.alter.add_constraint({"c": "a >= 0"}),
    "set domain": lambda table: table.alter.set_domain_metadata("team", "x"),
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["a"]),
    "number rows": lambda table: table.optimize.enable_row_tracking(),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_its_commits_have_its_time(tmp_path: Path, name: str) -> None:
    now_ms = SYSTEM_CLOCK.now_ms() + 3_600_000
    configuration = {"delta.enableInCommitTimestamps": "true"}
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}), configuration=configuration)
    write_deltalake(tmp_path / "t", pa.table({"a": [2]}), mode="append")
    table = DeltaTable(tmp_path / "t", clock=ManualClock(now_ms))
    CHANGES[name](table)
    assert table.version() > 1
    for entry in table.history(table.version() - 1):
        assert entry.commit_info.timestamp_ms >= now_ms
        assert 0 <= entry.commit_info.in_commit_timestamp_ms - now_ms < 60_000


def test_a_purge_has_its_time(tmp_path: Path) -> None:
    clock = ManualClock(SYSTEM_CLOCK.now_ms() + 3_600_000)
    configuration = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}), configuration=configuration)
    table = DeltaTable(tmp_path / "t", clock=clock)
    table.delete("a = 2")
    table.optimize.purge()
    assert table.history(1)[0].commit_info.timestamp_ms >= clock.now_ms()
    times = table.snapshot.tombstones()["deletion_timestamp_ms"].to_pylist()
    assert times
    assert min(times) >= clock.now_ms()
