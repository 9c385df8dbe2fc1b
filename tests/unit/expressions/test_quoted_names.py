"""Column names in double quotes: refused in a caller's condition, columns in what other engines store."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, define_column, write_deltalake
from delta_core.errors import ConstraintViolationError, ExpressionError, SchemaError, SchemaEvolutionError
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.stored_expressions import parse_stored, resolve_stored
from delta_core.schema.arrow import from_arrow

SCHEMA = from_arrow(
    pa.schema(
        [
            ("Status", pa.string()),
            ("kind", pa.string()),
            ("Low", pa.int64()),
            ("high", pa.int64()),
            ("two words", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
        ]
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "\"Status\" = 'a'",
        "\"status\" <> 'a'",
        '"Status" IS NULL',
        '"Status" IS NOT NULL',
        "\"Status\" IN ('a', 'b')",
        "\"Status\" LIKE 'a%'",
        "\"Status\" BETWEEN 'a' AND 'b'",
        '"Low" >= 0',
        'length("Status") > 0',
        "high > 1 AND (kind = 'x' OR NOT (\"Status\" = 'a'))",
        "\"two words\" = 'a'",
    ],
)
def test_a_condition_on_a_text_that_is_called_as_a_column_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="in backticks, or without quotes"):
        parse_predicate(text, SCHEMA)


@pytest.mark.parametrize(
    "text", ['kind = "Status"', "kind IN ('Status', 'Low')", "'a' = 'b'", "true", "\"nothing\" = 'a'"]
)
def test_texts_beside_columns_and_other_texts_stay_texts(text: str) -> None:
    assert to_spark_sql(parse_predicate(text, SCHEMA)) == to_spark_sql(
        parse_predicate(text.replace('"', "'"), SCHEMA)
    )


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ("\"Status\" != 'x'", "`Status` <> 'x'"),
        (
            "\"Status\" != 'Low' AND kind != 'a \"Status\" b'",
            "`Status` <> 'Low' AND kind <> 'a \"Status\" b'",
        ),
        ('"two words" IS NOT NULL', "`two words` IS NOT NULL"),
        ('"Low" <= high', "`Low` <= high"),
        ('high >= 0 OR "Low" = 1', "high >= 0 OR `Low` = 1"),
        ('"Low" <= "Low"', "`Low` <= `Low`"),
        ('kind IN ("a", "Status")', "kind IN ('a', 'Status')"),
        ('"Status" = \'é\' AND "Low" > 1', "`Status` = 'é' AND `Low` > 1"),
        (
            "at > arrow_cast('2000-01-01T00:00:00.5', 'Timestamp(Microsecond, Some(\"UTC\"))') AND high > 1",
            "at > TIMESTAMP '2000-01-01 00:00:00.5' AND high > 1",
        ),
        (
            "arrow_cast('2000-01-01T00:00:00.000000', 'Timestamp(Microsecond, None)') = local OR \"Low\" = 1",
            "TIMESTAMP_NTZ '2000-01-01 00:00:00' = local OR `Low` = 1",
        ),
    ],
)
def test_what_is_stored_in_double_quotes_is_a_column_where_the_condition_has_no_other(
    stored: str, meant: str
) -> None:
    assert resolve_stored(stored, SCHEMA) == parse_predicate(meant, SCHEMA)


def test_what_no_reading_fits_stays_an_error() -> None:
    for text in (
        '"Status" <= high',
        "nothing = 1",
        "\"status\" = 'x'",
        "kind = arrow_cast('x', 'Utf8View')",
        "at = arrow_cast('2000-01-01', 'Timestamp(Second, Some(\"Europe/Berlin\"))')",
        "at = arrow_cast(kind)",
        "arrow_cast",
    ):
        with pytest.raises(ExpressionError):
            resolve_stored(text, SCHEMA)
    assert parse_stored("nothing = 1", SCHEMA) is not None


def test_a_constraint_of_the_deltalake_package_holds_here(tmp_path: Path) -> None:
    rows = pa.table({"Status": ["new"], "id": [1]})
    deltalake.write_deltalake(str(tmp_path), rows)
    deltalake.DeltaTable(str(tmp_path)).alter.add_constraint({"known": "Status <> 'gone'"})
    table = DeltaTable(tmp_path)
    assert '"Status"' in table.metadata().configuration["delta.constraints.known"]

    with pytest.raises(ConstraintViolationError, match="known"):
        write_deltalake(table, pa.table({"Status": ["gone"], "id": [2]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="known"):
        table.update({"Status": "'gone'"}, "id = 1")
    write_deltalake(table, pa.table({"Status": ["old"], "id": [3]}), mode="append")
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 3]

    table.alter.set_properties({"delta.columnMapping.mode": "name"})
    with pytest.raises(SchemaEvolutionError, match="known"):
        table.alter.rename_column("Status", "state")


def test_no_row_goes_by_a_condition_that_looks_at_no_column(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"Status": ["new", "old"], "id": [1, 2]}))
    table = DeltaTable(tmp_path)
    with pytest.raises(ExpressionError, match="`Status`"):
        table.delete("\"Status\" <> 'new'")
    assert table.version() == 0


def test_a_column_that_the_deltalake_package_generates_from_a_quoted_name_has_its_values(
    tmp_path: Path,
) -> None:
    fields = [
        deltalake.Field("name", deltalake.schema.PrimitiveType("string")),
        deltalake.Field(
            "loud",
            deltalake.schema.PrimitiveType("string"),
            metadata={"delta.generationExpression": 'upper("name")'},
        ),
    ]
    deltalake.DeltaTable.create(str(tmp_path), deltalake.Schema(fields))
    deltalake.write_deltalake(str(tmp_path), pa.table({"name": ["ann"]}), mode="append")
    write_deltalake(tmp_path, pa.table({"name": ["bob"]}), mode="append")
    loud = DeltaTable(tmp_path).to_pyarrow_table()["loud"].to_pylist()
    assert sorted(loud) == ["ANN", "BOB"]
    with pytest.raises(ConstraintViolationError, match="loud"):
        write_deltalake(tmp_path, pa.table({"name": ["eve"], "loud": ["NAME"]}), mode="append")


def test_nobody_defines_a_column_generated_from_a_text_by_mistake(tmp_path: Path) -> None:
    columns = [
        pa.field("name", pa.string()),
        define_column("loud", pa.string(), generated_always_as='upper("name")'),
    ]
    with pytest.raises(SchemaError, match="refers to no column"):
        DeltaTable.create(tmp_path / "t", columns)
    assert not (tmp_path / "t").exists()


def test_times_in_a_constraint_of_the_deltalake_package(tmp_path: Path) -> None:
    instant = pa.timestamp("us", "UTC")
    old, new = (
        pa.table({"at": pa.array([text], pa.string()).cast(instant)})
        for text in ("1999-01-01T00:00Z", "2001-01-01T00:00Z")
    )
    deltalake.write_deltalake(str(tmp_path), new)
    deltalake.DeltaTable(str(tmp_path)).alter.add_constraint({"recent": "at > '2000-01-01'"})
    with pytest.raises(ConstraintViolationError, match="recent"):
        write_deltalake(tmp_path, old, mode="append")
    write_deltalake(tmp_path, new, mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2
