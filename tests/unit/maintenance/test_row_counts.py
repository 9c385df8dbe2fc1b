"""Files come back, and are cloned, although the log has left out how many rows they have."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.deletion_vectors.file_update import count_records
from delta_core.errors import MissingDataFileError
from delta_core.maintenance import row_counts

UNCOUNTED = {
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpoint.writeStatsAsStruct": "false",
}
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
ICEBERG = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
ROWS = pa.table({"a": list(range(10))})


def created(path: Path, *, files: int = 1, **more: str) -> DeltaTable:
    """A table of ten rows whose log does not say how many there are."""
    write_deltalake(path, ROWS, max_rows_per_file=10 // files, configuration={**UNCOUNTED, **more})
    DeltaTable(path).create_checkpoint()
    return DeltaTable(path)


def with_deletion_vectors(path: Path) -> DeltaTable:
    table = created(path, **DELETION_VECTORS)
    table.delete("a < 3")
    table.create_checkpoint()
    return DeltaTable(path)


def with_unnumbered_rows(path: Path) -> DeltaTable:
    table = created(path)
    table.alter.add_feature("rowTracking")
    return table


SOURCES = [with_deletion_vectors, with_unnumbered_rows]


def values(path: Path, *, allowed: Path | None = None) -> list[int]:
    roots = [] if allowed is None else [allowed]
    return sorted(DeltaTable(path, allowed_roots=roots).to_pyarrow_table()["a"].to_pylist())


def counts(path: Path) -> list[Any]:
    """What the last commit says of its files."""
    log = sorted((path / "_delta_log").glob("*.json"))[-1].read_text()
    adds = [line["add"] for line in map(json.loads, log.splitlines()) if "add" in line]
    return [json.loads(add.get("stats") or "{}").get("numRecords") for add in adds]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("shallow", [False, True])
def test_clone(tmp_path: Path, source: Callable[[Path], DeltaTable], shallow: bool) -> None:
    expected = values(Path(source(tmp_path / "t").store.uri.removeprefix("file://")))
    clone_table(tmp_path / "t", tmp_path / "clone", shallow=shallow)
    assert values(tmp_path / "clone", allowed=tmp_path / "t") == expected
    assert counts(tmp_path / "clone") == [10]


@pytest.mark.parametrize("source", SOURCES)
def test_restore(tmp_path: Path, source: Callable[[Path], DeltaTable]) -> None:
    table = source(tmp_path / "t")
    version, before = table.version(), values(tmp_path / "t")
    table.delete()
    DeltaTable(tmp_path / "t").restore(version)
    assert values(tmp_path / "t") == before
    assert counts(tmp_path / "t") == [10]


def test_restore_to_before_rows_had_ids(tmp_path: Path) -> None:
    table = created(tmp_path / "t")
    table.alter.set_properties({"delta.enableRowTracking": "true"})
    table.delete()
    DeltaTable(tmp_path / "t").restore(0)
    assert values(tmp_path / "t") == list(range(10))


def test_restore_that_makes_the_table_compatible_with_iceberg_again(tmp_path: Path) -> None:
    table = created(tmp_path / "t", files=5, **ICEBERG)
    version = table.version()
    table.alter.set_properties({"delta.enableIcebergCompatV2": "false"})
    table.delete("a = 9")
    DeltaTable(tmp_path / "t").restore(version)
    assert values(tmp_path / "t") == list(range(10))
    assert counts(tmp_path / "t") == [2] * 5, "those that stayed, too"
    log = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))[-1].read_text()
    adds = [line["add"] for line in map(json.loads, log.splitlines()) if "add" in line]
    assert sorted(add["dataChange"] for add in adds) == [False] * 4 + [True]


def test_what_needs_no_count_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path / "t")
    table.delete()
    monkeypatch.setattr(row_counts, "count_records", None)
    DeltaTable(tmp_path / "t").restore(0)
    assert values(tmp_path / "t") == list(range(10))
    assert sorted(PeerTable(tmp_path / "t").to_pyarrow_table()["a"].to_pylist()) == list(range(10))


def test_a_clone_is_brought_up_to_date_by_the_footers_of_new_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clone = tmp_path / "t", tmp_path / "clone"
    table = created(source, files=10, **ICEBERG)
    read = []

    def counting(store: Any, file: Any, **more: Any) -> int:
        read.append(file.path)
        return count_records(store, file, **more)

    monkeypatch.setattr(row_counts, "count_records", counting)
    clone_table(source, clone)
    assert len(read) == 10
    clone_table(source, clone)
    assert len(read) == 10
    os.remove(source / read[0])
    assert clone_table(source, clone).committed is None, "the clone has the file that the source has lost"
    with pytest.raises(MissingDataFileError):
        clone_table(source, tmp_path / "new")
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").rglob("*.*"))
    write_deltalake(source, pa.table({"a": [99]}), mode="append")
    table.create_checkpoint()
    assert clone_table(source, clone).files_copied == 1
    assert values(clone) == [*range(10), 99]
