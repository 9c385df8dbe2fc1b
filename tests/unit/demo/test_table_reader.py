"""The outsider's view that the demonstration is judged by."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from demo.table_reader import TableReader, duplicate_keys, provenance, same_rows
from tests.support.repository import ROOT

NOON = datetime.datetime(2013, 1, 1, 12, tzinfo=datetime.UTC)


def table(**columns: object) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (table(a=[2, 1, 1], b=["y", None, "x"]), True),
        (table(b=["x", "y", None], a=[1, 2, 1]), True),
        (table(a=[1, 1, 2], b=["x", "x", "y"]), False),
        (table(a=[1, 1, 2, 2], b=["x", None, "y", "y"]), False),
        (table(a=[1, 1, 2], c=["x", None, "y"]), False),
    ],
)
def test_rows_are_compared_as_a_bag(other: pa.Table, expected: bool) -> None:
    assert same_rows(table(a=[1, 1, 2], b=["x", None, "y"]), other) is expected


def test_time_units_do_not_matter_but_instants_do() -> None:
    seconds = pa.table({"t": pa.array([NOON], pa.timestamp("s", "UTC"))})
    later = pa.table({"t": pa.array([NOON + datetime.timedelta(microseconds=1)], pa.timestamp("us", "UTC"))})
    assert same_rows(pa.table({"t": pa.array([NOON], pa.timestamp("us", "UTC"))}), seconds)
    assert not same_rows(later, seconds)


def test_duplicates_are_counted_by_key() -> None:
    rows = table(a=[1, 1, 1, 2], b=["x", "x", "y", "x"])
    assert duplicate_keys(rows, ["a", "b"]) == 1
    assert duplicate_keys(rows, ["b"]) == 2


def test_versions_files_and_history_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, table(m=[1, 1, 2], d=[3, 4, 5]), partition_by=["m"])
    write_deltalake(path, table(m=[3], d=[9]), mode="append")
    reader = TableReader(path=path)

    assert reader.latest_version == 1
    assert [reader.rows(version).num_rows for version in (0, 1)] == [3, 4]
    assert reader.size(1).files == 3
    assert reader.size(1).bytes == sum(reader.data_files().values())
    assert reader.paths(1) == set(reader.data_files())
    assert {(f["partition"]["m"], f["min"]["d"], f["max"]["d"]) for f in reader.files(0)} == {
        (1, 3, 4),
        (2, 5, 5),
    }
    assert [entry["version"] for entry in reader.history()] == [1, 0]
    assert [action["add"]["dataChange"] for action in reader.commit(1) if "add" in action] == [True]
    assert reader.checkpointed_version() is None


@pytest.mark.parametrize("text", [None, "", "not json", "[1]"])
def test_a_commit_without_provenance_has_none(text: str | None) -> None:
    assert provenance({"userMetadata": text}) == {}


def test_the_judge_imports_nothing_of_what_it_judges() -> None:
    program = (
        "import sys, demo.summary; "
        "ours = {'delta_core', 'spark_jobs', 'delta_airflow', 'airflow', 'pyspark'}; "
        "sys.exit(str(ours & {name.split('.')[0] for name in sys.modules} or '') or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
