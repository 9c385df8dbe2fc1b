"""Dropping what files spell otherwise than the table: widened types and mapped names."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import DomainMetadata
from delta_core.errors import (
    FeatureRemovalError,
)
from delta_core.maintenance.feature_drop import drop_feature
from delta_core.run import Run
from delta_core.scan.change_data import ChangeDataScan
from delta_core.schema.types import DOUBLE, INTEGER, LONG, TIMESTAMP_NTZ, StructField
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.upgrade import supported_features, with_features
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction
from tests.support.dropped_tables import (
    by_peer,
    ids,
    make,
    rows,
    snapshot_of,
)


class TestWidenedColumns:
    def make(self, path: Path, column: str = "v", partition: str | None = None) -> DeltaTable:
        """Narrow files, and one that has the wider types."""
        narrow = pa.table(
            {
                "id": [1, 2],
                "v": pa.array([10, None], pa.int32()),
                "d": pa.array([dt.date(2026, 1, 1), None], pa.date32()),
                "s": [{"x": 1}, None],
                "l": pa.array([[1, None], []], pa.list_(pa.int16())),
            }
        ).set_column(3, "s", pa.array([{"x": 1}, None], pa.struct([("x", pa.int8())])))
        options: dict[str, Any] = {"partition_by": [partition]} if partition else {}
        configuration = {
            "delta.enableTypeWidening": "true",
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
        }
        write_deltalake(path, narrow, configuration=configuration, **options)
        table = DeltaTable(path)
        table.alter.change_type("v", DOUBLE)
        table.alter.change_type("d", TIMESTAMP_NTZ)
        table.alter.change_type(["s", "x"], LONG)
        table.alter.change_type(["l", "element"], INTEGER)
        write_deltalake(table, pa.table({"id": [3], "v": [0.5]}), mode="append", schema_mode="merge")
        return table

    def test_narrow_files_are_written_again_and_the_record_goes(self, tmp_path: Path) -> None:
        table = self.make(tmp_path)
        table.delete("id = 2")
        expected = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
        since = table.version() + 1
        kept = set(table.snapshot.files.to_table(["path"])["path"].to_pylist())
        table.alter.drop_feature("typeWidening")
        assert "typeWidening" not in supported_features(table.protocol())
        assert "delta.typeChanges" not in table.metadata().schema_string
        assert "delta.enableTypeWidening" not in table.metadata().configuration
        files = table.snapshot.files.to_table(["path"])["path"].to_pylist()
        assert len(kept & set(files)) == 1, "what has the types already stays"
        schema = {pq.read_schema(tmp_path / name).field("v").type for name in files}
        assert schema == {pa.float64()}
        assert sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"]) == expected
        scan = ChangeDataScan(table.snapshot, starting_version=since)
        assert sum(batch.num_rows for batch in scan.to_batches()) == 0
        table.alter.drop_feature("deletionVectors")
        peer = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
        assert sorted(peer, key=lambda row: row["id"]) == expected

    def test_narrow_files_that_come_back_meanwhile_are_seen(self, tmp_path: Path) -> None:
        table = self.make(tmp_path)
        expected = sorted(table.to_pyarrow_table()["id"].to_pylist())
        restored = []

        class Restoring:
            def on_phase(self, phase: CommitPhase, version: int) -> None:
                other = DeltaTable(tmp_path)
                rewritten = other.history(1)[0].commit_info.operation == "REORG"
                if phase is CommitPhase.BEFORE_PUT and rewritten and not restored:
                    restored.append(version)
                    other.restore(other.version() - 2)

        drop_feature(snapshot_of(tmp_path), "typeWidening", run=Run(observer=Restoring()))
        after = DeltaTable(tmp_path)
        assert restored
        files = after.snapshot.files.to_table(["path"])["path"].to_pylist()
        assert {pq.read_schema(tmp_path / name).field("v").type for name in files} == {pa.float64()}
        assert sorted(after.to_pyarrow_table()["id"].to_pylist()) == expected

    def test_a_partition_of_dates_that_became_times_is_refused(self, tmp_path: Path) -> None:
        table = self.make(tmp_path, partition="d")
        version = table.version()
        with pytest.raises(FeatureRemovalError, match="cannot be dropped now") as caught:
            table.alter.drop_feature("typeWidening")
        assert "still has dates as its values" in caught.value.cause
        assert DeltaTable(tmp_path).version() == version

    @pytest.mark.parametrize("mode", ["none", "name"])
    def test_partitions_that_were_written_anew_are_times(self, tmp_path: Path, mode: str) -> None:
        rows = pa.table({"d": [dt.date(2020, 1, 1)], "id": [1]})
        wanted = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": mode}
        write_deltalake(tmp_path, rows, partition_by="d", configuration=wanted)
        table = DeltaTable(tmp_path)
        table.alter.change_type("d", TIMESTAMP_NTZ)
        times = pa.table({"d": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us")), "id": [2]})
        write_deltalake(table, times, mode="append")
        with pytest.raises(FeatureRemovalError, match="cannot be dropped now"):
            table.alter.drop_feature("typeWidening")
        write_deltalake(table, times, mode="overwrite")
        table.alter.drop_feature("typeWidening")
        assert "typeWidening" not in supported_features(table.protocol())
        assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == times.to_pylist()


class TestMappedColumns:
    FEATURES: ClassVar = {
        "columnMapping__mode": "name",
        "enableDeletionVectors": "true",
        "enableRowTracking": "true",
        "enableChangeDataFeed": "true",
    }

    def make(self, path: Path, mode: str = "name") -> DeltaTable:
        given = {f"delta.{key.replace('__', '.')}": value for key, value in self.FEATURES.items()}
        given["delta.columnMapping.mode"] = mode
        table = pa.table(
            {
                "id": list(range(20)),
                "p": ["a", "b c", None, "=%"] * 5,
                "gone": list(range(20)),
                "s": [{"x": i, "y": [{"z": i}]} if i % 3 else None for i in range(20)],
            }
        )
        write_deltalake(path, table, partition_by=["p"], configuration=given)
        opened = DeltaTable(path)
        opened.alter.rename_column("p", "part")
        opened.alter.rename_column(["s", "x"], "renamed")
        opened.alter.drop_columns(["gone"])
        opened.alter.add_columns(StructField(name="gone", data_type=LONG))
        write_deltalake(
            opened, pa.table({"id": [100], "part": ["a"], "gone": [7]}), mode="append", schema_mode="merge"
        )
        opened.delete("id IN (1, 5)")
        return opened

    @staticmethod
    def rows(table: DeltaTable, *, row_ids: bool = False) -> list[dict[str, Any]]:
        found = table.to_pyarrow_table(row_ids=row_ids).to_pylist()
        return sorted(found, key=lambda row: row["id"])

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_files_get_the_columns_own_names(self, tmp_path: Path, mode: str) -> None:
        table = self.make(tmp_path, mode)
        expected, with_ids = self.rows(table), self.rows(table, row_ids=True)
        before = {version: ids(tmp_path, version) for version in range(table.version() + 1)}
        since = table.version() + 1
        table.alter.drop_feature("columnMapping")
        assert "columnMapping" not in supported_features(table.protocol())
        assert "delta.columnMapping" not in table.metadata().schema_string
        assert not [key for key in table.metadata().configuration if "columnMapping" in key]
        assert self.rows(table, row_ids=True) == with_ids, "rows keep their ids"
        scan = ChangeDataScan(table.snapshot, starting_version=since)
        assert sum(batch.num_rows for batch in scan.to_batches()) == 0
        files = table.snapshot.files.to_table(["path", "partition_values", "stats"]).to_pylist()
        for file in files:
            assert [name for name, _ in file["partition_values"]] == ["part"]
            assert set(json.loads(file["stats"])["minValues"]) <= {"id", "gone", "s"}
        assert {version: ids(tmp_path, version) for version in before} == before
        assert self.rows_found_by_skipping(table) == [100]
        table.alter.drop_feature("rowTracking")
        table.alter.drop_feature("deletionVectors")
        peer = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()
        assert sorted(peer.select(table.schema().names).to_pylist(), key=lambda row: row["id"]) == expected

    @staticmethod
    def rows_found_by_skipping(table: DeltaTable) -> list[int]:
        found: list[int] = table.to_pyarrow_table(filters="gone = 7 AND part = 'a'")["id"].to_pylist()
        return found

    def test_a_dropped_column_does_not_come_back(self, tmp_path: Path) -> None:
        write_deltalake(
            tmp_path, pa.table({"id": [1], "old": [2]}), configuration={"delta.columnMapping.mode": "name"}
        )
        table = DeltaTable(tmp_path)
        table.alter.drop_columns(["old"])
        table.alter.drop_feature("columnMapping")
        table.alter.add_columns(StructField(name="old", data_type=LONG))
        assert self.rows(table) == [{"id": 1, "old": None}]

    def test_names_that_nobody_reads_by_go_without_a_rewriting(self, tmp_path: Path) -> None:
        """Another engine turned the mapping off, and left ids and names in the schema."""
        make(tmp_path, columnMapping__mode="name")
        DeltaTable(tmp_path).alter.drop_feature("columnMapping")
        opened = snapshot_of(tmp_path)
        text = json.loads(opened.metadata.schema_string)
        for number, field in enumerate(text["fields"], 1):
            field["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": field["name"],
            }
        transaction = Transaction.begin(opened, operation="TEST", writer_kind=WriterKind.REWRITE)
        transaction.add(
            with_features(opened.protocol, ["columnMapping"]),
            replace(opened.metadata, schema_string=json.dumps(text)),
        ).commit()
        before = snapshot_of(tmp_path).files.to_table(["path"])
        table = DeltaTable(tmp_path)
        table.alter.drop_feature("columnMapping")
        assert "columnMapping" not in table.metadata().schema_string
        assert table.snapshot.files.to_table(["path"]).equals(before)
        assert by_peer(tmp_path) == ids(tmp_path)

    def test_a_table_without_files(self, tmp_path: Path) -> None:
        table = DeltaTable.create(tmp_path, rows(0).schema, configuration={"delta.columnMapping.mode": "id"})
        table.alter.drop_feature("columnMapping")
        assert "columnMapping" not in supported_features(table.protocol())
        write_deltalake(table, rows(0), mode="append")
        assert by_peer(tmp_path) == list(range(10))

    def test_what_is_appended_meanwhile_is_written_again_too(self, tmp_path: Path) -> None:
        make(tmp_path, columnMapping__mode="name")
        appended = []

        class Appending:
            def on_phase(self, phase: CommitPhase, version: int) -> None:
                if phase is CommitPhase.BEFORE_PUT and len(appended) < 2:
                    appended.append(version)
                    write_deltalake(tmp_path, rows(500 + 10 * len(appended)), mode="append")

        drop_feature(snapshot_of(tmp_path), "columnMapping", run=Run(observer=Appending()))
        assert len(ids(tmp_path)) == 49
        assert ids(tmp_path) == by_peer(tmp_path)
        live = set(snapshot_of(tmp_path).files.to_table(["path"])["path"].to_pylist())
        assert all(pq.read_schema(tmp_path / name).names == ["id", "t"] for name in live)

    def test_a_clustered_table_is_refused(self, tmp_path: Path) -> None:
        make(tmp_path, columnMapping__mode="name", feature__domainMetadata="supported")
        opened = snapshot_of(tmp_path)
        named = opened.column_mapping.physical_name(opened.schema.fields[0])
        said = json.dumps({"clusteringColumns": [[named]]})
        names = supported_features(opened.protocol) | {"clustering"}
        transaction = Transaction.begin(opened, operation="TEST", writer_kind=WriterKind.REWRITE)
        transaction.add(
            replace(opened.protocol, min_reader_version=2, min_writer_version=7, writer_features=names),
            DomainMetadata(domain="delta.clustering", configuration=said),
        ).commit()
        with pytest.raises(FeatureRemovalError, match="cannot be dropped now") as caught:
            DeltaTable(tmp_path).alter.drop_feature("columnMapping")
        assert "Drop the feature clustering first" in caught.value.fix
        table = DeltaTable(tmp_path)
        table.alter.drop_feature("clustering")
        table.alter.drop_feature("columnMapping")
        assert by_peer(tmp_path) == ids(tmp_path)
