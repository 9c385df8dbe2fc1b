"""What a reader has pinned stays: its data files from vacuum, its log from log cleanup."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import LeaseFileError, LeaseLostError, MaintenanceError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.leases.pins import Pin, pin_version, pins_in_force
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.vacuum import VacuumPlan, apply_vacuum, plan_vacuum
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import DAY_MS, LogBuilder, add, metadata, protocol
from tests.support.store_time import Machines

MakeTable = Callable[..., Path]
HOUR = 3600.0


@pytest.fixture
def compacted(make_table: MakeTable, helpers: Any) -> Path:
    """Version 3 has four files, which were removed thirty days ago."""
    path = make_table()
    past = ManualClock(SYSTEM_CLOCK.now_ms() - 30 * DAY_MS)
    snapshot = helpers.snapshot_of(path, clock=past)
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(clock=past))
    helpers.age_files(path, 30)
    return path


def pin(path: Path, version: int, *, ttl_seconds: float = HOUR) -> Pin:
    snapshot = Snapshot.load(LocalLogStore(path), version=version)
    return pin_version(snapshot, ttl_seconds=ttl_seconds, holder="the report")


def age_pins(path: Path, seconds: float) -> None:
    """Make every pin look as if it had been written that long ago."""
    for file in (path / "_deltaward").rglob("*.json"):
        moment = file.stat().st_mtime - seconds
        os.utime(file, (moment, moment))


def vacuum(path: Path) -> tuple[VacuumPlan, set[str]]:
    """Plan and apply; which files went."""
    before = {file.name for file in path.glob("**/*.parquet") if "_delta_log" not in file.parts}
    snapshot = Snapshot.load(LocalLogStore(path))
    plan = plan_vacuum(snapshot)
    apply_vacuum(snapshot, plan)
    return plan, before - {file.name for file in path.glob("**/*.parquet") if "_delta_log" not in file.parts}


def test_a_pinned_version_is_readable_after_a_vacuum_that_says_why(compacted: Path, helpers: Any) -> None:
    rows = helpers.content(compacted, version=2)
    held = pin(compacted, 2)
    plan, gone = vacuum(compacted)
    assert helpers.content(compacted, version=2) == rows
    assert len(gone) == 1, "the file that version 3 added is not pinned"
    (kept,) = plan.pins
    assert (kept.version, kept.files) == (2, 3)
    assert kept.bytes > 0
    assert "by the report" in kept.pin
    assert VacuumPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    held.release()
    plan, gone = vacuum(compacted)
    assert (plan.pins, len(gone)) == ((), 3)


def test_a_plan_of_before_there_were_pins_can_be_read(compacted: Path, helpers: Any) -> None:
    plan = plan_vacuum(helpers.snapshot_of(compacted))
    document = plan.to_json()
    del document["pins"]
    assert VacuumPlan.from_json(document) == plan


def test_a_pin_that_comes_after_the_plan_counts(compacted: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot)
    assert len(plan.files) == 4
    with pin(compacted, 3):
        result = apply_vacuum(snapshot, plan)
    assert (result.deleted_files, len(result.kept)) == (0, 4)
    assert len(result.pins) == 1
    assert "version 3 by the report" in result.pins[0]
    assert list((compacted / "_deltaward").rglob("*.json")) == [], "nothing is left of it"


def test_a_pin_that_ended_does_not_count(compacted: Path) -> None:
    pin(compacted, 3)
    age_pins(compacted, HOUR + 2)
    plan, gone = vacuum(compacted)
    assert (plan.pins, len(gone)) == ((), 4)


def test_a_renewed_pin_goes_on(compacted: Path) -> None:
    held = pin(compacted, 3)
    age_pins(compacted, HOUR + 2)
    held.renew()
    assert vacuum(compacted)[1] == set()


def test_a_pin_whose_files_are_gone_says_so(compacted: Path) -> None:
    held = pin(compacted, 3)
    for file in (compacted / "_deltaward").rglob("*.json"):
        file.unlink()
    with pytest.raises(LeaseLostError, match="deleted"):
        held.renew()
    held.release()


def test_the_store_s_clock_decides_whether_a_pin_has_ended(compacted: Path, helpers: Any) -> None:
    """A machine whose clock is a year ahead plans to delete, and does not."""
    ahead = ManualClock(SYSTEM_CLOCK.now_ms() + 365 * DAY_MS)
    pin(compacted, 3)
    snapshot = helpers.snapshot_of(compacted, clock=ahead)
    plan = plan_vacuum(snapshot, clock=ahead)
    assert (plan.pins, len(plan.files)) == ((), 4)
    result = apply_vacuum(snapshot, plan, run=Run(clock=ahead))
    assert result.deleted_files == 0
    assert result.pins


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "damaged"),
        ('{"formatVersion": 2}', "format 2"),
        (
            '{"formatVersion": 1, "fence": 1, "holder": "x", "token": "t", "nonce": "", "ttlMs": 1000000000, '
            '"state": "held"}',
            "contains no version",
        ),
    ],
)
@pytest.mark.parametrize("after_plan", [False, True])
def test_nothing_is_deleted_for_a_pin_that_cannot_be_read(
    compacted: Path, helpers: Any, content: str, words: str, after_plan: bool
) -> None:
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot) if after_plan else None
    directory = compacted / "_deltaward" / "pins" / "x"
    directory.mkdir(parents=True)
    path = directory / f"{1:020d}.json"
    path.write_text(content)
    with pytest.raises(LeaseFileError, match=words) as error:
        _ = plan_vacuum(snapshot) if plan is None else apply_vacuum(snapshot, plan)
    assert f"_deltaward/pins/x/{path.name}" in str(error.value)
    assert helpers.snapshot_of(compacted).version == 4, "nor is anything begun"
    path.unlink()
    assert len(vacuum(compacted)[1]) == 4


def test_a_pin_under_another_name_is_not_passed_over(compacted: Path, helpers: Any) -> None:
    directory = compacted / "_deltaward" / "pins"
    directory.mkdir(parents=True)
    (directory / "v2-pin.json").write_text("{}")
    (directory / "notes.txt").write_text("not ours")
    with pytest.raises(LeaseFileError, match=r"v2-pin\.json"):
        plan_vacuum(helpers.snapshot_of(compacted))


def test_nothing_is_deleted_for_a_pinned_version_that_cannot_be_read(compacted: Path, helpers: Any) -> None:
    held = pin(compacted, 3)
    directory = next((compacted / "_deltaward" / "pins").iterdir())
    document = json.loads((directory / f"{1:020d}.json").read_text())
    (directory / f"{2:020d}.json").write_text(json.dumps({**document, "version": 99}))
    with pytest.raises(MaintenanceError, match="pin of version 99"):
        plan_vacuum(helpers.snapshot_of(compacted))
    # A pin of a table that was here before keeps nothing.
    (directory / f"{3:020d}.json").write_text(json.dumps({**document, "version": 99, "tableId": "other"}))
    (directory / f"{4:020d}.json").write_text(json.dumps({**document, "tableId": "other"}))
    assert len(vacuum(compacted)[1]) == 4
    held.release()


def test_a_vacuum_leaves_our_own_directory_alone(compacted: Path, helpers: Any) -> None:
    directory = compacted / "_deltaward"
    files = [directory / "leases/x/1.json", directory / "part-0.parquet", directory / "a/b/part-1.parquet"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
        os.utime(file, (1, 1))
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot, retention_hours=0, enforce_retention=False, force=True)
    apply_vacuum(snapshot, plan)
    assert not [file.path for file in plan.files if file.path.startswith("_deltaward")]
    assert all(file.exists() for file in files)
    peer = deltalake.DeltaTable(str(compacted))
    peer.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert all(file.exists() for file in files)


def test_a_job_reports_what_pins_kept(compacted: Path) -> None:
    with pin(compacted, 3):
        spec = JobSpec(kind="vacuum", table=TableRef(uri=str(compacted)), params={"dry_run": False})
        result = run_job(spec, JobContext())
    assert result.error is None
    assert [(kept["version"], kept["files"]) for kept in result.output["plan"]["pins"]] == [(3, 4)]


# ---------------------------------------------------------------- the log


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Twenty daily commits at noon, checkpoints at 4, 9 and 14; cleanup would begin at 9."""
    builder = LogBuilder(tmp_path / "t")
    for version in range(20):
        at = 19_700 * DAY_MS + version * DAY_MS + DAY_MS // 2
        actions = (protocol(), metadata(configuration={"delta.logRetentionDuration": "interval 8 days"}))
        builder.commit(*(actions if version == 0 else (add(f"f{version}"),)), time_ms=at)
        if version in (4, 9, 14):
            write_checkpoint(Snapshot.load(builder.store, clock=builder.clock))
    builder.clock.advance((19_700 * DAY_MS + 19 * DAY_MS + DAY_MS * 3 // 4 - builder.clock.now_ms()) / 1000)
    return builder


@pytest.mark.parametrize(("version", "begins"), [(9, 9), (8, 4), (4, 4), (3, None), (15, 9)])
def test_log_cleanup_keeps_what_a_pinned_version_is_read_from(
    log: LogBuilder, version: int, begins: int | None
) -> None:
    pinned = Snapshot.load(log.store, version=version, clock=log.clock)
    held = pin_version(pinned, ttl_seconds=HOUR)
    done = cleanup_expired_logs(Snapshot.load(log.store, clock=log.clock))
    assert done.checkpoint_version == begins
    assert [kept.version for kept in done.pins] == ([version] if version < 10 else [])
    assert Snapshot.load(log.store, version=version, clock=log.clock).files.num_files == version
    held.release()
    assert cleanup_expired_logs(Snapshot.load(log.store, clock=log.clock)).checkpoint_version == 9


def test_log_cleanup_does_not_count_a_pin_that_ended(log: LogBuilder) -> None:
    pin_version(Snapshot.load(log.store, version=3, clock=log.clock), ttl_seconds=HOUR)
    age_pins(log.log.parent, HOUR + 60)
    done = cleanup_expired_logs(Snapshot.load(log.store, clock=log.clock))
    assert (done.checkpoint_version, done.pins) == (9, ())


def test_log_cleanup_deletes_nothing_for_a_pin_that_cannot_be_read(log: LogBuilder) -> None:
    directory = log.log.parent / "_deltaward" / "pins" / "x"
    directory.mkdir(parents=True)
    (directory / f"{1:020d}.json").write_text("{")
    before = sorted(log.log.iterdir())
    with pytest.raises(LeaseFileError, match="damaged"):
        cleanup_expired_logs(Snapshot.load(log.store, clock=log.clock))
    assert sorted(log.log.iterdir()) == before


def test_pins_go_by_the_time_of_a_store_that_nobody_else_has(tmp_path: Path) -> None:
    machines = Machines(tmp_path / "t")
    LogBuilder(tmp_path / "t").create().appends(2)
    snapshot = Snapshot.load(machines.store, clock=machines.clocks[0])
    held = pin_version(snapshot, ttl_seconds=100)
    began_ms = machines.store_clock.now_ms()
    assert pins_in_force(machines.store, store_now_ms=began_ms + 100_999)
    assert pins_in_force(machines.store, store_now_ms=began_ms + 101_000) == ()
    machines.pass_time(90)
    held.renew()
    assert pins_in_force(machines.store, store_now_ms=began_ms + 190_999)
    assert held.version == snapshot.version


def test_several_pins_are_told_apart(compacted: Path) -> None:
    first, second = pin(compacted, 1), pin(compacted, 3)
    found = pins_in_force(LocalLogStore(compacted), store_now_ms=0)
    assert [item.version for item in found] == [1, 3]
    assert len({item.path for item in found}) == 2
    first.release()
    assert [item.version for item in pins_in_force(LocalLogStore(compacted), store_now_ms=0)] == [3]
    second.release()
