"""Times, names and limits as callers of an open table write them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.arguments import epoch_ms
from delta_core.errors import ConfigurationError, VersionNotFoundError
from delta_core.log.log_path import commit_path

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three versions, one an hour, each with a row more."""
    for number in range(3):
        rows = pa.table({"id": pa.array([number], pa.int64()), "d": pa.array([0], pa.int64())})
        write_deltalake(tmp_path, rows, mode="append")
        seconds = (NOON + timedelta(hours=number)).timestamp()
        os.utime(tmp_path / commit_path(number), (seconds, seconds))
    return tmp_path


def test_a_time_with_a_zone_is_a_time(table: Path) -> None:
    in_india = timezone(timedelta(hours=5, minutes=30))
    when = (NOON + timedelta(minutes=90)).astimezone(in_india)
    assert DeltaTable(table, timestamp_ms=when).version() == 1
    opened = DeltaTable(table)
    opened.load_as_version(timestamp_ms=NOON)
    assert opened.version() == 0
    assert opened.restore(timestamp_ms=when, dry_run=True).target_version == 1


@pytest.mark.parametrize(
    "when", [NOON + timedelta(minutes=90), "2026-01-31T13:30:00Z", "2026-01-31T19:00:00.000+05:30"]
)
def test_a_time_in_place_of_a_version_is_a_time(table: Path, when: Any) -> None:
    opened = DeltaTable(table)
    opened.load_as_version(when)
    assert opened.version() == 1
    assert DeltaTable(table, timestamp_ms=when).version() == 1
    assert opened.restore(when, dry_run=True).target_version == 1
    opened.restore(when)
    assert opened.to_pyarrow_table().num_rows == 2
    assert set(opened.history(1)[0].commit_info.operation_parameters) >= {"timestamp"}


@pytest.mark.parametrize("wrong", ["1", "yesterday", "", "2026-01-31", datetime(2026, 1, 31)])
def test_a_text_or_date_that_is_no_instant_is_refused(table: Path, wrong: Any) -> None:
    opened = DeltaTable(table)
    for call in (opened.load_as_version, opened.restore):
        with pytest.raises(ConfigurationError):
            call(wrong)
    with pytest.raises(ConfigurationError, match="Two times"):
        opened.load_as_version("2026-01-31T12:00:00Z", timestamp_ms=NOON)
    assert opened.version() == 2


def test_a_time_without_a_zone_is_refused(table: Path) -> None:
    naive = datetime(2026, 1, 31, 12)
    opened = DeltaTable(table)
    calls: list[Any] = [
        lambda: DeltaTable(table, timestamp_ms=naive),
        lambda: opened.load_as_version(timestamp_ms=naive),
        lambda: opened.load_cdf(starting_timestamp_ms=naive),
        lambda: opened.load_cdf(ending_timestamp_ms=naive),
        lambda: opened.restore(timestamp_ms=naive),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="has no time zone"):
            call()


def test_a_time_after_the_newest_commit_has_no_version(table: Path) -> None:
    with pytest.raises(VersionNotFoundError):
        DeltaTable(table, timestamp_ms=NOON + timedelta(hours=2, milliseconds=1))


def test_between_two_milliseconds_a_range_begins_later() -> None:
    when = datetime(1969, 12, 31, 23, 59, 59, 998_500, tzinfo=UTC)
    assert (epoch_ms(when), epoch_ms(when, up=True)) == (-2, -1)
    assert (epoch_ms(NOON), epoch_ms(NOON, up=True), epoch_ms(7), epoch_ms(None)) == (
        int(NOON.timestamp()) * 1000,
        int(NOON.timestamp()) * 1000,
        7,
        None,
    )


def test_a_text_is_one_name(table: Path, tmp_path: Path) -> None:
    opened = DeltaTable(table)
    assert opened.to_pyarrow_table(columns="id").column_names == ["id"]
    assert next(opened.appended_batches(-1, columns="id")).schema.names == ["id"]
    made = DeltaTable.create(tmp_path / "new", opened.schema(), partition_by="id")
    assert made.metadata().partition_columns == ("id",)
    made.alter.set_properties({"owner": "ann"})
    made.alter.unset_properties("owner")
    assert made.metadata().configuration == {}
    assert DeltaTable(table, allowed_roots=str(table)).version() == 2


def test_what_cannot_be_counted_is_refused(table: Path) -> None:
    opened = DeltaTable(table)
    assert [entry.version for entry in opened.history(2)] == [2, 1]
    assert opened.history(0) == []
    text: Any = "1"
    for limit in (-1, text):
        with pytest.raises(ConfigurationError, match="limit cannot be"):
            opened.history(limit)
    for since in (-2, -5, text):
        with pytest.raises(ConfigurationError, match="version already seen cannot be"):
            opened.appended_batches(since)
    assert sum(batch.num_rows for batch in opened.appended_batches(-1)) == 3
