"""The open table: versions, files, rows, maintenance through one handle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import delta_core
from delta_core import DeltaTable, write_deltalake
from delta_core.clock import ManualClock
from delta_core.errors import (
    ConfigurationError,
    RestoreError,
    RetentionTooShortError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.schema.json import schema_from_json
from tests.support.repository import ROOT

START_MS = 1_700_000_000_000


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids]})


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Version 0 has rows 1 to 4 in two partitions, version 1 also 5 and 6."""
    write_deltalake(tmp_path / "t", rows(1, 2, 3, 4), partition_by=["p"])
    write_deltalake(tmp_path / "t", rows(5, 6), mode="append")
    return DeltaTable(tmp_path / "t")


class TestOpening:
    def test_missing_table(self, tmp_path: Path) -> None:
        assert not DeltaTable.is_deltatable(tmp_path)
        with pytest.raises(TableNotFoundError):
            DeltaTable(tmp_path)

    def test_every_spelling_is_one_table(self, table: DeltaTable) -> None:
        path = table.table_uri.removeprefix("file://")
        for uri in (path, path + "/", f"file:{path}", Path(path)):
            assert DeltaTable(uri).table_uri == table.table_uri
            assert DeltaTable.is_deltatable(uri)

    def test_versions(self, table: DeltaTable) -> None:
        assert (table.version(), ids(table)) == (1, [1, 2, 3, 4, 5, 6])
        assert ids(DeltaTable(table.table_uri, version=0)) == [1, 2, 3, 4]
        table.load_as_version(0)
        assert (table.version(), ids(table)) == (0, [1, 2, 3, 4])
        table.update_incremental()
        assert table.version() == 1
        with pytest.raises(VersionNotFoundError):
            table.load_as_version(7)
        first = table.history()[-1].timestamp_ms
        assert DeltaTable(table.table_uri, timestamp_ms=first).version() in (0, 1)

    @pytest.mark.parametrize("wrong", ["1", True, 0.0, [1]])
    @pytest.mark.parametrize("argument", ["version", "timestamp_ms"])
    def test_versions_and_times_are_whole_numbers(self, table: DeltaTable, argument: str, wrong: Any) -> None:
        for open_it in (
            lambda: DeltaTable(table.table_uri, **{argument: wrong}),
            lambda: table.load_as_version(**{argument: wrong}),
            lambda: table.restore(**{"target" if argument == "version" else argument: wrong}),
        ):
            with pytest.raises(ConfigurationError, match=argument) as caught:
                open_it()
            assert caught.value.fix

    def test_version_and_time_together_are_refused(self, table: DeltaTable) -> None:
        with pytest.raises(ConfigurationError, match="a timestamp"):
            DeltaTable(table.table_uri, version=0, timestamp_ms=START_MS)
        assert DeltaTable(table.table_uri, version=np.int64(0)).version() == 0

    def test_write_through_a_pinned_handle_starts_from_the_newest(self, table: DeltaTable) -> None:
        pinned = DeltaTable(table.table_uri, version=0)
        committed = write_deltalake(pinned, rows(7), mode="append")
        assert committed is not None
        assert (committed.version, committed.attempts) == (2, 1)
        assert (pinned.version(), ids(pinned)) == (2, [1, 2, 3, 4, 5, 6, 7])

    def test_handle_looks_at_the_log_again_after_a_while(self, table: DeltaTable) -> None:
        clock = ManualClock(START_MS)
        handle = DeltaTable(table.table_uri, clock=clock)
        write_deltalake(table, rows(7), mode="append")
        clock.advance(61)
        committed = write_deltalake(handle, rows(8), mode="append", clock=clock)
        assert committed is not None
        assert (committed.version, committed.attempts) == (3, 1)


class TestDescription:
    def test_schema_converts(self, table: DeltaTable) -> None:
        schema = table.schema()
        assert schema == table.snapshot.schema
        assert table.snapshot.schema == schema
        assert schema.to_arrow() == pa.schema([("id", pa.int64()), ("p", pa.string())])
        assert schema_from_json(schema.to_json()) == schema

    def test_detail(self, table: DeltaTable) -> None:
        detail = table.detail()
        assert (detail["version"], detail["num_files"], detail["partition_columns"]) == (1, 4, ["p"])
        assert detail["size_bytes"] == sum(table.get_add_actions().column("size_bytes").to_pylist())
        assert (detail["min_reader_version"], detail["min_writer_version"]) == (1, 2)

    def test_history_is_limited(self, table: DeltaTable) -> None:
        assert [entry.version for entry in table.history()] == [1, 0]
        assert [entry.version for entry in table.history(1)] == [1]

    def test_no_transactions_and_domains(self, table: DeltaTable) -> None:
        assert dict(table.transactions()) == {}
        assert dict(table.domain_metadata()) == {}


