"""Conversions between NumPy and Arrow equal pyarrow's own, and import no pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.numpy_columns import from_numpy, to_numpy
from delta_core.storage.name_columns import NAME, name_column, names_in

VALUES: list[Any] = [
    np.array([], dtype=np.int64),
    np.array([1, -2, 3], dtype=np.int32),
    np.array([0.5, -0.0, float("inf")]),
    np.array([True, False, True] * 5),
    np.array([], dtype=np.bool_),
    np.arange(10, dtype=np.int64)[::3],
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}:{len(values)}")
def test_arrays_are_those_of_pyarrow(values: Any) -> None:
    assert from_numpy(values).equals(pa.array(values))
    from_numpy(values).validate(full=True)


@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}:{len(values)}")
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_columns_are_those_of_pyarrow(values: Any, chunks: int) -> None:
    column = pa.chunked_array([pa.array(values)] * chunks, pa.array(values).type)
    found = to_numpy(column)
    assert found.dtype == column.to_numpy().dtype
    assert found.tolist() == column.to_numpy().tolist()
    part = pa.array(values).slice(1, 2)
    assert to_numpy(part).tolist() == part.to_pylist()


def test_a_null_is_refused() -> None:
    with pytest.raises(AssertionError, match="has nulls"):
        to_numpy(pa.array([1, None]))


@pytest.mark.parametrize("names", [[], ["a"], ["", "ä", "a" * 300], ["x\udcff", "y"]])
def test_names_are_kept(names: list[str]) -> None:
    column = name_column(names)
    column.validate(full=True)
    assert column.type == NAME
    assert names_in(column) == names


PROGRAM = """
import sys, tempfile
from pathlib import Path
from delta_core import DeltaTable
from delta_core.schema.types import LONG, StructField, StructType
uri = tempfile.mkdtemp() + "/t"
DeltaTable.create(uri, StructType((StructField(name="id", data_type=LONG),)))
Path(uri, "orphan.parquet").write_bytes(b"x")
print(DeltaTable(uri).vacuum(0, dry_run=True, enforce_retention=False, force=True))
print("pandas" in sys.modules)
"""


def test_a_vacuum_imports_no_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['orphan.parquet']", "False"]
