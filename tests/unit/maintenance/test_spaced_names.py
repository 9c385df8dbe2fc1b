"""Names with spaces in tables that were made elsewhere: converted files, tables of deltalake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import SchemaError

BY_NAME = {"delta.columnMapping.mode": "name"}
TRIPS = pa.table(
    {
        "Trip ID": pa.array([1, 2, 3], pa.int64()),
        "a=b;c": ["x", "y", None],
        "At (local)": pa.array([{"in here": 1}, None, {"in here": 3}], pa.struct([("in here", pa.int64())])),
    }
)


def rows(path: Path, **options: str) -> list[dict[str, object]]:
    found = DeltaTable(path).to_pyarrow_table(**options).to_pylist()  # type: ignore[arg-type]
    return sorted(found, key=lambda row: row["Trip ID"])


def test_files_with_such_names_are_converted_with_a_mapping(tmp_path: Path) -> None:
    for day in ("x", "y"):
        (tmp_path / f"the day={day}").mkdir()
        pq.write_table(TRIPS, tmp_path / f"the day={day}" / "a.parquet")
    partitions = pa.schema([("the day", pa.string())])
    with pytest.raises(SchemaError, match=r"pass configuration=\{'delta.columnMapping.mode': 'name'\}"):
        convert_to_deltalake(tmp_path, partition_by=partitions)
    convert_to_deltalake(tmp_path, partition_by=partitions, configuration={**BY_NAME, "mine": "1"})
    table = DeltaTable(tmp_path)
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "5"
    wanted = {**TRIPS.to_pylist()[0], "the day": "y"}
    assert rows(tmp_path, filters="`Trip ID` = 1 AND `the day` = 'y'") == [wanted]
    found = table.get_add_actions(flatten=True)
    assert found["max.Trip ID"].to_pylist() == [3, 3]


def test_a_converted_table_is_changed_as_any_other(tmp_path: Path) -> None:
    pq.write_table(TRIPS, tmp_path / "a.parquet")
    convert_to_deltalake(tmp_path, configuration={"delta.columnMapping.mode": "NAME"})
    write_deltalake(tmp_path, pa.table({"Trip ID": [4], "new one": [1]}), mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    table.alter.rename_column("a=b;c", "d e")
    table.update({"d e": "'z'"}, "`Trip ID` = 2")
    table.optimize.compact()
    assert [(row["Trip ID"], row["d e"], row["new one"]) for row in rows(tmp_path)] == [
        (1, "x", None),
        (2, "z", None),
        (3, None, None),
        (4, None, 1),
    ]
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        query = 'SELECT "Trip ID", "d e" FROM delta_scan(?) ORDER BY 1'
        theirs = connection.execute(query, [str(tmp_path)]).fetchall()
    assert theirs == [(1, "x"), (2, "z"), (3, None), (4, None)]


def test_a_table_of_deltalakes_with_such_names_goes_on_without_a_mapping(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), TRIPS)
    new = pa.table({"Trip ID": [4], "b": [1]})
    write_deltalake(tmp_path, new, mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    table.alter.add_columns(pa.field("c", pa.int64()))
    table.alter.add_columns(pa.field("plain", pa.int64()), parent=["At (local)"])
    assert rows(tmp_path, filters="b = 1")[0]["Trip ID"] == 4
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 4
    refused: tuple[Callable[[], object], ...] = (
        lambda: table.alter.add_columns(pa.field("one more", pa.int64())),
        # The name is known elsewhere, and there it would be a new one.
        lambda: table.alter.add_columns(pa.field("Trip ID", pa.int64()), parent=["At (local)"]),
        lambda: write_deltalake(
            table, pa.table({"one more": [1]}), mode="overwrite", schema_mode="overwrite"
        ),
    )
    for named in refused:
        with pytest.raises(SchemaError, match=r"alter\.set_properties"):
            named()
    write_deltalake(table, TRIPS.select(["Trip ID"]), mode="overwrite", schema_mode="overwrite")
    assert table.schema().names == ("Trip ID",)
    table.alter.set_properties(BY_NAME)
    table.alter.add_columns(pa.field("one more", pa.int64()))
    assert rows(tmp_path)[0] == {"Trip ID": 1, "one more": None}
