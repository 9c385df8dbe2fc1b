"""`write_deltalake`: modes, schema rules, replaceWhere, what the commit says."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.actions import AddFile, Metadata, Protocol, RemoveFile, SetTransaction
from delta_core.clock import ManualClock
from delta_core.dml.write import write_deltalake
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    InputDataError,
    InvalidTableError,
    InvalidTablePropertyError,
    MetadataChangedError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedTableFeatureError,
)
from delta_core.observability import CHECKPOINT_FAILED_TOTAL, METRICS
from delta_core.scan.scan import Scan
from delta_core.schema.types import INTEGER, LONG, STRING
from delta_core.snapshot.history import commit_actions, history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import Committed
from tests.support.table_handle import StoreTable


def rows(*ids: int, **columns: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids], **columns})


def read(root: Path, **options: Any) -> list[dict[str, Any]]:
    table = Scan(Snapshot.load(LocalLogStore(root)), **options).to_table()
    return sorted(table.to_pylist(), key=lambda row: (row["id"] is None, row["id"]))


def ids(root: Path) -> list[int]:
    return [row["id"] for row in read(root)]


def write(root: Any, data: Any, **options: Any) -> Committed:
    committed = write_deltalake(root, data, **options)
    assert committed is not None
    return committed


def data_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_delta_log" not in path.parts}


def live_paths(root: Path) -> set[str]:
    files = Snapshot.load(LocalLogStore(root)).files.to_table(columns=["path"])
    return set(files.column("path").to_pylist())


class TestCreation:
    def test_first_commit_holds_everything(self, tmp_path: Path) -> None:
        committed = write(tmp_path, rows(1, 2, 3), partition_by=["p"], name="t", description="d")
        assert committed.version == 0
        assert committed.snapshot is not None
        actions = commit_actions(LocalLogStore(tmp_path), 0)
        assert [type(a).__name__ for a in actions[:3]] == ["CommitInfo", "Protocol", "Metadata"]
        assert Protocol(min_reader_version=1, min_writer_version=2) in actions
        metadata = next(a for a in actions if isinstance(a, Metadata))
        assert (metadata.name, metadata.description, metadata.partition_columns) == ("t", "d", ("p",))
        adds = [a for a in actions if isinstance(a, AddFile)]
        assert {a.partition_values["p"] for a in adds} == {"p0", "p1"}
        assert read(tmp_path) == [{"id": i, "p": f"p{i % 2}"} for i in (1, 2, 3)]

    def test_history_tells_what_was_done(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1, 2), commit_properties=CommitProperties(user_metadata="first"))
        write(tmp_path, rows(3), mode="append")
        write(tmp_path, rows(4), mode="overwrite")
        newest, appended, created = history(LocalLogStore(tmp_path))
        assert created.commit_info.operation == "WRITE"
        assert created.commit_info.user_metadata == "first"
        assert created.commit_info.operation_parameters == {"mode": "ErrorIfExists", "partitionBy": "[]"}
        assert created.commit_info.operation_metrics["numOutputRows"] == "2"
        assert appended.commit_info.is_blind_append is True
        assert appended.commit_info.operation_parameters["mode"] == "Append"
        assert newest.commit_info.is_blind_append is False
        assert newest.commit_info.operation_metrics["numRemovedFiles"] == "2"
        assert newest.commit_info.operation_metrics["numFiles"] == "1"

    def test_error_is_the_default_mode(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1))
        with pytest.raises(TableExistsError, match="append"):
            write(tmp_path, rows(2))
        assert ids(tmp_path) == [1]

    def test_ignore_leaves_a_table_alone(self, tmp_path: Path) -> None:
        assert write_deltalake(tmp_path, rows(1), mode="ignore") is not None
        assert write_deltalake(tmp_path, rows(2), mode="ignore") is None
        assert ids(tmp_path) == [1]

    def test_properties_become_part_of_the_table(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1), configuration={"delta.appendOnly": "true"})
        with pytest.raises(InvalidTableError, match="append-only"):
            write(tmp_path, rows(2), mode="overwrite")
        write(tmp_path, rows(2), mode="append", configuration={"delta.appendOnly": "true"})
        assert ids(tmp_path) == [1, 2]
        assert data_files(tmp_path) == live_paths(tmp_path), "a refused write leaves nothing behind"

    @pytest.mark.parametrize(
        ("configuration", "error"),
        [
            ({"delta.checkpointInterval": "none"}, InvalidTablePropertyError),
            ({"delta.columnMapping.mode": "other"}, InvalidTablePropertyError),
            ({"delta.enableVariantShredding": "true"}, UnsupportedTableFeatureError),
            ({"delta.feature.clustering": "supported"}, UnsupportedTableFeatureError),
        ],
    )
    def test_definition_that_cannot_be_kept_is_refused(
        self, tmp_path: Path, configuration: dict[str, str], error: type[DeltaError]
    ) -> None:
        with pytest.raises(error):
            write(tmp_path, rows(1), configuration=configuration)
        assert not (tmp_path / "_delta_log").exists()
        assert data_files(tmp_path) == set()

    def test_timestamps_without_zone_ask_for_their_feature(self, tmp_path: Path) -> None:
        write(tmp_path, pa.table({"id": [1], "at": [dt.datetime(2024, 1, 1)]}))
        protocol = Snapshot.load(LocalLogStore(tmp_path)).protocol
        assert protocol.reader_features == frozenset({"timestampNtz"})
        assert protocol.writer_features == frozenset({"timestampNtz", "appendOnly", "invariants"})
        assert read(tmp_path)[0]["at"] == dt.datetime(2024, 1, 1)

    @pytest.mark.parametrize("partition_by", [["missing"], ["id", "p"]])
    def test_partitioning_must_make_sense(self, tmp_path: Path, partition_by: list[str]) -> None:
        with pytest.raises(SchemaError):
            write(tmp_path, rows(1), partition_by=partition_by)

    def test_creator_that_lost_the_race_appends(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._blind_to_the_first_table(monkeypatch)
        write(tmp_path, rows(1))
        committed = write(tmp_path, rows(2), mode="append")
        assert committed.version == 1
        assert ids(tmp_path) == [1, 2]

    def test_creator_that_lost_the_race_fails_in_error_mode(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._blind_to_the_first_table(monkeypatch)
        write(tmp_path, rows(1))
        with pytest.raises(TableExistsError, match="at the same time"):
            write(tmp_path, rows(2))
        assert write_deltalake(tmp_path, rows(3), mode="ignore") is None
        assert data_files(tmp_path) == live_paths(tmp_path)

    def test_creator_whose_rows_do_not_fit_the_winner_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._blind_to_the_first_table(monkeypatch)
        write(tmp_path, rows(1), partition_by=["p"])
        with pytest.raises(SchemaMismatchError, match="partitioned"):
            write(tmp_path, rows(2), mode="append")
        with pytest.raises(SchemaMismatchError):
            write(tmp_path, pa.table({"other": [1]}), mode="append")
        assert data_files(tmp_path) == live_paths(tmp_path)

    @staticmethod
    def _blind_to_the_first_table(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("delta_core.dml.write._latest", lambda store, clock: None)


class TestData:
    def test_reader_is_streamed(self, tmp_path: Path) -> None:
        schema = pa.schema([("id", pa.int64())])
        alive = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal alive
            for number in range(20):
                alive += 1
                yield pa.record_batch({"id": pa.array(range(number * 100, number * 100 + 100))}, schema)

        write(tmp_path, pa.RecordBatchReader.from_batches(schema, batches()), max_rows_per_file=500)
        assert alive == 20
        assert len(data_files(tmp_path)) == 4
        assert ids(tmp_path) == list(range(2000))

    @pytest.mark.parametrize("form", ["batch", "stream", "array"])
    def test_anything_that_speaks_arrow(self, tmp_path: Path, form: str) -> None:
        class Stream:
            def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                return rows(1, 2).__arrow_c_stream__(requested_schema)

        class Array:
            def __arrow_c_array__(self, requested_schema: object = None) -> object:
                return rows(1, 2).to_batches()[0].__arrow_c_array__(requested_schema)

        data = {"batch": rows(1, 2).to_batches()[0], "stream": Stream(), "array": Array()}[form]
        write(tmp_path, data)
        assert ids(tmp_path) == [1, 2]

    def test_anything_else_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="Data of type int cannot be written"):
            write(tmp_path, [1, 2, 3])

    def test_no_rows_create_an_empty_table(self, tmp_path: Path) -> None:
        write(tmp_path, rows())
        assert ids(tmp_path) == []
        assert Snapshot.load(LocalLogStore(tmp_path)).schema.names == ("id", "p")

    def test_damage_in_the_middle_of_a_stream_leaves_nothing(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1))
        schema = pa.schema([("id", pa.int64()), ("p", pa.string())])

        def batches() -> Iterator[pa.RecordBatch]:
            yield rows(2).to_batches()[0]
            raise RuntimeError("the source broke")

        with pytest.raises(InputDataError, match="RuntimeError: the source broke"):
            write(tmp_path, pa.RecordBatchReader.from_batches(schema, batches()), mode="append")
        assert ids(tmp_path) == [1]
        assert data_files(tmp_path) == live_paths(tmp_path)


class TestSchema:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        write(tmp_path, rows(1, 2), partition_by=["p"])
        return tmp_path

    def test_extra_column_is_refused(self, table: Path) -> None:
        with pytest.raises(SchemaMismatchError, match="extra"):
            write(table, rows(3, extra=[1]), mode="append")
        assert ids(table) == [1, 2]

    def test_other_type_is_refused_with_both_types(self, table: Path) -> None:
        data = pa.table({"id": ["x"], "p": ["p1"]})
        with pytest.raises(SchemaMismatchError, match=r"id.*string.*long|id.*long.*string"):
            write(table, data, mode="append")

    def test_narrower_type_widens(self, table: Path) -> None:
        write(table, pa.table({"id": pa.array([3], pa.int32()), "p": ["p1"]}), mode="append")
        assert ids(table) == [1, 2, 3]

    def test_missing_column_is_null(self, table: Path) -> None:
        write(table, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
        assert read(table)[2] == {"id": 3, "p": None}

    def test_merge_adds_columns(self, table: Path) -> None:
        write(table, rows(3, more=["x"]), mode="append", schema_mode="merge")
        snapshot = Snapshot.load(LocalLogStore(table))
        assert [(f.name, f.data_type) for f in snapshot.schema] == [
            ("id", LONG),
            ("p", STRING),
            ("more", STRING),
        ]
        assert [row["more"] for row in read(table)] == [None, None, "x"]

    def test_merge_without_news_does_not_touch_the_metadata(self, table: Path) -> None:
        write(table, rows(3), mode="append", schema_mode="merge")
        assert not any(isinstance(a, Metadata) for a in commit_actions(LocalLogStore(table), 1))

    def test_overwrite_replaces_the_schema_when_asked(self, table: Path) -> None:
        before = Snapshot.load(LocalLogStore(table)).metadata
        data = pa.table({"id": pa.array([7], pa.int32()), "q": ["x"]})
        with pytest.raises(SchemaMismatchError):
            write(table, data, mode="overwrite")
        write(table, data, mode="overwrite", schema_mode="overwrite", partition_by=["q"])
        snapshot = Snapshot.load(LocalLogStore(table))
        assert [(f.name, f.data_type) for f in snapshot.schema] == [("id", INTEGER), ("q", STRING)]
        assert snapshot.partition_columns == ("q",)
        assert snapshot.metadata.id == before.id
        assert read(table) == [{"id": 7, "q": "x"}]

    def test_other_partitioning_is_refused_with_the_way_out(self, table: Path) -> None:
        with pytest.raises(SchemaMismatchError, match="schema_mode='overwrite'"):
            write(table, rows(3), mode="overwrite", partition_by=["id"])
        write(table, rows(3), mode="append", partition_by="P")
        assert ids(table) == [1, 2, 3]

    def test_other_properties_are_refused_with_the_way_out(self, table: Path) -> None:
        with pytest.raises(ConfigurationError, match="set_properties"):
            write(table, rows(3), mode="append", configuration={"delta.appendOnly": "true"})

    @pytest.mark.parametrize(
        "arguments",
        [
            {"mode": "upsert"},
            {"mode": "append", "predicate": "id = 1"},
            {"mode": "append", "schema_mode": "overwrite"},
            {"mode": "overwrite", "schema_mode": "overwrite", "predicate": "id = 1"},
            {"mode": "append", "schema_mode": "replace"},
            {"mode": "append", "target_file_size": -1},
        ],
    )
    def test_arguments_that_contradict_each_other(self, table: Path, arguments: dict[str, Any]) -> None:
        with pytest.raises(ConfigurationError):
            write(table, rows(3), **arguments)
        assert ids(table) == [1, 2]


class TestReplaceWhere:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        write(tmp_path, rows(1, 3, 5, 7), partition_by=["p"])
        write(tmp_path, rows(2, 4, 6, 8), mode="append")
        return tmp_path

    def removed(self, table: Path) -> list[RemoveFile]:
        version = Snapshot.load(LocalLogStore(table)).version
        return [a for a in commit_actions(LocalLogStore(table), version) if isinstance(a, RemoveFile)]

    def test_partition_predicate_takes_whole_files_unread(self, table: Path) -> None:
        for path in table.glob("p=p1/*.parquet"):
            path.write_bytes(b"unreadable")
        write(table, rows(9), mode="overwrite", predicate="p = 'p1'")
        assert ids(table) == [2, 4, 6, 8, 9]
        removes = self.removed(table)
        assert [r.data_change for r in removes] == [True]
        assert removes[0].partition_values == {"p": "p1"}
        assert removes[0].extended_file_metadata is True

    def test_empty_string_in_a_partition_column_is_the_null_that_it_is_stored_as(self, table: Path) -> None:
        empty = pa.table({"id": [9], "p": [""]})
        with pytest.raises(ConstraintViolationError):
            write(table, empty, mode="overwrite", predicate="p = ''")
        for _ in range(2):
            write(table, empty, mode="overwrite", predicate="p IS NULL")
        assert read(table, predicate="p IS NULL") == [{"id": 9, "p": None}]

    def test_row_predicate_rewrites_files_that_match_in_part(self, table: Path) -> None:
        committed = write(table, rows(10, 11), mode="overwrite", predicate="id >= 7")
        assert ids(table) == [1, 2, 3, 4, 5, 6, 10, 11]
        assert len(self.removed(table)) == 2
        assert committed.operation_metrics["numCopiedRows"] == "6"

    def test_files_that_statistics_rule_out_are_not_read(self, table: Path) -> None:
        for path in live_paths(table):
            (table / path).write_bytes(b"unreadable")
        write(table, rows(101, 103), mode="append")
        write(table, rows(100), mode="overwrite", predicate="id >= 100")
        assert len(self.removed(table)) == 1

    def test_file_in_which_every_row_matches_goes_whole(self, table: Path) -> None:
        committed = write(table, rows(21), mode="overwrite", predicate="p = 'p1' AND id > 0")
        assert ids(table) == [2, 4, 6, 8, 21]
        assert committed.operation_metrics["numCopiedRows"] == "0"

    def test_null_does_not_match_and_stays(self, tmp_path: Path) -> None:
        write(tmp_path, pa.table({"id": pa.array([1, None, 3], pa.int64())}))
        write(tmp_path, pa.table({"id": pa.array([2], pa.int64())}), mode="overwrite", predicate="id > 0")
        assert ids(tmp_path) == [2, None]

    @pytest.mark.parametrize("value", [6, None])
    def test_rows_outside_the_predicate_are_refused(self, table: Path, value: int | None) -> None:
        data = pa.table({"id": pa.array([7, value], pa.int64()), "p": ["p1", "p1"]})
        with pytest.raises(ConstraintViolationError, match="id"):
            write(table, data, mode="overwrite", predicate="id >= 7")
        assert ids(table) == list(range(1, 9))
        assert data_files(table) == live_paths(table)

    @pytest.mark.parametrize("predicate", ["nope = 1", "id >=", "id = (SELECT 1)", "id = 1; DROP TABLE t"])
    def test_predicate_must_fit_the_table(self, table: Path, predicate: str) -> None:
        with pytest.raises(ExpressionError):
            write(table, rows(7), mode="overwrite", predicate=predicate)

    def test_history_shows_the_predicate(self, table: Path) -> None:
        write(table, rows(9), mode="overwrite", predicate="p = 'p1'")
        parameters = history(LocalLogStore(table), limit=1)[0].commit_info.operation_parameters
        assert parameters["mode"] == "Overwrite"
        assert "p1" in parameters["predicate"]

    def test_concurrent_replacement_of_other_partitions_gets_along(self, table: Path) -> None:
        store = LocalLogStore(table)
        slow = StoreTable(store)
        slow.adopt_newest = lambda: None  # type: ignore[method-assign]
        write(table, rows(2), mode="overwrite", predicate="p = 'p0'")
        committed = write(slow, rows(1), mode="overwrite", predicate="p = 'p1'")
        assert committed.version == 3
        assert ids(table) == [1, 2]

    def test_concurrent_replacement_of_the_same_partition_conflicts(self, table: Path) -> None:
        slow = StoreTable(LocalLogStore(table))
        slow.adopt_newest = lambda: None  # type: ignore[method-assign]
        write(table, rows(1), mode="overwrite", predicate="p = 'p1'")
        with pytest.raises(DeltaError) as raised:
            write(slow, rows(3), mode="overwrite", predicate="p = 'p1'")
        assert raised.value.conflict
        assert ids(table) == [1, 2, 4, 6, 8]
        assert len(data_files(table) - live_paths(table)) == 1, "only the replaced file remains"


class TestHandle:
    def test_append_through_a_handle_reads_no_log(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1))
        handle = StoreTable(LocalLogStore(tmp_path))
        for number in range(2, 5):
            assert write(handle, rows(number), mode="append").version == number - 1
        assert handle.snapshot.version == 3
        assert handle.snapshot.files.num_files == 4

    def test_append_through_an_old_handle_passes_other_appends(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1))
        handle = StoreTable(LocalLogStore(tmp_path))
        write(tmp_path, rows(2), mode="append")
        assert write(handle, rows(3), mode="append").version == 2
        assert ids(tmp_path) == [1, 2, 3]

    def test_append_through_a_handle_notices_another_schema(self, tmp_path: Path) -> None:
        write(tmp_path, rows(1))
        handle = StoreTable(LocalLogStore(tmp_path))
        write(tmp_path, rows(2, more=[1]), mode="append", schema_mode="merge")
        with pytest.raises(MetadataChangedError):
            write(handle, rows(3), mode="append")
        assert data_files(tmp_path) == live_paths(tmp_path)


class TestIdempotency:
    def test_second_run_of_a_step_changes_nothing(self, tmp_path: Path) -> None:
        key = SetTransaction(app_id="load", version=1)
        assert not write(tmp_path, rows(1), txn=key).already_applied
        again = write(tmp_path, rows(1), mode="append", txn=key)
        assert again.already_applied
        assert again.version == 0
        assert ids(tmp_path) == [1]
        assert len(data_files(tmp_path)) == 1, "nothing is written when the key is there before"
        assert (
            write(tmp_path, rows(2), mode="append", txn=SetTransaction(app_id="load", version=2)).version == 1
        )

    def test_two_keys_are_refused(self, tmp_path: Path) -> None:
        first, second = (SetTransaction(app_id="a", version=v) for v in (1, 2))
        with pytest.raises(ConfigurationError, match="Two"):
            write(tmp_path, rows(1), txn=first, commit_properties=CommitProperties(txn=second))


class TestCheckpoints:
    def test_checkpoint_follows_every_interval(self, tmp_path: Path) -> None:
        write(tmp_path, rows(0), configuration={"delta.checkpointInterval": "3"})
        for number in range(1, 7):
            write(tmp_path, rows(number), mode="append")
        found = sorted(path.name for path in (tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
        assert found == [f"{version:020d}.checkpoint.parquet" for version in (3, 6)]
        assert ids(tmp_path) == list(range(7))

    def test_failing_checkpoint_does_not_fail_the_commit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(snapshot: Snapshot) -> None:
            raise OSError("disk full")

        METRICS.reset()
        monkeypatch.setattr("delta_core.dml.post_commit.write_checkpoint", fail)
        write(tmp_path, rows(0), configuration={"delta.checkpointInterval": "1"})
        assert write(tmp_path, rows(1), mode="append").version == 1
        assert METRICS.value(CHECKPOINT_FAILED_TOTAL) == 1

    @pytest.mark.parametrize("enabled", [True, False])
    def test_expired_log_files_go_with_a_checkpoint(self, tmp_path: Path, enabled: bool) -> None:
        configuration = {
            "delta.checkpointInterval": "2",
            "delta.enableExpiredLogCleanup": str(enabled).lower(),
        }
        write(tmp_path, rows(0), configuration=configuration, clock=ManualClock(1_500_000_000_000))
        for number in range(1, 4):
            write(tmp_path, rows(number), mode="append")
        for path in (tmp_path / "_delta_log").iterdir():
            os.utime(path, (1_500_000_000, 1_500_000_000))
        write(tmp_path, rows(4), mode="append")
        write(tmp_path, rows(5), mode="append")
        kept = [entry.version for entry in history(LocalLogStore(tmp_path))]
        assert kept == ([5, 4, 3, 2] if enabled else [5, 4, 3, 2, 1, 0])
        assert ids(tmp_path) == list(range(6))
