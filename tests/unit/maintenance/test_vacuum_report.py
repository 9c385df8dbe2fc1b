"""What a vacuum says: in its plan, while it runs, in its two commits and in its result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_core.actions.set_transaction import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import MaintenanceError, StorageError
from delta_core.execution.progress import ProgressEvent, ProgressReporter
from delta_core.maintenance.vacuum import VacuumPlan, apply, apply_vacuum, plan_vacuum
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
SIZES = {"orphan-0": 7, "orphan-1": 11, "d=1/orphan-2": 13}


class Events:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def emit(self, event: ProgressEvent) -> None:
        self.seen.append((event.name, event.done, event.total, dict(event.detail)))


@pytest.fixture
def path(make_table: Callable[..., Path]) -> Path:
    """A table of two files, and three old files that it knows nothing of."""
    path = make_table(commits=2)
    for name, size in SIZES.items():
        file = path / f"{name}.parquet"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * size)
        at = SYSTEM_CLOCK.now_ms() / 1000 - 20 * 86_400
        os.utime(file, (at, at))
    return path


def test_a_plan_says_what_it_found(path: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(path)
    now_ms = SYSTEM_CLOCK.now_ms()
    plan = plan_vacuum(snapshot, retention_hours=200, clock=ManualClock(now_ms))
    live = snapshot.files.total_bytes
    assert (plan.table_id, plan.version) == (snapshot.metadata.id, 1)
    assert (plan.retention.retention_ms, plan.retention.required_ms) == (200 * HOUR_MS, 168 * HOUR_MS)
    assert (plan.retention.specified, plan.retention.enforced) == (True, True)
    assert plan.cutoff_ms == now_ms - 200 * HOUR_MS - 300_000
    assert (plan.listed_files, plan.listed_bytes, plan.num_directories) == (5, live + 31, 2)
    assert {file.path: file.size_bytes for file in plan.files} == {
        f"{name}.parquet": size for name, size in SIZES.items()
    }
    assert [file.path for file in plan.files] == sorted(f"{name}.parquet" for name in SIZES)
    assert plan.total_bytes == 31
    assert plan.predicted() == {
        "files_deleted": 3,
        "bytes_deleted": 31,
        "files_kept": 2,
        "bytes_kept": live,
    }
    lifted = plan_vacuum(snapshot, retention_hours=1, enforce_retention=False, force=True)
    assert (lifted.retention.enforced, lifted.retention.margin_ms) == (False, 0)
    assert not plan_vacuum(snapshot).retention.specified


def test_a_plan_outlives_its_process(path: Path, helpers: Any) -> None:
    plan = plan_vacuum(helpers.snapshot_of(path), retention_hours=200)
    document = plan.to_json()
    assert VacuumPlan.from_json(json.loads(json.dumps(document))) == plan
    assert document["predicted"] == plan.predicted()
    assert set(document["files"][0]) == {"path", "size_bytes", "modified_ms", "age_hours", "reason"}
    optional = {"predicted", "plan", "format_version", "pins", "inner_tables", "outer_tables"}
    for name in set(document) - optional:
        lacking = {key: value for key, value in document.items() if key != name}
        with pytest.raises(MaintenanceError, match="malformed"):
            VacuumPlan.from_json(lacking)


def test_progress_and_result(path: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(path)
    plan = plan_vacuum(snapshot)
    (path / "orphan-1.parquet").write_bytes(b"new")
    events = Events()
    result = apply_vacuum(snapshot, plan, run=Run(progress=ProgressReporter(sink=events)))
    assert (result.deleted_files, result.deleted_bytes, result.kept) == (2, 20, ("orphan-1.parquet",))
    assert (result.commits, result.already_applied) == ((2, 3), False)
    assert events.seen == [
        ("commit.before", None, None, {"read_version": 1}),
        ("commit.after", None, None, {"outcome": "Committed", "version": 2}),
        ("data.writing", 0, 3, {}),
        ("data.writing", 3, 3, {}),
        ("data.written", None, None, {"files": 2, "bytes": 20}),
        ("commit.before", None, None, {"read_version": 2}),
        ("commit.after", None, None, {"outcome": "Committed", "version": 3}),
    ]


def test_progress_adds_up_over_groups(path: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_FILES_PER_TASK", 2)
    monkeypatch.setattr(apply, "_TASKS_PER_CHECK", 1)
    snapshot = helpers.snapshot_of(path)
    events = Events()
    result = apply_vacuum(snapshot, plan_vacuum(snapshot), run=Run(progress=ProgressReporter(sink=events)))
    assert (result.deleted_files, result.deleted_bytes) == (3, 31)
    writing = [event[1:3] for event in events.seen if event[0] == "data.writing"]
    assert writing == [(0, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, {"retentionCheckEnabled": "true"}),
        (
            {"retention_hours": 200},
            {"retentionCheckEnabled": "true", "specifiedRetentionMillis": "720000000"},
        ),
        (
            {"retention_hours": 1, "enforce_retention": False, "force": True},
            {"retentionCheckEnabled": "false", "specifiedRetentionMillis": "3600000"},
        ),
    ],
)
def test_the_two_commits(path: Path, helpers: Any, options: dict[str, Any], said: dict[str, str]) -> None:
    snapshot = helpers.snapshot_of(path)
    apply_vacuum(snapshot, plan_vacuum(snapshot, **options))
    end, start = (entry.commit_info for entry in history(helpers.snapshot_of(path), limit=2))
    assert start.operation_parameters == {"defaultRetentionMillis": "604800000", **said}
    assert start.operation_metrics == {"numFilesToDelete": "3", "sizeOfDataToDelete": "31"}
    assert end.operation_parameters == {"status": "COMPLETED"}
    assert end.operation_metrics == {"numDeletedFiles": "3", "numVacuumedDirectories": "2"}
    assert (start.isolation_level, end.isolation_level) == ("SnapshotIsolation",) * 2


def test_both_commits_carry_the_provenance_and_the_end_the_key(path: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(path)
    properties = CommitProperties(
        user_metadata="{}", user_name="ada", txn=SetTransaction(app_id="v", version=1)
    )
    clock = ManualClock(SYSTEM_CLOCK.now_ms() + 7_000)
    result = apply_vacuum(snapshot, plan_vacuum(snapshot), run=Run(commit=properties, clock=clock))
    for entry in history(helpers.snapshot_of(path), limit=2):
        assert (entry.commit_info.user_metadata, entry.commit_info.user_name) == ("{}", "ada")
        assert entry.commit_info.timestamp_ms == clock.now_ms()
    assert helpers.snapshot_of(path, version=result.commits[0]).transactions == {}
    assert helpers.snapshot_of(path).transactions["v"].version == 1
    (path / "orphan-0.parquet").write_bytes(b"x")
    os.utime(path / "orphan-0.parquet", (1, 1))
    snapshot = helpers.snapshot_of(path)
    again = apply_vacuum(snapshot, plan_vacuum(snapshot), run=Run(commit=properties))
    assert (again.already_applied, again.commits, again.deleted_files) == (True, (4,), 1)


def test_a_failed_vacuum_records_its_end_without_a_count(
    path: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = helpers.snapshot_of(path)
    plan = plan_vacuum(snapshot)
    real = LocalLogStore.delete

    def fail_at_the_second(self: LocalLogStore, name: str) -> None:
        if name == "orphan-0.parquet":
            raise StorageError("no more deletions")
        real(self, name)

    monkeypatch.setattr(LocalLogStore, "delete", fail_at_the_second)
    with pytest.raises(StorageError, match="no more"):
        apply_vacuum(snapshot, plan)
    assert not (path / "d=1/orphan-2.parquet").exists()
    assert (path / "orphan-0.parquet").exists()
    end = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert (end.operation, end.operation_parameters) == ("VACUUM END", {"status": "FAILED"})
    assert not end.operation_metrics


def test_a_vacuum_whose_start_cannot_be_read_has_an_end(
    path: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = helpers.snapshot_of(path)
    plan = plan_vacuum(snapshot)

    def no_answer(version: int) -> str:
        raise StorageError(f"no answer for version {version}")

    monkeypatch.setattr(apply, "commit_path", no_answer)
    with pytest.raises(StorageError, match="no answer"):
        apply_vacuum(snapshot, plan)
    end = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert (end.operation, end.operation_parameters) == ("VACUUM END", {"status": "FAILED"})
    assert (path / "orphan-0.parquet").exists()


def test_files_that_vanish_by_themselves_are_not_counted(path: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(path)
    plan = plan_vacuum(snapshot)
    (path / "orphan-1.parquet").unlink()
    result = apply_vacuum(snapshot, plan)
    assert (result.deleted_files, result.deleted_bytes, result.kept) == (2, 20, ())
