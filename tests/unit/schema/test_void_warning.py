"""A column that nobody gave a type locks other readers out, so making one is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import DeltaWarning

NULLS = pa.table({"id": [1], "note": pa.nulls(1), "s": pa.array([{"a": None, "b": 1}])})
PLAIN = pa.table({"id": [1]})


def converted(path: Path) -> None:
    path.mkdir()
    pq.write_table(pa.table({"id": [1], "note": pa.nulls(1)}), path / "a.parquet")
    convert_to_deltalake(path)


MAKING: dict[str, Callable[[Path], Any]] = {
    "a new table": lambda path: write_deltalake(path, pd.DataFrame({"id": [1], "note": [None]})),
    "a merge": lambda path: (
        write_deltalake(path, PLAIN),
        write_deltalake(path, NULLS, mode="append", schema_mode="merge"),
    ),
    "another schema": lambda path: (
        write_deltalake(path, PLAIN),
        write_deltalake(path, NULLS, mode="overwrite", schema_mode="overwrite"),
    ),
    "an empty table": lambda path: DeltaTable.create(path, NULLS.schema),
    "a new column": lambda path: (
        write_deltalake(path, PLAIN),
        DeltaTable(path).alter.add_columns(pa.field("note", pa.null())),
    ),
    "a conversion": converted,
}


@pytest.mark.parametrize("way", MAKING)
def test_a_column_without_a_type_is_told(way: str, tmp_path: Path) -> None:
    with pytest.warns(DeltaWarning, match=r"The columns? note.* ha(s|ve) the type void.*DuckDB") as told:
        MAKING[way](tmp_path / "t")
    assert "Give the data a type" in str(told[0].message)


def test_it_is_told_once_for_each_column(tmp_path: Path) -> None:
    with pytest.warns(DeltaWarning, match=r"The columns note, s\.a have"):
        write_deltalake(tmp_path, NULLS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_deltalake(tmp_path, NULLS, mode="append")
        typed = NULLS.set_column(1, "note", pa.array(["x"]))
        write_deltalake(tmp_path, typed, mode="append", schema_mode="merge")
        DeltaTable(tmp_path).alter.add_columns(pa.field("more", pa.int64()))
