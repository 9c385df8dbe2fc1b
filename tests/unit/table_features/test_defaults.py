"""Defaults of columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from delta_core.errors import ExpressionError, SchemaError, SchemaEvolutionError
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.json import type_from_name
from delta_core.schema.types import LONG, STRING, VARIANT, ArrayType, StructField, StructType
from delta_core.table_features.defaults import (
    ColumnDefault,
    column_defaults,
    drop_default,
    set_default,
    validate_defaults,
)

NOW = dt.datetime(2026, 3, 1, 23, 59, 58, 123000, tzinfo=dt.UTC)
NOW_MS = int(NOW.timestamp() * 1000)
NAIVE = NOW.replace(tzinfo=None)


def default(kind: str, text: str) -> ColumnDefault:
    return ColumnDefault(name="c", data_type=type_from_name(kind), text=text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("long", "5", 5),
        ("byte", "-128", -128),
        ("integer", "2 * 3 + 1", 7),
        ("double", "5", 5.0),
        ("double", "0.1", 0.1),
        ("float", "0.5", 0.5),
        ("integer", "5.0", 5),
        ("decimal(10,2)", "5", Decimal("5.00")),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("boolean", "true", True),
        ("string", "'it is'", "it is"),
        ("string", "'now()'", "now()"),
        ("string", "concat('a', 'b')", "ab"),
        ("string", "5", "5"),
        ("string", "DATE '2020-01-02'", "2020-01-02"),
        ("binary", "X'00FF'", b"\x00\xff"),
        ("date", "DATE '2020-01-02'", dt.date(2020, 1, 2)),
        ("date", "CAST('2020-01-02' AS DATE)", dt.date(2020, 1, 2)),
        ("timestamp_ntz", "DATE '2020-01-02'", dt.datetime(2020, 1, 2)),
        ("long", "NULL", None),
        ("variant", "null", None),
        ("timestamp", "current_timestamp()", NOW),
        ("timestamp", "CURRENT_TIMESTAMP", NOW),
        ("timestamp", "now()", NOW),
        ("timestamp_ntz", "localtimestamp()", NAIVE),
        ("timestamp_ntz", "current_timestamp()", NAIVE),
        ("date", "current_date()", NOW.date()),
        ("date", "Current_Date", NOW.date()),
        ("date", "curdate( )", NOW.date()),
        ("date", "current_timestamp()", NOW.date()),
        ("date", "date_add(current_date(), 1)", dt.date(2026, 3, 2)),
        ("integer", "year(now())", 2026),
        (
            "timestamp",
            "date_trunc('DAY', current_timestamp())",
            NOW.replace(hour=0, minute=0, second=0, microsecond=0),
        ),
    ],
)
def test_values(kind, text, value):
    found = default(kind, text).value(now_ms=NOW_MS)
    assert found.as_py() == value
    assert found.type == type_to_arrow(type_from_name(kind))


def test_every_write_has_its_own_time():
    moments = [default("timestamp", "now()").value(now_ms=ms).as_py() for ms in (0, 1, NOW_MS)]
    assert moments[0] == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert len(set(moments)) == 3


@pytest.mark.parametrize(
    ("kind", "text", "cause"),
    [
        ("integer", "'5'", "of type string"),
        ("date", "'2020-01-02'", "of type string"),
        ("boolean", "1", "of type integer"),
        ("integer", "1.5", "cannot represent the value"),
        ("byte", "128", "overflow|out of bounds|does not|not in range"),
        ("decimal(3,2)", "10", "overflow|does not|fit|Rescal|precision"),
        ("decimal(10,1)", "1.55", "cannot represent the value"),
        ("float", "1e300", "cannot represent the value|overflow"),
        ("long", "other_column", "other_column does not exist"),
        ("long", "`now`", "now does not exist"),
        ("timestamp", "now", "now does not exist"),
        ("timestamp", "now(3)", "present time|not supported"),
        ("double", "rand()", "does not depend on the row"),
        ("long", "(SELECT 1)", "subquery"),
        ("variant", "1", "of type integer"),
        ("long", "", "empty"),
        ("long", "1; DROP TABLE t", "not a single condition"),
    ],
)
def test_what_cannot_be_a_default(kind, text, cause):
    with pytest.raises(ExpressionError, match="Column c cannot have the default") as caught:
        default(kind, text).value(now_ms=NOW_MS)
    assert caught.match(cause)


SCHEMA = StructType(
    (
        StructField(name="a", data_type=LONG, metadata={"comment": "c"}),
        StructField(name="n", data_type=STRING, nullable=False),
        StructField(name="s", data_type=StructType((StructField(name="x", data_type=LONG),))),
        StructField(name="l", data_type=ArrayType(element_type=LONG)),
        StructField(name="v", data_type=VARIANT),
        StructField(name="g", data_type=LONG, metadata={"delta.generationExpression": "a"}),
        StructField(name="i", data_type=LONG, metadata={"delta.identity.start": 1}),
    )
)


def test_setting_and_dropping():
    changed = set_default(SCHEMA, ["A"], " 5 ")
    assert changed.fields[0].metadata == {"comment": "c", "CURRENT_DEFAULT": "5"}
    assert changed.fields[1:] == SCHEMA.fields[1:]
    assert column_defaults(changed) == (ColumnDefault(name="a", data_type=LONG, text="5"),)
    assert set_default(changed, ["a"], "6").fields[0].metadata["CURRENT_DEFAULT"] == "6"
    assert drop_default(changed, ["a"]) == SCHEMA
    assert drop_default(SCHEMA, ["a"]) == SCHEMA
    assert set_default(SCHEMA, ["l"], "NULL") != SCHEMA
    assert set_default(SCHEMA, ["v"], "null") != SCHEMA
    assert column_defaults(SCHEMA) == ()


def test_dropping_takes_sparks_other_entry_along():
    field = StructField(name="a", data_type=LONG, metadata={"CURRENT_DEFAULT": "1", "EXISTS_DEFAULT": "1"})
    assert drop_default(StructType((field,)), ["a"]).fields[0].metadata == {}


@pytest.mark.parametrize(
    ("column", "text", "cause"),
    [
        ("s.x", "1", "within another column"),
        ("g", "1", "values are generated"),
        ("i", "1", "values are generated"),
        ("n", "null", "NOT NULL"),
    ],
)
def test_columns_that_have_none(column, text, cause):
    with pytest.raises(SchemaError, match="cannot have a default") as caught:
        set_default(SCHEMA, column.split("."), text)
    assert caught.match(cause)


def test_no_such_column():
    with pytest.raises(SchemaEvolutionError, match="nope does not exist"):
        set_default(SCHEMA, ["nope"], "1")
    with pytest.raises(SchemaEvolutionError, match="nope does not exist"):
        drop_default(SCHEMA, ["nope"])


def test_a_whole_schema():
    validate_defaults(SCHEMA)
    validate_defaults(set_default(SCHEMA, ["a"], "5"))
    wrong = StructField(name="a", data_type=LONG, metadata={"CURRENT_DEFAULT": "'x'"})
    with pytest.raises(ExpressionError, match="Column a cannot have the default 'x'"):
        validate_defaults(StructType((wrong,)))
    with pytest.raises(SchemaError, match="within another column"):
        validate_defaults(StructType((StructField(name="s", data_type=StructType((wrong,))),)))
    with pytest.raises(SchemaError, match="not a string"):
        column_defaults(StructType((StructField(name="a", data_type=LONG, metadata={"CURRENT_DEFAULT": 1}),)))
