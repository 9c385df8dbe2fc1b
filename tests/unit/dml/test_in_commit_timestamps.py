"""Every surface that commits puts the time into its commit, on a table that has in-commit timestamps."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.dml.group_commit import GroupCommit
from delta_core.dml.write import write_deltalake
from delta_core.errors import InvalidTablePropertyError, UnsupportedTableFeatureError
from delta_core.jobs.lease import fence_transaction
from delta_core.log.log_path import commit_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table import DeltaTable
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.in_commit_time import ENABLEMENT_PROPERTIES

ENABLE = "delta.enableInCommitTimestamps"
SINCE_VERSION, SINCE_TIME = ENABLEMENT_PROPERTIES


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids]})


def in_commits(root: Path) -> list[int | None]:
    """The times in the commits, each of which begins with its `commitInfo`."""
    found = []
    for version in range(DeltaTable(root).version() + 1):
        first = json.loads((root / commit_path(version)).read_text().splitlines()[0])
        found.append(first["commitInfo"].get("inCommitTimestamp"))
    return found


def change_in_every_way(root: Path) -> None:
    """One commit at least from each surface that this package has without Spark."""
    write_deltalake(root, rows(3, 4), mode="append")
    write_deltalake(root, rows(6), mode="overwrite", predicate="p = 'p0'")
    write_deltalake(root, rows(5), mode="overwrite", predicate="id >= 3 AND id < 7 AND p = 'p1'")
    with GroupCommit(root) as group:
        for outcome in [group.append(rows(number)) for number in (10, 11)]:
            outcome.result()
    table = DeltaTable(root)
    table.alter.set_properties({"delta.checkpointInterval": "5"})
    table.alter.add_constraint({"small": "id < 1000"})
    for number in (20, 21, 22):
        write_deltalake(table, rows(number), mode="append")
    table.optimize.compact()
    table.optimize.z_order(["id"])
    write_deltalake(root, rows(1), mode="overwrite")
    table = DeltaTable(root)
    table.restore(table.version() - 1)
    table.vacuum(dry_run=False)
    store = LocalLogStore(root)
    snapshot = Snapshot.load(store)
    raise_for_result(fence_transaction(snapshot, "job", 1, former_holder="x").commit())
    write_checkpoint(Snapshot.load(store))


def test_a_table_that_is_created_with_them(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1, 2), partition_by=["p"], configuration={ENABLE: "true"})
    change_in_every_way(tmp_path)
    times = in_commits(tmp_path)
    assert len(times) > 12
    assert all(later > earlier for earlier, later in pairwise(times))  # type: ignore[operator]
    table = DeltaTable(tmp_path)
    assert "inCommitTimestamp" in (table.protocol().writer_features or ())
    assert table.protocol().min_reader_version == 1
    assert not set(ENABLEMENT_PROPERTIES) & set(table.metadata().configuration)
    assert [entry.timestamp_ms for entry in table.history()] == times[::-1]
    for version, time in enumerate(times):
        table.load_as_version(timestamp_ms=time)
        assert table.version() == version


def test_a_table_that_gets_them_later(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1, 2), partition_by=["p"])
    write_deltalake(tmp_path, rows(5), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.set_properties({ENABLE: "true"})
    change_in_every_way(tmp_path)
    times = in_commits(tmp_path)
    assert times[:2] == [None, None]
    since = times[2:]
    assert all(later > earlier for earlier, later in pairwise(since))  # type: ignore[operator]
    configuration = DeltaTable(tmp_path).metadata().configuration
    assert (configuration[SINCE_VERSION], configuration[SINCE_TIME]) == ("2", str(times[2]))
    before = (tmp_path / commit_path(1)).stat().st_mtime_ns // 10**6
    assert times[2] is not None
    assert times[2] > before
    table = DeltaTable(tmp_path)
    for version in range(2, len(times)):
        table.load_as_version(timestamp_ms=times[version])
        assert table.version() == version
    table.load_as_version(timestamp_ms=before)
    assert table.version() == 1


def test_restores_to_before_and_to_an_earlier_time_with_them(tmp_path: Path) -> None:
    """Whatever is restored, the table says since when its commits carry their time as it is."""
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    table.alter.set_properties({ENABLE: "true"})
    table.alter.unset_properties([ENABLE])
    assert SINCE_VERSION not in table.metadata().configuration
    table.alter.set_properties({ENABLE: "true"})
    assert table.metadata().configuration[SINCE_VERSION] == "3"
    present = table.metadata()
    assert not table.restore(1).changes.properties  # nothing but the old answer differs
    assert table.version() == 3
    write_deltalake(table, rows(2), mode="append")
    table.restore(1)
    assert (table.version(), table.metadata()) == (5, present)
    write_deltalake(table, rows(3), mode="append")
    table.restore(0)  # of which no commit had its time
    assert (table.version(), table.metadata()) == (7, present)
    assert [time is None for time in in_commits(tmp_path)] == [
        True, False, True, False, False, False, False, False
    ]  # fmt: skip


def test_the_answer_cannot_be_unset(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    table.alter.set_properties({ENABLE: "true"})
    present = table.metadata()
    for key in ENABLEMENT_PROPERTIES:
        with pytest.raises(InvalidTablePropertyError, match=key):
            table.alter.unset_properties([key])
    assert table.metadata() == present


@pytest.mark.parametrize("value", ["false", "FALSE"])
def test_what_is_not_turned_on_needs_no_feature(tmp_path: Path, value: str) -> None:
    write_deltalake(tmp_path, rows(1), configuration={ENABLE: value})
    table = DeltaTable(tmp_path)
    assert table.protocol().min_writer_version == 2
    assert in_commits(tmp_path) == [None]


def test_the_preview_stays_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match="inCommitTimestamp-preview"):
        write_deltalake(tmp_path, rows(1), configuration={f"{ENABLE}-preview": "true"})
