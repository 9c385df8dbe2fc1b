"""The live files as a table: what is known of each column, whatever its type."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.schema.arrow import variant_field
from delta_core.variants.python_values import variant_array

PAIRS = pa.map_(pa.string(), pa.int64())
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "flag": [True, None, None],
        "raw": [b"x", None, b"y"],
        "list": [[1], None, []],
        "map": pa.array([[("k", 1)], None, None], PAIRS),
        "inner": [{"flag": None, "n": 4}, None, {"flag": False, "n": 5}],
    }
)
NULLS = {"id": 0, "flag": 2, "raw": 1, "list": 1, "map": 2, "inner.flag": 2, "inner.n": 1}


def test_nulls_are_counted_of_columns_without_bounds(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    (row,) = DeltaTable(tmp_path).get_add_actions(flatten=True).to_pylist()
    assert {name.removeprefix("null_count."): row[name] for name in row if "null_count." in name} == NULLS
    assert {name for name in row if name.startswith(("min.", "max."))} == {
        "min.id",
        "max.id",
        "min.inner.n",
        "max.inner.n",
    }
    nested = DeltaTable(tmp_path).get_add_actions().to_pylist()[0]
    assert nested["null_count"] == NULLS
    peer = pa.table(deltalake.DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()[0]
    assert {name: peer[f"null_count.{name}"] for name in NULLS} == NULLS


def test_nulls_of_variants_are_counted(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), variant_field("v")])
    write_deltalake(tmp_path, pa.table([pa.array([1, 2]), variant_array([{"a": 1}, None])], schema=schema))
    (row,) = DeltaTable(tmp_path).get_add_actions(flatten=True).to_pylist()
    assert (row["null_count.v"], "min.v" in row) == (1, False)
