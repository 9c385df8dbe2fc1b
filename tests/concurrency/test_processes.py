"""Real processes on one table: every row is there, no version is missing, nothing is applied twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from delta_core.dml.write import write_deltalake
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from tests.support.repository import ROOT, import_path

WRITER = """
import json, sys
import pyarrow as pa
from delta_core.actions import SetTransaction
from delta_core.dml.write import write_deltalake

uri, name, count, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
print("ready", flush=True)
sys.stdin.readline()
versions = []
for number in range(count):
    data = pa.table({"writer": pa.array([name], pa.int64()), "number": pa.array([number], pa.int64())})
    txn = SetTransaction(app_id=f"step-{number}", version=1) if kind == "keyed" else None
    committed = write_deltalake(uri, data, mode="append", txn=txn)
    versions.append(None if committed.already_applied else committed.version)
print(json.dumps(versions), flush=True)
"""


def run_writers(uri: Path, *, writers: int, count: int, kind: str) -> list[list[int | None]]:
    """Start the writers, let them go at once, and return the versions that each committed."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(uri), str(name), str(count), kind],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": import_path()},
                )
            )
            for name in range(writers)
        ]
        for process in processes:
            stack.callback(process.kill)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results = []
        for process in processes:
            output, _ = process.communicate(timeout=1200)
            assert process.returncode == 0
            results.append(json.loads(output))
    return results


def rows_of(uri: Path) -> list[tuple[int, int]]:
    table = Scan(Snapshot.load(open_store(uri))).to_table()
    return sorted(zip(table["writer"].to_pylist(), table["number"].to_pylist(), strict=True))


def test_concurrent_appends_keep_every_row(tmp_path: Path) -> None:
    empty = pa.table({"writer": pa.array([], pa.int64()), "number": pa.array([], pa.int64())})
    write_deltalake(tmp_path, empty)
    results = run_writers(tmp_path, writers=4, count=12, kind="plain")
    assert rows_of(tmp_path) == sorted((writer, number) for writer in range(4) for number in range(12))
    committed = sorted(version for versions in results for version in versions if version is not None)
    assert committed == list(range(1, 49)), "each append is one version, no version is skipped or shared"
    assert all(versions == sorted(versions) for versions in results if None not in versions)
    assert [entry.version for entry in history(open_store(tmp_path))] == list(range(48, -1, -1))


def test_concurrent_creators_end_in_one_table_with_every_row(tmp_path: Path) -> None:
    results = run_writers(tmp_path / "new", writers=4, count=3, kind="plain")
    assert sorted(version for versions in results for version in versions) == list(range(12))
    assert rows_of(tmp_path / "new") == sorted((writer, number) for writer in range(4) for number in range(3))


def test_twins_of_one_job_apply_each_step_once(tmp_path: Path) -> None:
    results = run_writers(tmp_path / "new", writers=3, count=6, kind="keyed")
    assert sorted(number for _, number in rows_of(tmp_path / "new")) == list(range(6))
    applied = [version for versions in results for version in versions if version is not None]
    assert sorted(applied) == list(range(6))
