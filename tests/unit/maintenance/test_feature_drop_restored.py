"""Versions of before a feature was dropped come back: rows with the ids that they had, each id once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.maintenance.clone.clone import clone_table
from delta_core.maintenance.restore.plan import plan_restore
from tests.support.dropped_tables import actions, ids, make, rows, snapshot_of


def row_ids(path: Path, version: int | None = None, **options: object) -> dict[int, tuple[int, int]]:
    """Ids and commit versions of the rows, by the column `id`."""
    table = DeltaTable(path, version=version, **options)  # type: ignore[arg-type]
    found: pa.Table = table.to_pyarrow_table(row_ids=True)
    return {
        row["id"]: (row["_row_id"], row["_row_commit_version"])
        for row in found.select(["id", "_row_id", "_row_commit_version"]).to_pylist()
    }


@pytest.mark.parametrize("again", [False, True])
def test_rows_come_back_with_the_ids_that_they_had(tmp_path: Path, again: bool) -> None:
    table = make(tmp_path, enableRowTracking="true")
    version, expected = table.version(), row_ids(tmp_path)
    assert len({number for number, _ in expected.values()}) == 29
    table.alter.drop_feature("rowTracking")
    table.delete("id >= 10 and id < 20")
    if again:
        # The rows that are left get other ids, which those that come back have, too.
        table.alter.set_properties({"delta.enableRowTracking": "true"})
        assert {number for number, _ in row_ids(tmp_path).values()} & {
            number for row, (number, _) in expected.items() if 10 <= row < 20
        }
    plan = plan_restore(snapshot_of(tmp_path), version=version)
    assert len(plan.renumbered) == 2
    assert len(plan.to_json()["renumbered"]) == 2
    table.restore(version)
    assert row_ids(tmp_path) == expected
    added = actions(tmp_path, table.version(), "add")
    assert sorted(add["dataChange"] for add in added) == [False, False, True]
    assert plan_restore(snapshot_of(tmp_path), version=version).is_empty
    write_deltalake(tmp_path, rows(100), mode="append")
    after = row_ids(tmp_path)
    assert len({number for number, _ in after.values()}) == len(after) == 39


def test_a_restore_to_before_all_ids_leaves_the_files_alone(tmp_path: Path) -> None:
    table = make(tmp_path)
    version = table.version()
    table.alter.set_properties({"delta.enableRowTracking": "true"})
    assert plan_restore(snapshot_of(tmp_path), version=version).renumbered == ()
    table.restore(version)
    assert ids(tmp_path) == ids(tmp_path, version)
    assert actions(tmp_path, table.version(), "add") == []


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_follows_a_source_whose_rows_have_other_ids_since(tmp_path: Path, shallow: bool) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    table = make(source, enableRowTracking="true")
    clone_table(source, clone, shallow=shallow)
    assert row_ids(clone, allowed_roots=[source]) == row_ids(source)
    table.alter.drop_feature("rowTracking")
    table.alter.set_properties({"delta.enableRowTracking": "true"})
    table.delete("id = 15")  # its file is written again, with the ids under the name that they have by now
    clone_table(source, clone, shallow=shallow)
    assert row_ids(clone, allowed_roots=[source]) == row_ids(source)
