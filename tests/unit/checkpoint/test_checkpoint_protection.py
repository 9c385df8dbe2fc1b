"""A log that is protected because a feature was dropped goes at once, or by who knows all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from delta_core.actions import Protocol
from delta_core.checkpoint.checkpoint_protection import protected_before
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from tests.support.log_builder import DAY_MS, LogBuilder, add, metadata, protocol

MIDNIGHT_MS = 19_700 * DAY_MS


def with_writers(*names: str) -> Protocol:
    return protocol(min_writer_version=7, writer_features=frozenset(names))


def build(root: Path, *, before: str, listed: bool = True, first: Protocol | None = None) -> LogBuilder:
    """Twenty daily commits; checkpoints at 4 and 9; something unknown came at 6 and was dropped at 8.

    It is the evening of the last day. With a retention of nine days the clean-up cuts at 9, with
    fourteen days at 4.
    """
    builder = LogBuilder(root / "t")
    configuration = {"delta.logRetentionDuration": "interval 9 days"}
    protected = {**configuration, CHECKPOINT_PROTECTION: before}
    for version in range(20):
        actions: tuple[Any, ...] = (add(f"f{version}"),)
        if version == 0:
            actions = (first or protocol(), metadata(configuration=configuration))
        if version == 6:
            actions = (with_writers("ofTomorrow"),)
        if version == 8:
            names = ("checkpointProtection",) if listed else ()
            actions = (with_writers(*names), metadata(configuration=protected))
        builder.commit(*actions, time_ms=MIDNIGHT_MS + version * DAY_MS + DAY_MS // 2)
        if version in (4, 9):
            write_checkpoint(Snapshot.load(builder.store, clock=builder.clock))
    builder.clock.advance((MIDNIGHT_MS + 19 * DAY_MS + DAY_MS * 3 // 4 - builder.clock.now_ms()) / 1000)
    return builder


def load(log: LogBuilder) -> Snapshot:
    return Snapshot.load(log.store, clock=log.clock)


def oldest(log: LogBuilder) -> int:
    return min(int(path.name[:20]) for path in log.log.iterdir() if path.name.endswith(".json"))


def test_all_of_it_goes_at_once(tmp_path: Path) -> None:
    log = build(tmp_path, before="9")
    assert protected_before(load(log)) == 9
    result = cleanup_expired_logs(load(log))
    assert (result.checkpoint_version, oldest(log)) == (9, 9)


def test_less_than_all_goes_where_every_protocol_is_known(tmp_path: Path) -> None:
    log = build(tmp_path, before="9")
    assert cleanup_expired_logs(load(log), retention_ms=14 * DAY_MS).checkpoint_version == 4
    assert oldest(log) == 4
    assert cleanup_expired_logs(load(log)).checkpoint_version == 9


@pytest.mark.parametrize("before", ["10", "15", "soon", "-1"])
def test_nothing_goes_where_one_is_not_known(tmp_path: Path, before: str) -> None:
    log = build(tmp_path, before=before)
    names = {path.name for path in log.log.iterdir()}
    result = cleanup_expired_logs(load(log))
    assert (result.checkpoint_version, result.files) == (None, ())
    assert {path.name for path in log.log.iterdir()} == names


def test_a_first_protocol_that_is_in_a_checkpoint_alone_counts(tmp_path: Path) -> None:
    log = build(tmp_path, before="15", first=with_writers("inCommitTimestamp-preview"))
    for version in (0, 1, 2, 3):
        (log.log / f"{version:020d}.json").unlink()
    (log.log / f"{6:020d}.json").unlink()
    assert cleanup_expired_logs(load(log)).checkpoint_version is None


def test_damage_before_the_cut_says_nothing(tmp_path: Path) -> None:
    log = build(tmp_path, before="9")
    damaged = log.log / f"{2:020d}.json"
    times = damaged.stat().st_atime_ns, damaged.stat().st_mtime_ns
    damaged.write_text('{"protocol":')
    os.utime(damaged, ns=times)
    assert cleanup_expired_logs(load(log), retention_ms=14 * DAY_MS).checkpoint_version is None
    # What goes as a whole is not looked at.
    assert cleanup_expired_logs(load(log)).checkpoint_version == 9


def test_the_property_alone_protects_nothing(tmp_path: Path) -> None:
    log = build(tmp_path, before="15", listed=False)
    assert protected_before(load(log)) == 0
    assert cleanup_expired_logs(load(log)).checkpoint_version == 9


def test_a_dry_run_says_the_same(tmp_path: Path) -> None:
    log = build(tmp_path, before="15")
    assert cleanup_expired_logs(load(log), dry_run=True).files == ()


def test_a_retention_of_its_own_counts_from_now(tmp_path: Path) -> None:
    log = build(tmp_path, before="9")
    now_ms = log.clock.now_ms()
    found = cleanup_expired_logs(load(log), retention_ms=1, dry_run=True)
    assert found.cutoff_ms == now_ms - 1, "not of midnight"
    assert found.checkpoint_version == 9
