"""A data file whose footer is damaged is refused by name; no row is lost, and the process goes on."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError

ROWS = 50


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = {"x": pa.array(range(ROWS), pa.int64()), "t": [f"row {n}" for n in range(ROWS)]}
    write_deltalake(tmp_path / "t", pa.table(rows), mode="append")
    return tmp_path / "t"


def _footer(data: bytes) -> range:
    end = len(data) - 8
    return range(end - int.from_bytes(data[-8:-4], "little"), end)


def _rows_read(table: Path, data_file: Path) -> int | None:
    """How many rows are read; None when the file is refused by name."""
    try:
        return DeltaTable(table).to_pyarrow_table().num_rows
    except DeltaError as error:
        if data_file.name not in str(error):
            raise
        return None


def test_a_number_of_rows_that_is_another_is_noticed(table: Path) -> None:
    (path,) = table.glob("**/*.parquet")
    whole = path.read_bytes()
    places = [at for at in _footer(whole) if whole[at] == 2 * ROWS]  # as Thrift writes it
    assert len(places) >= 2
    outcomes = []
    for at in places:
        path.write_bytes(whole[:at] + bytes([28]) + whole[at + 1 :])
        outcomes.append(_rows_read(table, path))
    assert None in outcomes
    assert set(outcomes) <= {None, ROWS}


def test_damage_to_a_footer_is_refused_or_harmless(table: Path) -> None:
    (path,) = table.glob("**/*.parquet")
    whole = path.read_bytes()
    rng = random.Random(7)
    outcomes = []
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[rng.choice(_footer(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        outcomes.append(_rows_read(table, path))
    assert outcomes.count(None) > 40
    assert set(outcomes) <= {None, ROWS}
