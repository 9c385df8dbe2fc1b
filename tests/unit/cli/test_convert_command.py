from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from delta_core.cli.app import app


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    for day in ("2024-05-01", "2024-05-02"):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / f"day={day}" / "a.parquet")
    return tmp_path


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["convert", *arguments])


def test_it_shows_what_it_would_do_and_does_it_when_told(landed: Path) -> None:
    dry = call(str(landed), "--partition-by", "day:date")
    assert dry.exit_code == 0
    assert dry.stdout.startswith("would convert 2 files (")
    assert "4 rows)" in dry.stdout
    assert "  id long\n  day date, a partition column\n" in dry.stdout
    assert "pass --apply" in dry.stdout
    assert not (landed / "_delta_log").exists()
    done = call(str(landed), "--partition-by", "day:date", "--name", "n", "--apply")
    assert done.stdout.startswith("converted 2 files")
    table = deltalake.DeltaTable(str(landed))
    assert (table.metadata().name, table.to_pyarrow_table().num_rows) == ("n", 4)


def test_its_answer_as_json(landed: Path) -> None:
    found = json.loads(call(str(landed), "--partition-by", "day:string", "--json", "--apply").stdout)
    assert (found["files"], found["rows"], found["version"]) == (2, 4, 0)


@pytest.mark.parametrize("column", ["day", "day:soon", ":date"])
def test_what_is_no_partition_column_is_bad_input(landed: Path, column: str) -> None:
    assert call(str(landed), "--partition-by", column).exit_code == 2


def test_a_table_is_not_converted_again(landed: Path) -> None:
    call(str(landed), "--partition-by", "day:date", "--apply")
    assert call(str(landed), "--partition-by", "day:date", "--apply").exit_code == 1