class TestFiles:
    def test_file_uris_are_pruned(self, table: DeltaTable) -> None:
        assert len(table.file_uris()) == 4
        matching = table.file_uris("p = 'p0' AND id > 4")
        assert len(matching) == 1
        assert matching[0].startswith(f"{table.table_uri}/p=p0/")
        assert Path(matching[0].removeprefix("file://")).is_file()

    def test_add_actions_nested_and_flat(self, table: DeltaTable) -> None:
        nested = table.get_add_actions()
        flat = table.get_add_actions(flatten=True)
        assert sorted(flat.column("min.id").to_pylist()) == [1, 2, 5, 6]
        assert sorted(flat.column("max.id").to_pylist()) == [3, 4, 5, 6]
        assert flat.column("null_count.id").to_pylist() == [0, 0, 0, 0]
        assert sorted(flat.column("partition.p").to_pylist()) == ["p0", "p0", "p1", "p1"]
        assert sorted(flat.column("num_records").to_pylist()) == [1, 1, 2, 2]
        assert [row["min"]["id"] for row in nested.to_pylist()] == flat.column("min.id").to_pylist()
        assert str(flat.schema.field("modification_time").type) == "timestamp[ms, tz=UTC]"

    def test_rows_are_filtered_and_projected(self, table: DeltaTable) -> None:
        found = table.to_pyarrow_table(columns=["p", "id"], filters="id >= 4")
        assert found.schema.names == ["p", "id"]
        assert sorted(found.column("id").to_pylist()) == [4, 5, 6]
        batches = list(table.to_batches(filters="p = 'p1'"))
        assert sum(batch.num_rows for batch in batches) == 3


class TestMaintenance:
    def test_compact(self, table: DeltaTable) -> None:
        assert not table.optimize.plan().is_empty
        metrics = table.optimize.compact()
        assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (2, 4)
        assert (table.version(), ids(table)) == (2, [1, 2, 3, 4, 5, 6])
        assert table.optimize.plan().is_empty
        table.optimize.compact()
        assert table.version() == 2, "nothing to do makes no version"

    def test_restore_and_back(self, table: DeltaTable) -> None:
        plan = table.restore(0, dry_run=True)
        assert (len(plan.removed), table.version()) == (2, 1)
        table.restore(0)
        assert (table.version(), ids(table)) == (2, [1, 2, 3, 4])
        table.restore(1)
        assert (table.version(), ids(table)) == (3, [1, 2, 3, 4, 5, 6])
        with pytest.raises(RestoreError):
            table.restore()

    def test_vacuum_is_a_dry_run_unless_told(self, table: DeltaTable) -> None:
        long_ago = ManualClock(START_MS)
        write_deltalake(table, rows(9), mode="overwrite", clock=long_ago)
        root = Path(table.table_uri.removeprefix("file://"))
        for number, path in enumerate(sorted(root.rglob("*.*"))):
            os.utime(path, (START_MS // 1000 + number, START_MS // 1000 + number))
        table = DeltaTable(root)
        write_deltalake(table, rows(10), mode="overwrite")
        planned = table.vacuum()
        assert len(planned) == 4, "what the last overwrite removed is protected"
        assert all((root / path).is_file() for path in planned)
        with pytest.raises(RetentionTooShortError):
            table.vacuum(0)
        assert sorted(table.vacuum(dry_run=False)) == sorted(planned)
        assert not any((root / path).exists() for path in planned)
        assert ids(table) == [10]
        assert table.history(1)[0].commit_info.operation == "VACUUM END"
        assert ids(DeltaTable(root, version=2)) == [9]

    def test_checkpoint_and_cleanup(self, table: DeltaTable) -> None:
        info = table.create_checkpoint()
        assert (info.version, info.num_add_files) == (1, 4)
        assert ids(DeltaTable(table.table_uri)) == [1, 2, 3, 4, 5, 6]
        table.cleanup_metadata(dry_run=True)
        assert [entry.version for entry in table.history()] == [1, 0]


def test_storage_options_cannot_change_on_an_open_table(table: DeltaTable) -> None:
    with pytest.raises(ConfigurationError):
        write_deltalake(table, rows(1), mode="append", storage_options={"a": "b"})


def test_import_is_light() -> None:
    program = "import sys, delta_core; print(sorted({'pyarrow', 'numpy', 'sqlglot'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert answer.stdout.strip() == "[]"
    assert set(delta_core.__all__) >= {"DeltaTable", "write_deltalake", "Transaction"}
