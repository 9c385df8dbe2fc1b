"""Clustered tables go back and forth: neither delta-spark nor we cluster again what the other did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_clustered import STATEMENTS
from tests.support.soak import drawn

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("t", pa.string()),
    ]
)


def rows(first: int, count: int = 30) -> pa.Table:
    return pa.table(
        {
            "id": range(first, first + count),
            "s": [{"x": 99 - n, "y": str(n)} for n in range(first, first + count)],
            "t": [str(n % 7) for n in range(first, first + count)],
        },
        schema=SCHEMA,
    )


def by_spark(what: str, folder: Path, names: list[str]) -> dict[str, Any]:
    by_delta_spark("clustered", what, str(folder), *names)
    found: dict[str, Any] = json.loads((folder / f"{what}.json").read_text())
    return found


def rows_of(table: DeltaTable) -> list[list[Any]]:
    found = table.to_pyarrow_table().to_pylist()
    return sorted([row["id"], row["s"]["x"], row["s"]["y"], row["t"]] for row in found)


def providers(table: DeltaTable) -> set[str | None]:
    return set(table.snapshot.files.to_table(["clustering_provider"])["clustering_provider"].to_pylist())


@pytest.mark.extra
@pytest.mark.spark
def test_clustered_tables_go_back_and_forth(tmp_path: Path) -> None:
    names = drawn(STATEMENTS, usual=1)
    made = by_spark("make", tmp_path, names)
    ours = DeltaTable.create(
        tmp_path / "ours",
        SCHEMA,
        cluster_by=["id", ["s", "x"]],
        configuration={"delta.enableDeletionVectors": "true"},
    )
    for first in (0, 30):
        write_deltalake(ours, rows(first), mode="append")
    expected = {}
    for name in [*names, "ours"]:
        table = DeltaTable(tmp_path / name)
        assert table.detail()["clustering_columns"] == ["id", "s.x"]
        if name in made:
            assert rows_of(table) == made[name]["rows"]
        write_deltalake(table, rows(100), mode="append")
        metrics = table.optimize.cluster()
        assert metrics["numFilesAdded"] == 1
        assert providers(table) == {"liquid"}
        table.delete("id = 7")
        expected[name] = rows_of(table)
    said = by_spark("go_on", tmp_path, [*names, "ours"])
    for name, answer in said.items():
        assert answer["clusteringColumns"] == ["id", "s.x"], name
        assert answer["rows"] == expected[name], name
        # Where a file was copied for the deleted row, it is unclustered; a vector leaves it in its cube.
        first, joined, last = answer["removed"]
        table = DeltaTable(tmp_path / name)
        kept = table.metadata().configuration.get("delta.enableDeletionVectors") == "true"
        assert (first, joined, last) == (0 if kept else 1, 2, 0), name
        assert rows_of(table) == answer["after"]["rows"], name
        assert table.detail()["clustering_columns"] == answer["after"]["clusteringColumns"] == ["t"]
        assert table.optimize.plan_cluster().is_empty, "clustered by other columns"
        table.alter.cluster_by(["id", ["s", "x"]])
        assert table.optimize.plan_cluster().is_empty, "delta-spark's cube is as good as ours"
        write_deltalake(table, rows(200), mode="append")
        assert table.optimize.cluster()["numFilesRemoved"] == 2
        assert len(rows_of(table)) == len(answer["after"]["rows"]) + 30
