"""MERGE with deletion vectors: only changed rows are written, and concurrent deletions are united."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, IdentityGenerator, define_column, write_deltalake
from delta_core.errors import ConcurrentModificationError, ConstraintViolationError
from delta_core.merge.clauses import MergeAction
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.dml import changed_rows as changed_rows_module
from spark_jobs.dml import positions as positions_module
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from tests.support.row_statement_runs import TRACKED, VECTORS, by_peer
from tests.support.spark import files_below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UPDATE_ALL = MergeClause(action=MergeAction.UPDATE_ALL)
INSERT_ALL = MergeClause(action=MergeAction.INSERT_ALL)
UPSERT = MergeClauses(matched=(UPDATE_ALL,), not_matched=(INSERT_ALL,))


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> Path:
    """Keys 0 to 9 in two files, with deletion vectors and row ids."""
    for start in (0, 5):
        rows = {"id": pa.array(range(start, start + 5), pa.int64()), "name": ["old"] * 5}
        write_deltalake(tmp_path / "t", pa.table(rows), mode="append", configuration={**VECTORS, **TRACKED})
    return tmp_path / "t"


def updates(spark: SparkSession, *rows: tuple[int, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id bigint, name string").alias("s")


def names_of(uri: Path) -> dict[int, str]:
    return {row["id"]: row["name"] for row in by_peer(uri).to_pylist()}


def row_ids_of(uri: Path) -> dict[int, int]:
    rows = DeltaTable(uri).to_pyarrow_table(["id"], row_ids=True).to_pylist()
    return {row["id"]: row["_row_id"] for row in rows}


def test_files_stay_and_only_changed_rows_are_written(spark: SparkSession, table: Path) -> None:
    before = files_below(table)
    ids = row_ids_of(table)
    clauses = MergeClauses(
        matched=(
            MergeClause(action=MergeAction.DELETE, condition="s.name = 'gone'"),
            MergeClause(action=MergeAction.UPDATE, values={"name": "concat(t.name, s.name)"}),
        ),
        not_matched=(INSERT_ALL,),
        not_matched_by_source=(
            MergeClause(action=MergeAction.UPDATE, condition="id = 9", values={"name": "'alone'"}),
            MergeClause(action=MergeAction.DELETE, condition="t.id = 8"),
        ),
    )
    source = updates(spark, (1, "gone"), (2, "new"), (20, "added"))
    metrics = spark_jobs.merge(spark, str(table), source, "t.id = s.id", clauses).output["metrics"]
    assert before < files_below(table)
    assert (metrics["numTargetRowsCopied"], metrics["numTargetFilesRemoved"]) == (0, 0)
    assert (metrics["numTargetDeletionVectorsAdded"], metrics["numOutputRows"]) == (2, 3)
    counts = [metrics[f"numTargetRows{name}"] for name in ("Inserted", "Updated", "Deleted")]
    assert counts == [1, 2, 2]
    old = dict.fromkeys((0, 3, 4, 5, 6, 7), "old")
    assert names_of(table) == old | {2: "oldnew", 9: "alone", 20: "added"}
    now = row_ids_of(table)
    assert {key: now[key] for key in ids if key in now} == {key: ids[key] for key in ids if key in now}
    assert now[20] not in ids.values()
    whole = MergeClauses(matched=(MergeClause(action=MergeAction.DELETE),))
    everything = spark.range(30).toDF("id").alias("s")
    metrics = spark_jobs.merge(spark, str(table), everything, "t.id = s.id", whole).output["metrics"]
    assert (metrics["numTargetFilesAdded"], metrics["numTargetRowsDeleted"]) == (0, 9)
    assert metrics["numTargetDeletionVectorsRemoved"] == 2
    assert names_of(table) == {}


@pytest.mark.parametrize("most", [1, positions_module.POSITIONS_IN_DRIVER])
def test_an_upsert_reads_no_old_value(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    columns = (
        define_column("id", pa.int64()),
        define_column("name", pa.string()),
        define_column("twice", pa.int64(), generated_always_as="id * 2"),
    )
    DeltaTable.create(tmp_path / "t", StructType(columns), configuration=VECTORS)
    old = pa.table({"id": pa.array(range(10), pa.int64()), "name": ["old"] * 10})
    write_deltalake(tmp_path / "t", old, mode="append")

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("old values are read")

    monkeypatch.setattr(changed_rows_module, "_from_target", refused)
    monkeypatch.setattr(positions_module, "POSITIONS_IN_DRIVER", most)
    source = updates(spark, (1, "new"), (2, "new"), (20, "new"))
    metrics = spark_jobs.merge(spark, str(tmp_path / "t"), source, "t.id = s.id", UPSERT).output["metrics"]
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == (2, 1)
    rows = {row["id"]: (row["name"], row["twice"]) for row in by_peer(tmp_path / "t").to_pylist()}
    kept = {key: ("old", 2 * key) for key in range(10) if key not in (1, 2)}
    assert rows == kept | {key: ("new", 2 * key) for key in (1, 2, 20)}


@pytest.mark.slow
def test_identity_defaults_constraints_and_new_columns(spark: SparkSession, tmp_path: Path) -> None:
    columns = (
        define_column("id", pa.int64()),
        define_column("kind", pa.string(), default="'taxi'"),
        define_column("number", pa.int64(), generated_always_as=IdentityGenerator()),
    )
    uri = tmp_path / "t"
    DeltaTable.create(uri, StructType(columns), configuration=VECTORS)
    write_deltalake(uri, pa.table({"id": pa.array(range(4), pa.int64())}), mode="append")
    DeltaTable(uri).alter.add_constraint({"small": "id < 100"})
    numbers = {row["id"]: row["number"] for row in by_peer(uri).to_pylist()}
    source = spark.createDataFrame([(1, "x"), (50, "y")], "id bigint, note string").alias("s")
    spark_jobs.merge(spark, str(uri), source, "t.id = s.id", UPSERT, merge_schema=True)
    rows = {row["id"]: row for row in by_peer(uri).to_pylist()}
    assert {key: rows[key]["number"] for key in numbers} == numbers
    assert rows[50]["number"] not in numbers.values()
    assert (rows[50]["kind"], rows[50]["note"], rows[1]["note"], rows[2]["note"]) == ("taxi", "y", "x", None)
    before = files_below(uri)
    bad = spark.createDataFrame([(1, "x"), (100, "y")], "id bigint, note string").alias("s")
    with pytest.raises(ConstraintViolationError, match="small"):
        spark_jobs.merge(spark, str(uri), bad, "t.id = s.id", UPSERT)
    assert files_below(uri) == before


def between(table: Path, frame: DataFrame, clauses: MergeClauses, winner: Callable[[], object]) -> Any:
    """A merge that another writer comes before."""
    request = MergeRequest(on="t.id = s.id", clauses=clauses)
    snapshot = Snapshot.load(open_store(str(table)))
    return merge_into(frame, snapshot, request, before_commit=lambda: winner() and None)


def test_a_merge_and_deletions_of_other_rows_all_commit(spark: SparkSession, table: Path) -> None:
    between(table, updates(spark, (1, "new"), (20, "x")), UPSERT, lambda: DeltaTable(table).delete("id = 2"))
    old = dict.fromkeys((0, 3, 4, 5, 6, 7, 8, 9), "old")
    assert names_of(table) == old | {1: "new", 20: "x"}


@pytest.mark.parametrize(
    ("clauses", "winner"),
    [
        # The row that it updates is gone.
        pytest.param(UPSERT, "id = 1", id="the same row"),
        # The source row would have to be inserted, because its match is gone.
        pytest.param(
            MergeClauses(
                matched=(MergeClause(action=MergeAction.UPDATE_ALL, condition="t.id = 3"),),
                not_matched=(INSERT_ALL,),
            ),
            "id = 1",
            id="a match that stays as it is",
        ),
    ],
)
def test_a_merge_that_loses_leaves_no_file(
    spark: SparkSession, table: Path, clauses: MergeClauses, winner: str
) -> None:
    after: set[str] = set()

    def delete() -> None:
        DeltaTable(table).delete(winner)
        after.update(files_below(table))

    written = files_below(table)
    with pytest.raises(ConcurrentModificationError):
        between(table, updates(spark, (1, "new"), (3, "new")), clauses, delete)
    assert written < files_below(table)
    assert not [path for path in files_below(table) - written if not path.endswith(".bin")]
    assert "new" not in names_of(table).values()
