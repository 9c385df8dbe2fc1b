"""Hostile texts in the string arguments of statements, executed: they are data, or the statement is refused.

`make soak-sql-injection` runs every text in every argument, and CI a sample. No text may run as a statement:
the table beside stays as it is, and the history of the table has only the operations of the statements.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError
from delta_core.expressions.render import quote_name, quote_string
from tests.support.injection import payloads
from tests.support.soak import SEED, rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALL = payloads()
SAMPLE = random.Random(SEED).sample(ALL, rounds(usual=2, soak=len(ALL)))


def written(number: int, payload: str) -> tuple[str, dict[str, str]]:
    """A text as a parameter, or in quotes in the statement, in turn."""
    return (":p", {"p": payload}) if number % 2 else (quote_string(payload), {})


Found = Callable[["Tables", list[Any]], Any]


class Tables:
    """The table `t`, and `victim`, which no statement names."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        for name in ("t", "victim"):
            rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
            write_deltalake(str(folder / name), rows, configuration={"delta.columnMapping.mode": "name"})

    def run(self, statement: str, **parameters: Any) -> list[Any]:
        """The rows of a statement."""
        text = statement.replace("{folder}", str(self.folder))
        names = {"t": str(self.folder / "t")}
        return list(spark_jobs.sql(self.spark, text, parameters or None, tables=names).collect())

    def table(self, name: str = "t") -> DeltaTable:
        """A table as `delta_core` opens it."""
        return DeltaTable(str(self.folder / name))

    def names(self) -> list[str | None]:
        """The values of the column `name`."""
        return list(self.table().to_pyarrow_table(columns=["name"])["name"].to_pylist())


@pytest.fixture(name="tables")
def fixture_tables(spark: SparkSession, tmp_path: Path) -> Iterator[Tables]:
    tables = Tables(spark, tmp_path)
    yield tables
    victim = tables.table("victim")
    assert victim.version() == 0
    assert victim.to_pyarrow_table().num_rows == 2


def metadata(key: str) -> Found:
    return lambda tables, _: tables.table().metadata().configuration.get(key)


def comment_of_name(tables: Tables, _: list[Any]) -> Any:
    return next(item for item in tables.table().schema().fields if item.name == "name").metadata.get(
        "comment"
    )


STRINGS: tuple[tuple[str, Found], ...] = (
    ("SELECT {} AS x", lambda _, rows: rows[0]["x"]),
    ("SELECT name AS x FROM (SELECT {} AS name, id FROM t) WHERE id = 1", lambda _, rows: rows[0]["x"]),
    ("COMMENT ON TABLE t IS {}", lambda tables, _: tables.table().metadata().description),
    ("ALTER TABLE t ALTER COLUMN name COMMENT {}", comment_of_name),
    ("ALTER TABLE t SET TBLPROPERTIES ('k' = {})", metadata("k")),
)
"""Statements with a string, and how it is read again."""

REFUSED: tuple[str, ...] = (
    "SELECT * FROM table_changes({}, 0)",
    "SELECT * FROM t TIMESTAMP AS OF {}",
    "RESTORE TABLE t TO TIMESTAMP AS OF {}",
    "VACUUM t RETAIN {} HOURS",
    "SELECT * FROM t VERSION AS OF {}",
    "COPY INTO t FROM {} FILEFORMAT = JSON",
    "COPY INTO t FROM '{{folder}}/victim' FILEFORMAT = JSON FILES = ({})",
    "CREATE TABLE x LIKE IDENTIFIER({}) LOCATION '{{folder}}/x'",
    "DELETE FROM IDENTIFIER({})",
    "OPTIMIZE IDENTIFIER({})",
    "DESCRIBE HISTORY IDENTIFIER({})",
    "ALTER TABLE t UNSET TBLPROPERTIES ({})",
    "SHOW COLUMNS IN IDENTIFIER({})",
)
"""Statements for which these strings are no value."""

NAMES: tuple[str, ...] = (
    "SELECT * FROM {}",
    "SELECT {} FROM t",
    "DELETE FROM delta.{}",
    "VACUUM {}",
    "OPTIMIZE t ZORDER BY ({})",
    "UPDATE t SET {} = 1",
    "INSERT INTO t ({}) VALUES (1)",
    "INSERT INTO {} VALUES (1)",
    "MERGE INTO t USING {} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE t DROP COLUMN {}",
    "ALTER TABLE t DROP CONSTRAINT {}",
    "ALTER TABLE t ALTER COLUMN {} FIRST",
    "CONVERT TO DELTA parquet.{}",
    "GENERATE symlink_format_manifest FOR TABLE {}",
    "RESTORE TABLE {} TO VERSION AS OF 0",
    "DESCRIBE DETAIL {}",
    "SHOW TBLPROPERTIES {}",
    "CREATE TABLE delta.`{{folder}}/n` CLONE {}",
)
"""Statements with a name that does not exist."""


