"""The exact difference that a restore would make: rows, definition, and the text for its approver."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_core.actions import SetTransaction
from delta_core.dml.write import write_deltalake
from delta_core.errors import RestoreError, RestorePlanOutdatedError
from delta_core.execution.progress import ProgressEvent, ProgressReporter
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.restore import RestorePlan, RowDiff, apply_restore, diff_rows, plan_restore
from delta_core.maintenance.restore import markdown as markdown_module
from delta_core.maintenance.restore.row_matching import RowMatcher
from delta_core.maintenance.restore.samples import MOST_CHARACTERS, bounded, sample_row
from delta_core.run import Run

pytestmark = pytest.mark.slow

MakeTable = Callable[..., Path]


def compared(helpers: Any, path: Path, version: int, **options: Any) -> RowDiff:
    snapshot = helpers.snapshot_of(path)
    return diff_rows(snapshot, plan_restore(snapshot, version=version), **options)


def peer_rows(path: Path, version: int | None = None) -> Counter[str]:
    """The rows as another library reads them; values as text, absent columns left out."""
    table = deltalake.DeltaTable(str(path), version=version).to_pyarrow_table()
    return Counter(
        str(sorted((name, value) for name, value in row.items() if value is not None))
        for row in table.to_pylist()
    )


def figures(diff: RowDiff) -> tuple[int, int]:
    return diff.rows_lost, diff.rows_returned


@pytest.mark.parametrize("rows_in_memory", [1_000_000, 7])
def test_the_difference_is_that_of_the_multisets(tmp_path: Path, helpers: Any, rows_in_memory: int) -> None:
    """Random histories with many equal rows, deletes, updates, overwrites and compactions."""
    random = Random(20131)
    path = tmp_path / "t"
    for step in range(14):
        draw = [random.randrange(4) for _ in range(random.randrange(1, 12))]
        data = pa.table({"k": pa.array(draw, pa.int64()), "v": [f"v{number % 3}" for number in draw]})
        verb = random.choice(["append", "append", "delete", "update", "overwrite", "compact"])
        table = deltalake.DeltaTable(str(path)) if step else None
        if table is None or verb == "append":
            deltalake.write_deltalake(str(path), data, mode="append")
        elif verb == "overwrite":
            deltalake.write_deltalake(str(path), data, mode="overwrite")
        elif verb == "delete":
            table.delete(f"k = {random.randrange(4)}")
        elif verb == "update":
            table.update({"v": "'new'"}, predicate=f"k = {random.randrange(4)}")
        else:
            table.optimize.compact()
    now = peer_rows(path)
    for version in range(deltalake.DeltaTable(str(path)).version()):
        then = peer_rows(path, version)
        diff = compared(helpers, path, version, rows_in_memory=rows_in_memory)
        assert figures(diff) == ((now - then).total(), (then - now).total())
        lost = Counter(str(sorted(row.items())) for row in diff.sample_lost)
        returned = Counter(str(sorted(row.items())) for row in diff.sample_returned)
        assert lost <= now - then
        assert returned <= then - now
        assert lost.total() == min(20, diff.rows_lost)
        assert returned.total() == min(20, diff.rows_returned)


def test_every_type_of_value_takes_part(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2, partitioned=True)
    deltalake.DeltaTable(str(path)).optimize.compact()
    assert figures(compared(helpers, path, 1)) == (0, 0)
    columns = {
        "name": "'other'",
        "x": "0.25",
        "price": "cast(7 as decimal(12,2))",
        "day": "cast('2020-02-29' as date)",
        "flag": "not flag",
        "part": "'c'",
    }
    for column, value in columns.items():
        version = deltalake.DeltaTable(str(path)).version()
        deltalake.DeltaTable(str(path)).update({column: value}, predicate="id = 3")
        assert figures(compared(helpers, path, version)) == (1, 1), column
        assert compared(helpers, path, version).sample_returned[0]["id"] == 3


def test_files_that_both_versions_have_are_not_read(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    shared = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    (path / shared).unlink()
    diff = compared(helpers, path, 0)
    assert figures(diff) == (20, 0)
    assert diff.is_exact


def test_a_column_added_later_is_null_then(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(str(path), pa.table({"id": [1, 2, 3]}))
    wider = pa.table({"id": [1, 2, 3], "note": pa.array([None, None, "x"], pa.string())})
    deltalake.write_deltalake(str(path), wider, mode="overwrite", schema_mode="overwrite")
    diff = compared(helpers, path, 0)
    assert figures(diff) == (1, 1)
    assert diff.sample_lost == ({"id": 3, "note": "x"},)
    assert diff.sample_returned == ({"id": 3},)
    assert diff.only_in_snapshot == ("note",)
    assert "lacks the column note" in " ".join(diff.notes)
    snapshot = helpers.snapshot_of(path)
    apply_restore(snapshot, plan_restore(snapshot, version=0))
    assert compared(helpers, path, 1).only_in_target == ("note",)


def test_a_type_that_widened_is_compared_by_value(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    point = pa.struct([("a", pa.int32())])
    old = pa.table({"id": pa.array([1, 2], pa.int32()), "p": pa.array([{"a": 1}, {"a": 2}], point)})
    deltalake.write_deltalake(str(path), old)
    wide = pa.struct([("a", pa.int32()), ("b", pa.string())])
    new = pa.table({"id": pa.array([2, 1], pa.int64()), "p": pa.array([{"a": 2}, {"a": 1, "b": "x"}], wide)})
    deltalake.write_deltalake(str(path), new, mode="overwrite", schema_mode="overwrite")
    diff = compared(helpers, path, 0)
    assert figures(diff) == (1, 1)
    assert diff.incompatible == ()


def test_types_without_a_common_one_differ_in_every_row_and_say_so(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(str(path), pa.table({"id": [1, 2]}))
    strings = pa.table({"id": ["1", "2"]})
    deltalake.write_deltalake(str(path), strings, mode="overwrite", schema_mode="overwrite")
    diff = compared(helpers, path, 0)
    assert figures(diff) == (2, 2)
    assert diff.incompatible == ("id",)
    assert "type of the column id changed" in diff.notes[0]


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_what_cannot_be_read_is_left_out_and_named(make_table: MakeTable, helpers: Any, damage: str) -> None:
    path = make_table(commits=3)
    files = [row["path"] for row in helpers.snapshot_of(path).files.to_table(["path"]).to_pylist()]
    first = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    (gone,) = [file for file in files if file != first][:1]
    if damage == "missing":
        (path / gone).unlink()
    else:
        (path / gone).write_bytes(b"PAR1 cut off PAR1")
    diff = compared(helpers, path, 0)
    assert figures(diff) == (10, 0)
    assert (diff.is_exact, diff.unreadable) == (False, (gone,))
    plan = replace(plan_restore(helpers.snapshot_of(path), version=0), row_diff=diff)
    assert "at least 10 rows lost" in plan.to_markdown()


def test_rows_of_a_file_that_breaks_off_do_not_count(
    make_table: MakeTable, helpers: Any, tmp_path: Path
) -> None:
    """A page in the middle is damaged: the batches before it were taken already."""
    path = tmp_path / "long"
    deltalake.write_deltalake(str(path), pa.table({"id": [0]}))
    (old,) = path.glob("*.parquet")
    deltalake.write_deltalake(str(path), pa.table({"id": [1]}), mode="append")
    (new,) = set(path.glob("*.parquet")) - {old}
    many = pa.table({"id": pa.array(range(200_000))})
    pq.write_table(many, new, row_group_size=100_000, compression="none", use_dictionary=False)
    offset = pq.read_metadata(new).row_group(1).column(0).data_page_offset
    content = bytearray(new.read_bytes())
    content[offset : offset + 64] = b"\xff" * 64
    new.write_bytes(bytes(content))
    diff = compared(helpers, path, 0)
    assert figures(diff) == (0, 0)
    assert diff.unreadable == (new.name,)


def test_unknown_row_counts_are_taken_from_the_footers(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=0)
    blind = replace(plan, removed=tuple(replace(file, rows=None) for file in plan.removed))
    assert figures(diff_rows(snapshot, blind, rows_in_memory=3)) == (10, 0)


def test_samples_can_be_fewer_or_none(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    assert len(compared(helpers, path, 0).sample_lost) == 20
    assert len(compared(helpers, path, 0, sample_rows=3).sample_lost) == 3
    assert compared(helpers, path, 0, sample_rows=0).sample_lost == ()
    for wrong in (-1, 21):
        with pytest.raises(RestoreError, match="0 to 20"):
            compared(helpers, path, 0, sample_rows=wrong)


def test_a_plan_for_another_version_is_refused(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    old = plan_restore(helpers.snapshot_of(path, version=1), version=0)
    with pytest.raises(RestoreError, match="Plan the restore again"):
        diff_rows(helpers.snapshot_of(path), old)


def test_comparing_tells_how_far_it_is(make_table: MakeTable, helpers: Any) -> None:
    seen: list[ProgressEvent] = []

    class Sink:
        def emit(self, event: ProgressEvent) -> None:
            seen.append(event)

    compared(helpers, make_table(commits=3), 0, run=Run(progress=ProgressReporter(sink=Sink())))
    assert [(event.name, event.done, event.total) for event in seen] == [
        ("rows.comparing", 0, 2),
        ("rows.comparing", 1, 2),
    ]


def test_a_collision_of_one_hash_hides_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_core.maintenance.restore import row_matching

    real = row_matching.hash_rows
    seeds: list[int] = []

    def first_seed_knows_nothing(arrays: Any, rows: int, *, seed: int) -> Any:
        if not seeds:
            seeds.append(seed)
        return real(arrays, rows, seed=seed) * (seed != seeds[0])

    monkeypatch.setattr(row_matching, "hash_rows", first_seed_knows_nothing)
    with RowMatcher(expected_rows=4) as matcher:
        matcher.add(0, [pa.array([1, 2])], rows=2, file=0, first_row=0)
        matcher.add(1, [pa.array([2, 3])], rows=2, file=0, first_row=0)
        lost, returned = matcher.compare(left_out=(frozenset(), frozenset()), most_places=9)
    assert (lost.places, returned.places) == (((0, 0),), ((0, 1),))


def test_nothing_stays_in_the_temporary_folder(
    make_table: MakeTable, helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with RowMatcher(expected_rows=100, rows_in_memory=10) as matcher:
        matcher.add(0, [pa.array(range(100))], rows=100, file=0, first_row=0)
        assert len(list(next(folder.iterdir()).iterdir())) == 10
    assert list(folder.iterdir()) == []
    assert figures(compared(helpers, make_table(), 0, rows_in_memory=2)) == (30, 0)
    assert list(folder.iterdir()) == []


def test_values_are_shown_as_json_of_bounded_size() -> None:
    values = {
        "a": b"\x01\xff",
        "b": "x" * 500,
        "c": float("nan"),
        "d": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "e": Decimal("1.50"),
        "f": [1, {"g": dt.date(2024, 1, 1)}],
        "h": None,
        "i": True,
    }
    row = {name: bounded(value) for name, value in values.items()}
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert (row["a"], row["c"], row["e"], row["h"], row["i"]) == ("0x01ff", "nan", "1.50", None, True)
    assert row["d"] == "2024-01-02T03:04:05+00:00"
    assert row["f"] == '[1, {"g": "2024-01-01"}]'
    assert len(row["b"]) == MOST_CHARACTERS
    wide = pa.record_batch({f"c{number}": [number] for number in range(45)})
    assert len(sample_row(wide, 0)) == 31
    assert sample_row(wide, 0)["..."] == "15 more columns"


# ------------------------------------------------------------ the definition


def test_the_plan_names_columns_properties_and_features(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(
        str(path),
        pa.table({"id": pa.array([1], pa.int32()), "gone": [1]}),
        configuration={"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 7 days"},
    )
    deltalake.write_deltalake(
        str(path), pa.table({"id": ["a"], "new": [1.5]}), mode="overwrite", schema_mode="overwrite"
    )
    table = deltalake.DeltaTable(str(path))
    table.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 9 days", "delta.dataSkippingNumIndexedCols": "1"}
    )
    deltalake.DeltaTable(str(path)).alter.add_feature(
        deltalake.TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True
    )
    plan = plan_restore(helpers.snapshot_of(path), version=0)
    columns = {change.name: (change.before, change.after) for change in plan.changes.columns}
    assert columns == {"id": ("string", "integer"), "new": ("double", None), "gone": (None, "long")}
    properties = {change.name: (change.before, change.after) for change in plan.changes.properties}
    assert properties.pop("delta.logRetentionDuration") == ("interval 9 days", "interval 7 days")
    assert properties.pop("delta.dataSkippingNumIndexedCols") == ("1", None)
    assert "changeDataFeed" in plan.changes.kept_features
    text = plan.to_markdown()
    assert "`id` changes from `string` to `integer`" in text
    assert "`new` is removed (was `double`)" in text
    assert "`gone` is added (`long`)" in text
    assert "`delta.dataSkippingNumIndexedCols` is removed (was `1`)" in text
    assert "`changeDataFeed`" in text
    changes = json.loads(json.dumps(plan.to_json()))["changes"]
    assert {"name": "gone", "from": None, "to": "long"} in changes["columns"]


def test_each_undone_commit_says_who_and_how_many_rows(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=1)
    provenance = deltalake.CommitProperties({"userName": "ann"})
    deltalake.DeltaTable(str(path)).delete("id < 4", commit_properties=provenance)
    key = SetTransaction(app_id="jan", version=1)
    write_deltalake(path, helpers.rows(50, 6), mode="append", txn=key)
    plan = plan_restore(helpers.snapshot_of(path), version=0)
    assert plan.lost_commits[0].rows == {"numOutputRows": 6}
    assert plan.lost_commits[1].rows["num_deleted_rows"] == 4
    assert plan.lost_commits[1].user == "ann"
    text = plan.to_markdown()
    assert "numOutputRows 6" in text
    assert "`jan`, version 1" in text
    assert "use a new key" in text


# ------------------------------------------------------------ the text for the approver


def planned(helpers: Any, path: Path, version: int) -> RestorePlan:
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=version)
    return replace(plan, row_diff=diff_rows(snapshot, plan))


def test_the_text_has_the_figures_and_some_rows(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    deltalake.DeltaTable(str(path)).delete("id < 4")
    text = planned(helpers, path, 0).to_markdown()
    assert "Version **0**" in text
    assert "would replace version **2**" in text
    assert "**exactly 10 rows lost**" in text
    assert "**exactly 4 rows returned**" in text
    assert "**Rows lost, 5 of 10:**" in text
    block = text.split("```json\n")[2].split("\n```")[0]
    assert [json.loads(line)["id"] for line in block.splitlines()] == [0, 1, 2, 3]
    plain = plan_restore(helpers.snapshot_of(path), version=0).to_markdown()
    assert "rows were not compared" in plain
    assert "with 10 rows" in plain
    same = plan_restore(helpers.snapshot_of(path), version=2).to_markdown()
    assert "Nothing would change" in same


def test_missing_files_stand_in_the_text(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    gone = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    deltalake.DeltaTable(str(path)).delete()
    (path / gone).unlink()
    text = planned(helpers, path, 1).to_markdown()
    assert "**1 file of version 1 missing from the store:**" in text
    assert gone in text


def test_text_from_the_table_cannot_pass_for_the_plan(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(str(path), pa.table({"id": [1]}))
    evil = "```\n\n**exactly 0 rows lost**\n\n| x ` {{ 1 }}"
    key = SetTransaction(app_id=evil, version=1)
    write_deltalake(path, pa.table({"id": [2]}), mode="append", txn=key)
    deltalake.write_deltalake(
        str(path), pa.table({"id": [3], "t": [evil]}), mode="append", schema_mode="merge"
    )
    text = planned(helpers, path, 0).to_markdown()
    outside = [line for line in text.splitlines() if "exactly 0 rows lost" in line]
    assert len(outside) == 2
    assert outside[0].startswith("- `''' **exactly")
    assert outside[1].startswith('{"id": 3')
    assert sum(line.startswith("```") for line in text.splitlines()) == 2


def test_the_text_is_bounded(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    long = pa.table({f"column_{number}": ["y" * 400] * 30 for number in range(60)})
    deltalake.write_deltalake(str(path), pa.table({"id": [1]}))
    for number in range(25):
        key = SetTransaction(app_id=f"{'k' * 300}{number}", version=1)
        write_deltalake(path, pa.table({"id": [number]}), mode="append", txn=key)
    deltalake.write_deltalake(str(path), long, mode="overwrite", schema_mode="overwrite")
    text = planned(helpers, path, 0).to_markdown()
    assert len(text) < 12_000
    assert "and 6 more" in text
    assert "- and 15 more" in text
    assert markdown_module.plan_markdown(planned(helpers, path, 0)) == text


# ------------------------------------------------------------ the job


def job(path: Path, *, key: str | None = None, **params: Any) -> JobResult:
    spec = JobSpec(
        kind="restore",
        table=TableRef(uri=str(path)),
        params=params,
        idempotency=None if key is None else IdempotencyKey(app_id=key),
    )
    return run_job(spec, JobContext())


def test_the_job_gives_the_difference_and_the_text(make_table: MakeTable) -> None:
    path = make_table(commits=3)
    result = job(path, version=0, diff="rows", sample_rows=2)
    assert result.output["plan"]["row_diff"]["rows_lost"] == 20
    assert len(result.output["plan"]["row_diff"]["sample_lost"]) == 2
    assert "exactly 20 rows lost" in result.output["markdown"]
    assert (result.output["target_version"], result.output["is_empty"]) == (0, False)
    assert job(path, version=0).output["plan"]["row_diff"] is None
    assert job(path, version=0, diff="rows", sample_rows=21).error.code == "RESTORE_REFUSED"
    assert job(path, version=0, diff="bytes").error.code == "INVALID_JOB_SPEC"


def test_a_newer_version_than_the_one_approved_stops_the_restore(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    deltalake.DeltaTable(str(path)).optimize.compact()
    result = job(path, version=0, dry_run=False, expected_version=2)
    assert result.status is JobStatus.FAILED
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("RESTORE_PLAN_OUTDATED", False)
    assert "3 (OPTIMIZE)" in result.error.message
    assert deltalake.DeltaTable(str(path)).version() == 3
    assert "may have been replaced" in job(path, version=0, expected_version=9).error.message
    done = job(path, version=0, dry_run=False, expected_version=3, key="k")
    assert done.commits == (4,)
    again = job(path, version=0, dry_run=False, expected_version=3, key="k")
    assert (again.status, again.already_applied) == (JobStatus.SUCCEEDED, True)


def test_a_version_that_lands_after_the_check_stops_it_too(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=0)
    for number in range(7):
        write_deltalake(path, helpers.rows(100 + number, 1), mode="append")
    with pytest.raises(RestorePlanOutdatedError, match=r"8 \(WRITE\).* and 2 more"):
        apply_restore(snapshot, plan, expected_version=1)
    assert pc.max(deltalake.DeltaTable(str(path)).to_pyarrow_table()["id"]).as_py() == 106
