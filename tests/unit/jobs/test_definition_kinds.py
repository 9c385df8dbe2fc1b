"""Jobs that clone a table, convert a directory to one, and set table properties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_core import DeltaTable
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.lease import fence_app_id
from delta_core.jobs.run_job import run_job
from delta_core.transaction.observer import CommitPhase


def spec(path: Path, kind: str, **params: Any) -> JobSpec:
    return JobSpec(kind=kind, table=TableRef(uri=str(path)), params=params)


def run(path: Path, kind: str, **params: Any) -> JobResult:
    return run_job(spec(path, kind, **params), JobContext())


def ids(path: Path) -> list[int]:
    return sorted(PeerTable(path).to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    for number in (1, 2):
        peer_write(path, pa.table({"id": [number]}), mode="append")
    return path


class Phases:
    """Remembers the phases of commits."""

    def __init__(self) -> None:
        self.seen: list[CommitPhase] = []

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        self.seen.append(phase)


# ------------------------------------------------------------ clone


def test_a_clone_is_made_followed_up_and_left_alone_when_nothing_is_new(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    uri = str(source)
    planned = run(target, "clone", source_uri=uri, dry_run=True)
    assert (planned.predicted["files_copied"], planned.commits, target.exists()) == (2, (), False)
    first = run(target, "clone", source_uri=uri, version=0)
    assert (first.version_from, first.commits, ids(target)) == (None, (0,), [1])
    second = run(target, "clone", source_uri=uri)
    assert (second.commits, ids(target)) == ((1,), [1, 2])
    assert second.actual["files_copied"] == second.metrics.files_added == 1
    third = run(target, "clone", source_uri=uri)
    assert (third.commits, third.version_to, third.output["is_empty"]) == ((), 1, True)


def test_a_shallow_clone_names_the_sources_files(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "clone"
    result = run(target, "clone", source_uri=str(source), shallow=True)
    assert (result.commits, result.actual["files_copied"]) == ((0,), 0)
    assert DeltaTable(target, allowed_roots=[source]).to_pyarrow_table().num_rows == 2
    again = run(tmp_path / "deep", "clone", source_uri=str(target), allowed_root_uris=[str(source)])
    assert (again.error, ids(tmp_path / "deep")) == (None, [1, 2])


def test_a_table_that_is_no_clone_is_not_replaced(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    peer_write(other, pa.table({"id": [9]}))
    result = run(other, "clone", source_uri=str(source))
    assert result.error is not None
    assert (result.error.retryable, ids(other)) == (False, [9])


# ------------------------------------------------------------ convert


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for day in ("2026-01-01", "2026-01-02"):
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [int(day[-1])]}), folder / f"day={day}" / "a.parquet")
    return folder


DAYS = [{"name": "day", "type": "date"}]


def test_a_directory_becomes_a_table_once(files: Path) -> None:
    planned = run(files, "convert", partition_by=DAYS, dry_run=True)
    assert (planned.predicted["rows"], planned.commits) == (2, ())
    assert not (files / "_delta_log").exists()
    key = IdempotencyKey(app_id="k")
    job = replace(
        spec(files, "convert", partition_by=DAYS, configuration={"delta.appendOnly": "true"}), idempotency=key
    )
    first = run_job(job, JobContext())
    assert (first.error, first.commits, first.metrics.rows) == (None, (0,), 2)
    assert ids(files) == [1, 2]
    assert PeerTable(files).metadata().partition_columns == ["day"]
    assert PeerTable(files).metadata().configuration["delta.appendOnly"] == "true"
    assert run_job(job, JobContext()).already_applied


def test_a_directory_that_is_a_table_is_refused_or_left(files: Path) -> None:
    run(files, "convert", partition_by=DAYS)
    refused = run(files, "convert", partition_by=DAYS)
    assert refused.error is not None
    assert refused.error.code == "TABLE_EXISTS"
    left = run(files, "convert", partition_by=DAYS, if_exists="ignore")
    assert (left.status, left.commits) == (JobStatus.SUCCEEDED, ())
    assert left.output["reason"] == "There is already a table."


# ------------------------------------------------------------ properties


def test_properties_are_set_and_unset_and_not_committed_again(source: Path) -> None:
    wanted = {"delta.appendOnly": "true", "delta.checkpointInterval": "20"}
    first = run(source, "properties", set=wanted)
    assert (first.error, first.commits, first.actual) == (None, (2,), {"set": 2, "unset": 0})
    assert PeerTable(source).metadata().configuration == wanted
    assert run(source, "properties", set=wanted).commits == ()
    planned = run(source, "properties", unset=["delta.appendOnly", "delta.x"], dry_run=True)
    assert (planned.output["unset"], planned.commits) == (["delta.appendOnly"], ())
    both = run(source, "properties", set={"delta.checkpointInterval": "30"}, unset=["delta.appendOnly"])
    assert (both.error, both.commits) == (None, (3, 4))
    assert PeerTable(source).metadata().configuration == {"delta.checkpointInterval": "30"}


def test_the_key_goes_with_the_last_of_two_commits(source: Path) -> None:
    run(source, "properties", set={"delta.appendOnly": "true"})
    params = {"set": {"delta.checkpointInterval": "30"}, "unset": ["delta.appendOnly"]}
    job = replace(spec(source, "properties", **params), idempotency=IdempotencyKey(app_id="k", version=2))
    done = run_job(job, JobContext())
    assert done.commits == (3, 4)
    assert PeerTable(source, version=3).transaction_version("k") is None
    assert PeerTable(source).transaction_version("k") == 2
    again = run_job(job, JobContext())
    assert again.applied_by is not None
    assert again.applied_by.version == 4


def test_what_raises_the_protocol_is_not_committed_twice(source: Path) -> None:
    wanted = {"delta.feature.deletionVectors": "supported"}
    assert len(run(source, "properties", set=wanted).commits) == 1
    assert run(source, "properties", set=wanted).commits == ()
    assert run(source, "properties", set={"delta.minReaderVersion": "1"}).commits == ()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"set": {"delta.appendOnly": "true"}, "unset": ["delta.appendOnly"]}, "both in set and in unset"),
        ({"set": {"delta.appendOnly": "perhaps"}}, "appendOnly"),
        ({"set": {"delta.constraints.c": "id > 0"}}, "CHECK"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_committed(
    source: Path, params: dict[str, Any], words: str
) -> None:
    result = run(source, "properties", **params)
    assert result.error is not None
    assert words in result.error.message
    assert PeerTable(source).version() == 1


# ------------------------------------------------------------ all of them


@pytest.mark.parametrize("kind", ["clone", "convert", "properties"])
def test_commits_are_seen_by_the_observer_so_that_a_lease_holds(
    source: Path, files: Path, tmp_path: Path, kind: str
) -> None:
    where, params = {
        "clone": (tmp_path / "clone", {"source_uri": str(source)}),
        "convert": (files, {"partition_by": DAYS}),
        "properties": (source, {"set": {"delta.appendOnly": "true"}}),
    }[kind]
    phases = Phases()
    job = replace(spec(where, kind, **params), lease="upkeep")  # type: ignore[arg-type]
    result = run_job(job, JobContext(observer=phases))
    assert result.error is None
    assert CommitPhase.BEFORE_PUT in phases.seen
    assert PeerTable(where).transaction_version(fence_app_id("upkeep")) is None, "nothing was taken over"