@pytest.mark.parametrize(
    ("template", "found"), STRINGS, ids=lambda item: item if isinstance(item, str) else ""
)
def test_a_string_is_data(tables: Tables, template: str, found: Found) -> None:
    for number, payload in enumerate(SAMPLE):
        argument, parameters = written(number, payload)
        rows = tables.run(template.format(argument), **parameters)
        assert found(tables, rows) == payload
    assert tables.names() == ["a", "b"]


def test_rows_keep_every_text(tables: Tables) -> None:
    many = SAMPLE[:200]
    values = ", ".join(f"({10 + number}, :p{number})" for number in range(len(many)))
    tables.run(f"INSERT INTO t VALUES {values}", **{f"p{number}": text for number, text in enumerate(many)})
    quoted = ", ".join(f"({1000 + number}, {quote_string(text)})" for number, text in enumerate(many))
    tables.run(f"INSERT INTO t VALUES {quoted}")
    assert sorted(filter(None, tables.names())) == sorted(["a", "b", *many, *many])


def test_conditions_and_values_compare_with_every_text(tables: Tables) -> None:
    for number, payload in enumerate(SAMPLE[: rounds(usual=1, soak=100)]):
        argument, parameters = written(number, payload)
        tables.run(f"UPDATE t SET name = {argument} WHERE id = 1 AND name <> {argument}", **parameters)
        assert sorted(map(str, tables.names())) == sorted([payload, "b"])
        merge = f"MERGE INTO t USING (SELECT {argument} AS name) s ON t.name = s.name AND t.name = {argument}"
        tables.run(f"{merge} WHEN MATCHED THEN UPDATE SET name = 'a'", **parameters)
        assert sorted(map(str, tables.names())) == ["a", "b"]
        tables.run(f"DELETE FROM t WHERE name = {argument}", **parameters)
        tables.run(
            f"INSERT INTO t REPLACE WHERE name = {argument} SELECT 3, {argument} WHERE false", **parameters
        )
        assert sorted(map(str, tables.names())) == ["a", "b"]


def test_properties_have_every_text_as_a_key(tables: Tables) -> None:
    for payload in SAMPLE:
        try:
            tables.run("ALTER TABLE t SET TBLPROPERTIES (:p = :p)", p=payload)
        except DeltaError:
            continue
        assert tables.table().metadata().configuration[payload] == payload
        assert tables.run("SHOW TBLPROPERTIES t (:p)", p=payload)[0]["value"] == payload


@pytest.mark.parametrize("template", REFUSED)
def test_a_string_that_is_no_value_is_refused(tables: Tables, template: str) -> None:
    for number, payload in enumerate(SAMPLE):
        argument, parameters = written(number, payload)
        with pytest.raises(DeltaError):
            tables.run(template.format(argument), **parameters)
    assert tables.table().version() == 0


@pytest.mark.parametrize("template", NAMES)
def test_a_name_is_a_name(tables: Tables, template: str) -> None:
    for payload in filter(None, SAMPLE):
        with pytest.raises(DeltaError):
            tables.run(template.format(quote_name(payload)))
    assert tables.table().version() == 0


def test_columns_have_every_text_as_a_name(tables: Tables) -> None:
    for number, payload in enumerate(SAMPLE[: rounds(usual=1, soak=60)]):
        before = [field.name for field in tables.table().schema().fields]
        try:
            tables.run(f"ALTER TABLE t ADD COLUMN {quote_name(payload)} INT")
        except DeltaError:
            assert [field.name for field in tables.table().schema().fields] == before
            continue
        assert [field.name for field in tables.table().schema().fields] == [*before, payload]
        tables.run(f"UPDATE t SET {quote_name(payload)} = {number} WHERE id = 2")
        rows = tables.run(f"SELECT {quote_name(payload)} AS x FROM t WHERE {quote_name(payload)} = {number}")
        assert [row["x"] for row in rows] == [number]
        tables.run(f"ALTER TABLE t DROP COLUMN {quote_name(payload)}")


def test_files_and_patterns_stay_in_their_folder(tables: Tables) -> None:
    for payload in SAMPLE:
        try:
            rows = tables.run(
                "COPY INTO t FROM '{folder}/victim' FILEFORMAT = PARQUET PATTERN = :p", p=payload
            )
        except DeltaError:
            continue
        assert [row["num_affected_rows"] for row in rows] == [0]
    assert tables.table().version() == 0
