"""delta-spark goes on with our shallow clones: it knows the files by the text of their absolute paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import drawn

pytestmark = [pytest.mark.extra, pytest.mark.spark]

VALUES = (
    "plain",
    "a b%",
    "ü/%",
    "x=y:z",
    "#?&+",
    "'q\"",
    "{j}[k]",
    "~^`|\\",
    "\t\n",
    "日本",
    "😀",
    "a\u00a0b",
)
STATEMENTS = (
    "DELETE FROM {t} WHERE id % 10 = 7",
    "UPDATE {t} SET id = id + 1000 WHERE id % 10 = 8",
    "MERGE INTO {t} t USING (SELECT 9 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
)


def ids(table: Path, source: Path) -> list[int]:
    """Its rows, by their ids."""
    column = DeltaTable(table, allowed_roots=[source]).to_pyarrow_table(["id"])["id"]
    return sorted(column.to_pylist())


def partitioned(values: Sequence[str]) -> pa.Table:
    """Ten rows for each value."""
    return pa.table({"id": list(range(10 * len(values))), "p": [v for v in values for _ in range(10)]})


def paths(table: Path) -> set[str]:
    """What its first version calls its files."""
    lines = (table / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return {entry["add"]["path"] for entry in map(json.loads, lines) if "add" in entry}


def test_rows_of_a_shallow_clone_are_changed_by_vectors(tmp_path: Path) -> None:
    source, clone = tmp_path / "s é%20+#'(q)", tmp_path / "c"
    write_deltalake(
        source,
        partitioned(VALUES),
        partition_by=["p"],
        configuration={"delta.enableDeletionVectors": "true"},
    )
    DeltaTable(source).delete("id % 10 = 3")
    clone_table(source, clone, shallow=True)
    before = ids(clone, source)
    by_delta_spark("statements", str(clone), str(tmp_path / "told.json"), *STATEMENTS)
    expected = [i + 1000 if i % 10 == 8 else i for i in before if i % 10 != 7 and i != 9]
    assert ids(clone, source) == sorted(expected)
    assert ids(source, source) == before
    DeltaTable(clone, allowed_roots=[source]).restore(0)
    assert ids(clone, source) == before


def test_paths_are_spelled_as_delta_spark_spells_them(tmp_path: Path) -> None:
    source, ours, theirs = tmp_path / "s é%20+#'(q)", tmp_path / "ours", tmp_path / "theirs"
    written = pa.table({"id": list(range(len(VALUES))), "p": VALUES})
    write_deltalake(source, written, partition_by=["p"])
    clone_table(source, ours, shallow=True)
    statement = f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{source}`"
    by_delta_spark("statements", str(theirs), str(tmp_path / "told.json"), statement)
    assert paths(ours) == paths(theirs)


@pytest.mark.parametrize("verb", drawn(["compact", "z_order", "drop_feature"], usual=1))
def test_delta_spark_goes_on_with_a_clone_whose_files_were_written_anew(tmp_path: Path, verb: str) -> None:
    source, clone = tmp_path / "s é%20+#'(q)", tmp_path / "c"
    written = partitioned(drawn(VALUES, usual=3))
    configuration = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write_deltalake(source, written, partition_by=["p"], configuration=configuration)
    DeltaTable(source).delete("id % 10 = 3")
    clone_table(source, clone, shallow=True)
    write_deltalake(clone, written.slice(0, 1), mode="append")
    before, untouched = ids(clone, source), ids(source, source)
    table = DeltaTable(clone, allowed_roots=[source])
    if verb == "drop_feature":
        table.alter.drop_feature("deletionVectors")
    elif verb == "compact":
        table.optimize.compact()
    else:
        table.optimize.z_order(["id"])
    by_delta_spark("statements", str(clone), str(tmp_path / "told.json"), *STATEMENTS, "OPTIMIZE {t}")
    expected = [i + 1000 if i % 10 == 8 else i for i in before if i % 10 != 7 and i != 9]
    assert ids(clone, source) == sorted(expected)
    assert ids(source, source) == untouched
