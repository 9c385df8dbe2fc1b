from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions.set_transaction import SetTransaction
from delta_core.errors import (
    CommitError,
    ConcurrentDeleteDeleteError,
    ConfigurationError,
    ExpressionError,
    InvalidTableError,
    MaintenanceError,
    MissingDataFileError,
    UnsupportedTableFeatureError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressReporter
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction import CompactionPlan, plan_compaction
from delta_core.maintenance.compaction.task import rewrite_bin
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.transaction import Transaction
from tests.support.sinks import CollectingSink

MakeTable = Callable[..., Path]


def data_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*.parquet") if "_delta_log" not in f.parts}


@pytest.mark.parametrize("partitioned", [False, True])
def test_rows_are_the_same_for_deltalake(make_table: MakeTable, helpers: Any, partitioned: bool) -> None:
    path = make_table(commits=6, partitioned=partitioned)
    before = helpers.content(path)
    snapshot = helpers.snapshot_of(path)
    result = apply_rewrite(snapshot, plan_compaction(snapshot))
    assert result.version == 6
    assert helpers.content(path) == before
    assert helpers.snapshot_of(path).files.num_files == (2 if partitioned else 1)


def test_a_commit_that_is_refused_before_it_is_sent_leaves_no_new_file(
    make_table: MakeTable, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_table(commits=3, partitioned=False)
    snapshot = helpers.snapshot_of(path)
    before = data_files(path)

    def refused(_: Transaction) -> Transaction:
        assert data_files(path) > before
        raise CommitError("Refused.")

    monkeypatch.setattr(Transaction, "prepare", refused)
    with pytest.raises(CommitError, match="Refused"):
        apply_rewrite(snapshot, plan_compaction(snapshot))
    assert data_files(path) == before


def test_a_damaged_file_is_not_copied(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2, partitioned=False)
    victim = next(path.glob("*.parquet"))
    pq.write_table(pq.read_table(victim), victim, compression="none", write_page_checksum=True)
    chunk = pq.read_metadata(victim).row_group(0).column(0)
    data = bytearray(victim.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    victim.write_bytes(data)
    snapshot = helpers.snapshot_of(path)
    with pytest.raises(InvalidTableError, match="CRC"):
        apply_rewrite(snapshot, plan_compaction(snapshot))
    assert helpers.snapshot_of(path).version == snapshot.version


def test_the_commit_changes_no_data_and_looks_like_an_optimize(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=5)
    snapshot = helpers.snapshot_of(path)
    result = apply_rewrite(snapshot, plan_compaction(snapshot))
    actions = [json.loads(line) for line in (path / "_delta_log" / f"{5:020}.json").read_text().splitlines()]
    assert not any(a["add"]["dataChange"] for a in actions if "add" in a)
    assert not any(a["remove"]["dataChange"] for a in actions if "remove" in a)
    assert sum("remove" in a for a in actions) == 5
    info = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert info.operation == "OPTIMIZE"
    assert info.operation_parameters["predicate"] == "[]"
    assert int(info.operation_metrics["numRemovedFiles"]) == 5
    assert int(info.operation_metrics["numAddedFiles"]) == 1
    assert info.operation_metrics["minFileSize"] == info.operation_metrics["maxFileSize"]
    assert result.metrics["numFilesAdded"] == 1
    assert result.metrics["filesRemoved"]["totalFiles"] == 5
    assert result.metrics["filesAdded"]["min"] == result.metrics["filesAdded"]["max"]
    assert result.rows == 50


def test_statistics_of_the_new_file_are_those_of_its_rows(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    stats = json.loads(helpers.snapshot_of(path).files.to_table(["stats"])["stats"][0].as_py())
    assert stats["numRecords"] == 30
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 29)
    assert (stats["minValues"]["price"], stats["maxValues"]["price"]) == (0.0, 0.29)
    assert stats["nullCount"]["part"] == 15
    assert stats["nullCount"]["name"] == 6
    assert "x" not in stats["maxValues"], "there is a NaN"
    assert stats["maxValues"]["text"] >= "row number 9 ünï"


def test_a_second_run_finds_nothing_and_commits_nothing(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    again = helpers.snapshot_of(path)
    plan = plan_compaction(again)
    assert plan.is_empty
    result = apply_rewrite(again, plan)
    assert result.version is None
    assert helpers.snapshot_of(path).version == again.version


def test_bins_respect_target_partition_and_order(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=10, partitioned=True)
    snapshot = helpers.snapshot_of(path)
    largest = max(snapshot.files.to_table(["size_bytes"])["size_bytes"].to_pylist())
    plan = plan_compaction(snapshot, target_size_bytes=3 * largest + 10, min_file_size_bytes=3 * largest)
    assert all(len(b.files) > 1 and b.size_bytes <= plan.target_size_bytes for b in plan.bins)
    for item in plan.bins:
        for file in item.files:
            assert file.path.startswith("part=a/" if item.partition_values["part"] == "a" else "part=__HIVE")
    assert {b.partition_values["part"] for b in plan.bins} == {None, "a"}
    assert plan.num_files == 18, "one file of each partition is left over"


def test_large_files_and_lone_files_are_left_alone(make_table: MakeTable, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(make_table())
    assert plan_compaction(snapshot, target_size_bytes=1).is_empty
    assert plan_compaction(snapshot, target_size_bytes=1).considered_files == 4
    assert plan_compaction(helpers.snapshot_of(make_table(commits=1, name="one"))).is_empty


def test_a_predicate_chooses_partitions_and_nothing_else(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(partitioned=True)
    snapshot = helpers.snapshot_of(path)
    plan = plan_compaction(snapshot, predicate="PART = 'a'")
    assert plan.num_files == 4
    assert {b.partition_values["part"] for b in plan.bins} == {"a"}
    assert plan_compaction(snapshot, predicate="part IS NULL").num_files == 4
    with pytest.raises(ExpressionError, match="not partitioned by: id"):
        plan_compaction(snapshot, predicate="id = 1")
    with pytest.raises(ExpressionError):
        plan_compaction(snapshot, predicate="part = 'a'; DROP TABLE x")


@pytest.mark.parametrize(("target", "small"), [(0, None), (-5, None), (10, 11), (10, 0)])
def test_sizes_that_make_no_sense_are_refused(
    make_table: MakeTable, helpers: Any, target: int, small: int | None
) -> None:
    with pytest.raises(ConfigurationError):
        plan_compaction(
            helpers.snapshot_of(make_table(commits=1)), target_size_bytes=target, min_file_size_bytes=small
        )


def test_a_plan_survives_json_and_is_applied_from_it(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(partitioned=True)
    snapshot = helpers.snapshot_of(path)
    plan = plan_compaction(snapshot, predicate="part = 'a'")
    loaded = CompactionPlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert loaded == plan
    assert apply_rewrite(snapshot, loaded).metrics["numFilesRemoved"] == 4


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"plan": "vacuum"},
        {"plan": "compaction", "format_version": 99},
        {"plan": "compaction", "format_version": 1},
    ],
)
def test_what_is_no_plan_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(MaintenanceError):
        CompactionPlan.from_json(document)


def test_a_planned_file_that_is_gone_is_a_conflict(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    plan = plan_compaction(snapshot)
    deltalake.DeltaTable(str(path)).delete("id < 10")
    before = data_files(path)
    with pytest.raises(ConcurrentDeleteDeleteError, match="no longer in the table"):
        apply_rewrite(snapshot, plan)
    assert data_files(path) == before


def test_a_delete_while_files_are_rewritten_conflicts_and_leaves_no_new_file(
    make_table: MakeTable, helpers: Any
) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)

    class DeletesMeanwhile(InlineExecutor):
        def map(self, function: Any, tasks: Any) -> Any:
            yield from super().map(function, tasks)
            deltalake.DeltaTable(str(path)).delete("id < 10")
            self.files = data_files(path)

    executor = DeletesMeanwhile()
    with pytest.raises(ConcurrentDeleteDeleteError):
        apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=executor))
    new = {f.split("/")[-1] for f in executor.files - data_files(path)}
    assert len(new) == 1, "the rewritten file was deleted again"


def test_an_append_while_files_are_rewritten_does_not_disturb(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)

    class AppendsMeanwhile(InlineExecutor):
        def map(self, function: Any, tasks: Any) -> Any:
            deltalake.write_deltalake(str(path), helpers.rows(100, 5), mode="append")
            yield from super().map(function, tasks)

    result = apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=AppendsMeanwhile()))
    assert result.version == 5
    assert len(helpers.content(path)) == 45


