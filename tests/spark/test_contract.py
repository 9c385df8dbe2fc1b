"""Loads under a contract: drift is judged before anything is written, and broken rules are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from spark_jobs.job_kinds import register
from spark_jobs.loading import load as load_module
from spark_jobs.spark_executor import SparkExecutor
from tests.support.spark import files_below, rows_of

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = [
    {"name": "id", "type": "long", "nullable": False, "description": "of the reading"},
    {"name": "kind", "type": "string"},
    {"name": "value", "type": "double"},
]
CONTRACT = {"columns": COLUMNS, "constraints": [{"name": "small", "expression": "id < 100"}]}


def load(spark: SparkSession, table: Path, file: Path, **params: Any) -> JobResult:
    source = {"format": file.suffix.removeprefix("."), "uris": [str(file)]}
    spec = JobSpec(kind="load", table=TableRef(uri=str(table)), params={"source": source, **params})
    registry = JobRegistry(group=None)
    register(registry)
    return run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def evolving(**evolution: Any) -> dict[str, Any]:
    return {**CONTRACT, "evolution": evolution}


def test_every_drift_is_named_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", kind=["x"], value=pa.array([1], pa.int32()), extra=[1], more=["x"])
    result = load(spark, tmp_path / "t", file, contract=CONTRACT)
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("SCHEMA_MISMATCH", False)
    refused = [(item["column"], item["change"]) for item in result.output["drift"]["changes"]]
    assert refused == [
        ("id", "missing_column"),
        ("value", "type_changed"),
        ("extra", "new_column"),
        ("more", "new_column"),
    ]
    assert result.output["drift"]["allowed"] is False
    assert all(name in result.error.message for name in ("id", "value", "extra", "more"))
    assert files_below(tmp_path / "t") == set()
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_new_columns_are_left_out_or_added_as_the_contract_says(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    file = parquet(
        tmp_path / "a.parquet",
        more=["m"],
        VALUE=pa.array([1.5], pa.float32()),
        id=pa.array([1], pa.int32()),
    )
    ignored = load(spark, table, file, contract=evolving(new_columns="ignore", widen_types=True))
    assert ignored.status is JobStatus.SUCCEEDED, ignored.error
    assert rows_of(table) == [{"id": 1, "kind": None, "value": 1.5}]
    field = PeerTable(str(table)).schema().fields[0]
    assert (field.name, field.type.type, field.nullable) == ("id", "long", False)
    assert field.metadata == {"comment": "of the reading"}
    changes = {
        item["column"]: (item["change"], item["allowed"]) for item in ignored.output["drift"]["changes"]
    }
    assert changes == {
        "id": ("type_changed", True),
        "kind": ("missing_column", True),
        "value": ("type_changed", True),
        "more": ("new_column", True),
    }

    added = load(spark, table, file, contract=evolving(new_columns="add", widen_types=True))
    assert added.status is JobStatus.SUCCEEDED, added.error
    assert {row["more"] for row in rows_of(table)} == {None, "m"}
    assert [field.name for field in PeerTable(str(table)).schema().fields] == ["id", "kind", "value", "more"]

    other = parquet(tmp_path / "b.parquet", id=[2], more=[7])
    clash = load(spark, table, other, contract=evolving(new_columns="add"))
    assert clash.error is not None
    assert "more is long" in clash.error.message
    assert PeerTable(str(table)).version() == 1


BAD = (
    "id,kind,value\n"
    + "".join(f"{number},secret-{number},1\n" for number in range(100, 107))
    + ",secret-null,2\n,secret-null,3\n5,secret-type,soon\n6,fine,1\n"
)


def test_broken_rules_are_counted_with_some_rows_of_each(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(BAD)
    result = load(spark, tmp_path / "t", file, contract=CONTRACT)
    assert result.error is not None
    assert result.error.code == "CONSTRAINT_VIOLATION"
    found = result.output["violations"]
    assert [(item["rule"], item["count"], len(item["rows"])) for item in found] == [
        ("small", 7, 5),
        ("NOT NULL id", 2, 2),
        ("TYPE value", 1, 1),
    ]
    assert found[0]["rows"][0] == {"id": 100, "kind": "secret-100", "value": 1.0}
    assert found[2]["rows"] == [{"id": "5", "kind": "secret-type", "value": "soon"}]
    for words in ("7 rows violate 'small'", "1 row violates 'TYPE value'", "secret-type", "soon"):
        assert words in result.error.message
    assert files_below(tmp_path / "t") == set()


@pytest.mark.parametrize("text", [BAD, "id,kind,value\n1,secret-1,1,9,9\n"], ids=["rules", "malformed"])
def test_rows_are_not_shown_when_the_contract_says_so(
    spark: SparkSession, tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    result = load(spark, tmp_path / "t", file, contract={**CONTRACT, "show_rows": False})
    assert result.error is not None
    assert "secret" not in result.error.message
    assert "secret" not in json.dumps(dict(result.output))
    if text == BAD:
        assert [(item["count"], item["rows"]) for item in result.output["violations"]] == [
            (7, []),
            (2, []),
            (1, []),
        ]
        said = capfd.readouterr()
        assert "secret" not in said.out + said.err


def test_rows_outside_of_what_is_replaced_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", id=[1, 2, 3], kind=["a", "b", None])
    load(spark, tmp_path / "t", file, contract=CONTRACT)
    result = load(
        spark, tmp_path / "t", file, contract=CONTRACT, mode="overwrite", replace_where="kind = 'a'"
    )
    (found,) = result.output["violations"]
    assert (found["rule"], found["count"]) == ("replaceWhere", 2)
    assert len(rows_of(tmp_path / "t")) == 3


def test_a_source_that_cannot_be_read_again_leaves_the_first_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(BAD)

    def gone(*_: Any, **__: Any) -> None:
        raise OSError("the file has been moved")

    monkeypatch.setattr(load_module, "find_violations", gone)
    result = load(spark, tmp_path / "t", file, contract=CONTRACT)
    assert result.error is not None
    assert result.error.code == "CONSTRAINT_VIOLATION"
    assert "secret-" in result.error.message
    assert result.output["violations"] == []
