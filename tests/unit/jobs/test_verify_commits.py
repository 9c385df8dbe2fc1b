"""A check of our commits on a table that others write to, with every feature a file's rows depend on."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import StorageError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.compaction import task
from delta_core.storage.local import LocalLogStore
from tests.support.preserved_tables import TABLES, build, rows_of

ROWS = pa.table({"id": list(range(40)), "city": ["Aarhus", "Bergen"] * 20})


def run(path: Path, kind: str, **params: Any) -> JobResult:
    return run_job(JobSpec(kind=kind, table=TableRef(uri=str(path)), params=params), JobContext())


def checks(result: JobResult) -> dict[str, bool]:
    return {check["name"]: check["passed"] for check in result.output["report"]["checks"]}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain"
    for start in range(0, 40, 10):
        deltalake.write_deltalake(str(path), ROWS.slice(start, 10), mode="append")
    return path


def newest_file(path: Path) -> Path:
    """The one file that the newest version has."""
    (name,) = DeltaTable(path).snapshot.files.to_table(["path"])["path"].to_pylist()
    return path / name


@pytest.mark.parametrize("name", TABLES)
def test_a_rewrite_of_any_table_is_checked_while_others_append(tmp_path: Path, name: str) -> None:
    build(tmp_path / "t", TABLES[name])
    optimized = run(tmp_path / "t", "optimize")
    assert len(optimized.commits) == 1
    write_deltalake(tmp_path / "t", rows_of(TABLES[name], 1000), mode="append")
    checked = run(tmp_path / "t", "verify", commits=list(optimized.commits))
    assert checked.status is JobStatus.SUCCEEDED, checked.error
    assert checks(checked) == {"files_exist": True, "same_bytes": True, "same_rows": True}
    (same,) = [check for check in checked.output["report"]["checks"] if check["name"] == "same_rows"]
    assert same["figures"]["rows_compared"] > 100


def test_a_clustered_table_and_one_in_z_order(tmp_path: Path, plain: Path) -> None:
    ordered = run(plain, "optimize", z_order_by=["id"])
    assert run(plain, "verify", commits=list(ordered.commits)).status is JobStatus.SUCCEEDED
    clustered = tmp_path / "clustered"
    DeltaTable.create(clustered, ROWS.schema, cluster_by=["id"])
    write_deltalake(clustered, ROWS, mode="append")
    done = run(clustered, "optimize")
    assert len(done.commits) == 1
    assert run(clustered, "verify", commits=list(done.commits)).status is JobStatus.SUCCEEDED


def test_nothing_committed_asks_nothing(tmp_path: Path) -> None:
    checked = run(tmp_path / "no table", "verify", commits=[])
    assert checked.status is JobStatus.SUCCEEDED
    assert checked.output["report"]["checks"] == []
    assert checked.metrics.requests == 0


def test_a_commit_of_new_rows_is_checked_by_its_footers(plain: Path) -> None:
    version = DeltaTable(plain).version()
    assert checks(run(plain, "verify", commits=[version])) == {"files_exist": True, "row_counts": True}
    (added,) = DeltaTable(plain, version=0).snapshot.files.to_table(["path"])["path"].to_pylist()
    pq.write_table(pq.read_table(plain / added).slice(0, 3), plain / added)
    assert checks(run(plain, "verify", commits=[0])) == {"files_exist": False}


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_flipped_byte_in_what_we_wrote_is_found(plain: Path, place: int) -> None:
    commits = list(run(plain, "optimize").commits)
    file = newest_file(plain)
    data = bytearray(file.read_bytes())
    at = len(data) * place // 100
    data[at] ^= 1 << random.Random(place).randrange(8)
    file.write_bytes(bytes(data))
    checked = run(plain, "verify", commits=commits)
    assert checked.status is JobStatus.FAILED, (at, len(data))
    assert checked.error is not None
    assert str(plain) in checked.error.message


def test_a_row_that_a_rewrite_dropped_is_found(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropping(monkeypatch)
    commits = list(run(plain, "optimize").commits)
    checked = run(plain, "verify", commits=commits)
    assert checked.error is not None
    assert "1 rows fewer than the files that it removed" in checked.error.message


def dropping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rewriting lose its first row, and count as if it had not."""
    real = task.write_file

    def shorter(*arguments: Any, rows_expected: Callable[[], int], **options: Any) -> dict[str, Any]:
        *given, tables = arguments
        first = next(tables)
        left = chain([first.slice(1)], tables)
        return real(*given, left, rows_expected=lambda: rows_expected() - 1, **options)

    monkeypatch.setattr(task, "write_file", shorter)


def test_a_shallow_clone_is_checked_where_its_source_may_be_read(tmp_path: Path, plain: Path) -> None:
    clone = tmp_path / "clone"
    clone_table(plain, clone, shallow=True)
    write_deltalake(clone, ROWS.slice(0, 5), mode="append")
    write_deltalake(clone, ROWS.slice(5, 5), mode="append")
    own = run(clone, "optimize")
    assert own.actual["files_removed"] == 2, "what the source has is out of reach"
    assert run(clone, "verify", commits=list(own.commits)).status is JobStatus.SUCCEEDED
    roots = [str(plain)]
    everything = run(clone, "optimize", allowed_root_uris=roots)
    assert everything.actual["files_removed"] == 5
    commits = list(everything.commits)
    assert run(clone, "verify", commits=commits, allowed_root_uris=roots).status is JobStatus.SUCCEEDED
    refused = run(clone, "verify", commits=commits)
    assert refused.error is not None
    assert "root" in refused.error.message


def test_commits_and_a_whole_table_are_not_asked_for_together(plain: Path) -> None:
    refused = run(plain, "verify", commits=[0], expected_rows=40)
    assert refused.error is not None
    assert refused.error.code == "INVALID_CONFIGURATION"
    gone = run(plain, "verify", commits=[99])
    assert gone.error is not None
    assert gone.error.code == "VERSION_NOT_FOUND"


@pytest.mark.parametrize("name", ["mapped by name", "tracked"])
def test_the_whole_check_reads_what_readers_see(tmp_path: Path, name: str) -> None:
    build(tmp_path / "t", TABLES[name])
    before = DeltaTable(tmp_path / "t")
    rows = before.to_pyarrow_table().num_rows
    run(tmp_path / "t", "optimize")
    checked = run(tmp_path / "t", "verify", version_from=before.version(), expected_rows=rows)
    assert checked.status is JobStatus.SUCCEEDED, checked.error


@pytest.mark.parametrize("check", ["same_bytes", "same_rows"])
def test_a_store_that_does_not_answer_now_says_nothing_of_the_table(
    plain: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    commits = list(run(plain, "optimize").commits)
    real, opened = LocalLogStore.open_input, count()

    def unavailable(store: LocalLogStore, path: str) -> pa.NativeFile:
        if path.endswith(".parquet") and next(opened) == (0 if check == "same_bytes" else 1):
            raise StorageError("The store is busy.")
        return real(store, path)

    monkeypatch.setattr(LocalLogStore, "open_input", unavailable)
    checked = run(plain, "verify", commits=commits)
    assert checked.error is not None
    assert (checked.error.code, checked.error.retryable) == (StorageError.code, True)
    monkeypatch.undo()
    assert run(plain, "verify", commits=commits).status is JobStatus.SUCCEEDED
