"""What a table demands of its rows is demanded of Spark's too: a condition that is null is not met."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable as Peer

import spark_jobs
from delta_core import DeltaTable
from delta_core.dml.definition.create import create_table
from delta_core.errors import ConstraintViolationError, ExpressionError
from delta_core.schema.types import INTEGER, LONG, StructField, StructType
from delta_core.storage.open import open_store
from tests.support.spark import files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def invariant(text: str) -> dict[str, Any]:
    return {"delta.invariants": json.dumps({"expression": {"expression": text}})}


@pytest.mark.parametrize(
    ("value", "holds"), [("3", True), ("-3", False), ("cast(null as int)", False)], ids=["3", "-3", "null"]
)
def test_check_constraint(spark: SparkSession, tmp_path: Path, value: str, holds: bool) -> None:
    uri = str(tmp_path / "table")
    spark_jobs.write(spark.sql("SELECT 1L AS id, 1 AS x"), uri, mode="error")
    Peer(uri).alter.add_constraint({"positive": "x > 0"})
    before = files_below(tmp_path)
    rows = spark.sql(f"SELECT 2L AS id, {value} AS x")
    if holds:
        spark_jobs.write(rows, uri, mode="append")
        assert DeltaTable(uri).to_pyarrow_table().num_rows == 2
        return
    with pytest.raises(ConstraintViolationError, match="positive"):
        spark_jobs.write(rows, uri, mode="append")
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("value", "holds"),
    [("named_struct('y', 3)", True), ("named_struct('y', -3)", False), ("named_struct('y', null)", False)],
    ids=["3", "-3", "null"],
)
def test_invariant_of_a_nested_column(spark: SparkSession, tmp_path: Path, value: str, holds: bool) -> None:
    uri = str(tmp_path / "table")
    inner = StructType((StructField(name="y", data_type=INTEGER, metadata=invariant("point.y > 0")),))
    schema = StructType((StructField(name="id", data_type=LONG), StructField(name="point", data_type=inner)))
    create_table(open_store(uri), schema=schema)
    rows = spark.sql(f"SELECT 2L AS id, CAST({value} AS struct<y: int>) AS point")
    if holds:
        spark_jobs.write(rows, uri, mode="append")
        assert DeltaTable(uri).to_pyarrow_table().num_rows == 1
        return
    with pytest.raises(ConstraintViolationError, match=r"invariant of point\.y"):
        spark_jobs.write(rows, uri, mode="append")
    assert DeltaTable(uri).version() == 0


def test_invariant_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    create_table(open_store(uri), schema=StructType((StructField(name="id", data_type=LONG),)))
    # None of our tables gets one, so another writer's hand is needed.
    log = tmp_path / "table" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for metadata in (action["metaData"] for action in actions if "metaData" in action):
        schema = json.loads(metadata["schemaString"])
        schema["fields"][0]["metadata"] = {"delta.invariants": "{"}
        metadata["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    with pytest.raises(ExpressionError, match="invariant of column id cannot be read"):
        spark_jobs.write(spark.sql("SELECT 1L AS id"), uri, mode="append")
    assert DeltaTable(uri).version() == 0
