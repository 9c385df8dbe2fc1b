from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.parquet as pq
import pytest

from delta_core import clone_table
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.verify import VerificationReport, verify_table

MakeTable = Callable[..., Path]


def outcome(report: VerificationReport) -> dict[str, bool]:
    return {check.name: check.passed for check in report.checks}


def live(path: Path, helpers: Any) -> list[Path]:
    return [path / p for p in helpers.snapshot_of(path).files.to_table(["path"])["path"].to_pylist()]


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_compaction_keeps_the_rows(make_table: MakeTable, helpers: Any, partitioned: bool) -> None:
    path = make_table(partitioned=partitioned)
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    report = verify_table(helpers.snapshot_of(path), compare_with_version=3, expected_rows=40)
    assert report.passed
    assert list(outcome(report)) == [
        *("log_contiguous", "paths_unique", "files_exist", "row_counts", "row_total"),
        "same_rows",
    ]
    assert dict(report.checks[-1].metrics)["rows_compared"] == 40


def test_files_that_both_versions_have_are_not_read(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=6)
    deltalake.write_deltalake(str(path), helpers.rows(900, 3), mode="append")
    report = verify_table(helpers.snapshot_of(path), compare_with_version=5)
    assert not report.passed
    assert dict(report.checks[-1].metrics) == {"rows_compared": 3, "files_read": 1}
    assert report.checks[-1].detail == "version 6 has 3 rows more than version 5"


def test_a_changed_value_is_found_and_the_column_named(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    deltalake.DeltaTable(str(path)).update({"text": "'other'"}, predicate="id = 3")
    report = verify_table(helpers.snapshot_of(path), compare_with_version=1)
    assert report.checks[-1].detail == "the rows of version 2 differ from those of version 1, in text"
    assert "same_rows" in report.error().problem


def test_missing_cut_and_damaged_files_are_found(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    files = live(path, helpers)
    files[0].unlink()
    files[1].write_bytes(b"PAR1")
    report = verify_table(helpers.snapshot_of(path))
    assert outcome(report) == {
        "log_contiguous": True,
        "paths_unique": True,
        "files_exist": False,
        "row_counts": False,
    }
    detail = report.checks[2].detail
    assert "(missing)" in detail
    assert "(4 bytes instead of" in detail
    assert report.to_json()["passed"] is False


def test_statistics_that_lie_are_found(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=1)
    (file,) = live(path, helpers)
    pq.write_table(pq.read_table(file).slice(0, 4), file)
    report = verify_table(helpers.snapshot_of(path))
    assert "4 rows, but the statistics record 10" in report.checks[3].detail


def test_a_gap_in_the_log_is_found(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=4)
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / f"{1:020}.json").unlink()
    snapshot = helpers.snapshot_of(path)
    report = verify_table(snapshot)
    assert not outcome(report)["log_contiguous"]
    assert report.checks[0].detail == "versions 0 to 3, missing: 1"
    (path / "_delta_log" / f"{9_999_999_999:020}.json").write_text("{}")
    report = verify_table(snapshot)
    assert report.checks[0].detail == "versions 0 to 9999999999, missing: 1, 4 to 9999999998"


def test_the_number_of_rows_can_be_demanded(make_table: MakeTable, helpers: Any) -> None:
    report = verify_table(helpers.snapshot_of(make_table()), expected_rows=41)
    assert report.checks[-1].detail == "40 rows, 41 expected"
    assert not report.passed


def test_a_file_of_a_shallow_clone_that_no_allowed_root_contains_is_named_as_that(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    source, clone = make_table(commits=1), tmp_path / "clone"
    clone_table(source, clone, shallow=True)
    detail = verify_table(helpers.snapshot_of(clone)).error().cause
    assert f"{source.name}/" in detail
    assert "(outside the table and the allowed roots)" in detail
