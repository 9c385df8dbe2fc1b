"""A `work_dir` that is a URI. The store is a local directory here; tests/contract has real ones."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake as peer_write

import delta_airflow.runners.stored_run as stored
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.run_state import RunPhase
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.runners.process import Command, ProcessRunner
from delta_airflow.runners.stored_run import StoredRun
from delta_core.errors import ConfigurationError, JobFailedError, StorageError
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.storage.local import LocalLogStore
from tests.support.airflow import connection_json
from tests.support.operator_cells import context

RUNS = "s3://bucket/runs"
OPTIONS = {"aws_access_key_id": "k3y-of-nobody", "aws_secret_access_key": "hunter2-of-nobody"}


class Bucket:
    """Directories of this machine in the place of a bucket."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.options: list[dict[str, str]] = []

    def open(self, uri: str, *, storage_options: Any) -> LocalLogStore:
        self.options.append(dict(storage_options))
        bucket = self

        class Store(LocalLogStore):
            @property
            def uri(self) -> str:
                return uri

        return Store(bucket.path(uri))

    def path(self, uri: str) -> Path:
        return self.root / uri.removeprefix("s3://")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    found = Bucket(tmp_path / "store")
    monkeypatch.setattr(stored, "open_store", found.open)
    value = connection_json(work_dir=f"{RUNS}/", storage_options=OPTIONS)
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", value)
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for number in range(2):
        peer_write(str(path), pa.table({"id": [number]}), mode="append")
    return path


def test_an_inline_run_leaves_its_files_in_the_store_and_nothing_here(
    bucket: Bucket, table: Path, temporary: Path
) -> None:
    value = DeltaOptimizeOperator(task_id="t", table_uri=str(table)).execute(context())
    uri = value["result_uri"]
    # HDFS has no colons in names.
    assert uri.startswith(f"{RUNS}/d/manual__2026-01-01T00%253A00%253A00+00%253A00/t/-1/try-1-")
    assert sorted(path.name for path in bucket.path(uri).parent.iterdir()) == [
        "result.json",
        "spec.json",
        "state.json",
    ]
    assert json.loads((bucket.path(uri).parent / "spec.json").read_text())["result_uri"] == uri
    assert list(temporary.iterdir()) == []
    hook = DeltawardHook()
    assert hook.read_result(uri).commits == (2,)
    assert hook.read_state(uri).phase is RunPhase.SUCCEEDED
    assert all(options == OPTIONS for options in bucket.options)
    text = "".join(path.read_text() for path in bucket.root.rglob("*.json")) + json.dumps(value)
    assert "of-nobody" not in text


def test_a_run_that_fails_is_told_of_in_the_store_too(
    bucket: Bucket, tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        DeltaJobOperator(task_id="t", table_uri=str(tmp_path / "none"), kind="describe").execute(context())
    (state,) = bucket.root.rglob("state.json")
    assert json.loads(state.read_text())["phase"] == "failed"
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["s3://bucket/runs2/d/result.json", "s3://bucket/runs/../x/result.json", "file:///x", "/x", RUNS]
)
def test_a_result_elsewhere_is_refused(bucket: Bucket, uri: str) -> None:
    with pytest.raises(ConfigurationError):
        DeltawardHook().read_result(uri)
    assert bucket.options == []


def test_a_result_that_is_missing_damaged_or_too_large_is_said(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, uri = DeltawardHook(), f"{RUNS}/d/result.json"
    with pytest.raises(JobFailedError, match=r"no result\.json"):
        hook.read_result(uri)
    bucket.path(uri).parent.mkdir(parents=True)
    bucket.path(uri).write_text("{")
    bucket.path(uri).with_name("state.json").write_text("[]")
    for read in (hook.read_result, hook.read_state):
        with pytest.raises(JobFailedError, match="cannot be read"):
            read(uri)
    monkeypatch.setattr(stored, "MAX_RESULT_BYTES", 0)
    with pytest.raises(JobFailedError, match="too large"):
        hook.read_result(uri)


DRIVER = """
import json, pathlib, sys
spec, result = map(pathlib.Path, sys.argv[1:3])
job = json.loads(spec.read_text())["job_id"]
result.write_text(json.dumps({"format_version": 1, "job_id": job, "kind": "load", "status": "succeeded"}))
"""


class Script:
    """Starts a driver that only writes a result."""

    name = "script"

    def build(self, *, spec_path: Path, result_path: Path, spec: JobSpec) -> Command:
        return Command(arguments=(sys.executable, "-c", DRIVER, str(spec_path), str(result_path)))


def begin(bucket: Bucket) -> StoredRun:
    return StoredRun.begin(
        RUNS, dag_id="..", run_id="r/1", task_id="t", map_index=0, try_number=2, job_id="j1",
        storage_options={},
    )  # fmt: skip


def test_a_driver_in_another_process_needs_nothing_of_the_store(bucket: Bucket, temporary: Path) -> None:
    directory = begin(bucket)
    assert directory.place == f"{RUNS}/%252E%252E/r%252F1/t/0/try-2-j1"
    assert directory.path.stat().st_mode & 0o077 == 0
    runner = ProcessRunner(Script(), directory=directory, log=logging.getLogger("test"))
    spec = JobSpec(kind="load", table=TableRef(uri="file:///t"), job_id="j1")
    assert runner.run(spec, on_event=lambda event: None).job_id == "j1"
    assert directory.read_state().phase is RunPhase.SUCCEEDED
    directory.discard()
    assert list(temporary.iterdir()) == []
    copies = bucket.path(directory.place)
    assert json.loads((copies / "state.json").read_text())["runner"] == "script"
    assert json.loads((copies / "result.json").read_text())["job_id"] == "j1"
    assert json.loads((copies / "spec.json").read_text())["kind"] == "load"


def test_a_state_that_the_store_does_not_take_ends_no_run_and_a_result_does(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = begin(bucket)
    put = LocalLogStore.put

    def refuse(store: LocalLogStore, path: str, data: bytes) -> None:
        if path == refused:
            raise StorageError("slow down")
        put(store, path, data)

    monkeypatch.setattr(LocalLogStore, "put", refuse)
    spec = JobSpec(kind="load", table=TableRef(uri="file:///t"), job_id="j1")
    runner = ProcessRunner(Script(), directory=directory, log=logging.getLogger("test"))
    refused = "state.json"
    assert runner.run(spec, on_event=lambda event: None).job_id == "j1"
    assert "slow down" in caplog.text
    refused = "result.json"
    again = ProcessRunner(Script(), directory=directory, log=logging.getLogger("test"))
    with pytest.raises(StorageError) as caught:
        again.run(spec, on_event=lambda event: None)
    assert caught.value.retryable
    assert directory.read_state().phase is RunPhase.FAILED


def test_a_store_that_cannot_be_opened_makes_no_directory(
    monkeypatch: pytest.MonkeyPatch, temporary: Path, table: Path
) -> None:
    value = connection_json(work_dir="gs://bucket/runs", storage_options={"aws_region": "x"})
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", value)
    with pytest.raises(Exception, match="aws_region"):
        DeltaOptimizeOperator(task_id="t", table_uri=str(table)).execute(context())
    assert list(temporary.iterdir()) == []