def test_a_failing_task_leaves_no_new_file(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(partitioned=True)
    snapshot = helpers.snapshot_of(path)
    plan = plan_compaction(snapshot)
    victim = path / plan.bins[1].files[2].path.replace("%20", " ")
    victim.write_bytes(b"PAR1 this is no parquet PAR1")
    before = data_files(path)
    with pytest.raises(InvalidTableError, match="cannot be read"):
        apply_rewrite(snapshot, plan, run=Run(executor=InlineExecutor(1)))
    assert data_files(path) == before
    victim.unlink()
    with pytest.raises(MissingDataFileError):
        apply_rewrite(snapshot, plan, run=Run(executor=InlineExecutor(1)))
    assert data_files(path) == before - {str(victim.relative_to(path))}
    assert helpers.snapshot_of(path).version == 3


def test_the_idempotency_key_is_recorded_and_honoured(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    properties = CommitProperties(txn=SetTransaction(app_id="job", version=1), user_metadata='{"dag": "d"}')
    plan = plan_compaction(snapshot)
    first = apply_rewrite(snapshot, plan, run=Run(commit=properties))
    assert first.version == 4
    assert helpers.snapshot_of(path).transactions["job"].version == 1
    assert history(helpers.snapshot_of(path), limit=1)[0].commit_info.user_metadata == '{"dag": "d"}'


def test_a_plan_for_another_table_is_refused(make_table: MakeTable, helpers: Any) -> None:
    plan = plan_compaction(helpers.snapshot_of(make_table()))
    other = helpers.snapshot_of(make_table(name="other"))
    with pytest.raises(MaintenanceError, match="another table"):
        apply_rewrite(other, plan)
    with pytest.raises(MaintenanceError, match="another table"):
        apply_rewrite(other, replace(plan, bins=()))


def test_progress_counts_the_bins_and_frames_the_commit(make_table: MakeTable, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(make_table(commits=9, partitioned=True))
    sink = CollectingSink()
    apply_rewrite(
        snapshot, plan_compaction(snapshot), run=Run(progress=ProgressReporter(sink=sink, job_id="j"))
    )
    assert sink.names == [
        *["data.writing"] * 3,
        *("data.written", "stats.collected", "commit.before", "commit.after"),
    ]
    assert [(e.done, e.total) for e in sink.events[:3]] == [(0, 2), (1, 2), (2, 2)]


def test_older_files_that_lack_a_column_get_nulls(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "evolved"
    deltalake.write_deltalake(str(path), pa.table({"id": pa.array([1, 2], pa.int64())}))
    deltalake.write_deltalake(
        str(path), pa.table({"id": pa.array([3], pa.int64()), "s": ["x"]}), mode="append", schema_mode="merge"
    )
    before = helpers.content(path)
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    assert helpers.content(path) == before


def test_column_order_and_row_groups_do_not_matter(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "mixed"
    deltalake.write_deltalake(str(path), helpers.rows(0, 40))
    deltalake.write_deltalake(str(path), helpers.rows(40, 40), mode="append")
    live = helpers.snapshot_of(path).files.to_table(["path"])["path"].to_pylist()
    file = path / live[0]
    table = pq.read_table(file)
    original = file.stat().st_size
    pq.write_table(table.select(list(reversed(table.column_names))), file, row_group_size=7)
    log = path / "_delta_log"
    for commit in log.glob("*.json"):
        commit.write_text(commit.read_text().replace(f'"size":{original}', f'"size":{file.stat().st_size}'))
    before = helpers.content(path)
    snapshot = helpers.snapshot_of(path)
    result = apply_rewrite(snapshot, plan_compaction(snapshot))
    assert result.rows == 80
    assert helpers.content(path) == before


def test_the_new_file_needs_no_arrow_schema_and_has_dictionaries_where_they_pay(
    make_table: MakeTable, helpers: Any
) -> None:
    path = make_table(commits=3, rows_each=400)
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    live = helpers.snapshot_of(path).files.to_table(["path"])["path"][0].as_py()
    parquet = pq.ParquetFile(path / live)
    assert parquet.schema_arrow.metadata is None
    assert parquet.schema_arrow.field("name").type == pa.string()
    columns = {
        parquet.metadata.row_group(0).column(i).path_in_schema: parquet.metadata.row_group(0).column(i)
        for i in range(parquet.metadata.num_columns)
    }
    assert columns["name"].has_dictionary_page
    assert not columns["text"].has_dictionary_page


def test_a_feature_that_is_not_known_is_refused(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    plan = plan_compaction(helpers.snapshot_of(path))
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fancyThings"]}}
    (path / "_delta_log" / f"{4:020}.json").write_text(json.dumps(protocol) + "\n")
    snapshot = helpers.snapshot_of(path)
    with pytest.raises(UnsupportedTableFeatureError, match="fancyThings"):
        apply_rewrite(snapshot, plan)


def test_the_task_function_can_be_found_by_name() -> None:
    assert rewrite_bin.__module__ == "delta_core.maintenance.compaction.task"
    assert "." not in rewrite_bin.__qualname__


@pytest.mark.parametrize("way", ["compact", "cluster"])
def test_bounds_of_long_decimals_stay_exact(tmp_path: Path, way: str) -> None:
    """Through a double a minimum would come out above the value, and a filter would leave the file out."""
    most = Decimal("9999999999999999999999999999.9999999999")
    schema = pa.schema([("id", pa.int64()), ("d", pa.decimal128(38, 10))])
    table = DeltaTable.create(tmp_path, schema, cluster_by=["id"] if way == "cluster" else None)
    for number in range(2):
        write_deltalake(table, pa.table([[number], [most]], schema=schema), mode="append")
    getattr(table.optimize, way)()
    (text,) = DeltaTable(tmp_path).snapshot.files.to_table(["stats"]).column("stats").to_pylist()
    stats = json.loads(text, parse_float=Decimal)
    assert stats["minValues"]["d"] == stats["maxValues"]["d"] == most
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table(filters=[("d", "=", most)])
    assert found.num_rows == DeltaTable(tmp_path).to_pyarrow_table(filters=f"d = {most}BD").num_rows == 2
