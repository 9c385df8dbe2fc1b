"""What names a column."""

from __future__ import annotations

import pytest

from delta_core.schema.column_uses import ColumnUse, UseKind
from delta_core.schema.types import LONG, STRING, ArrayType, StructField, StructType
from delta_core.table_features.column_dependencies import column_uses, named_columns

INNER = StructType((StructField(name="x", data_type=LONG), StructField(name="y", data_type=LONG)))
SCHEMA = StructType(
    (
        StructField(name="a", data_type=LONG),
        StructField(name="year", data_type=LONG),
        StructField(name="s", data_type=INNER),
        StructField(name="items", data_type=ArrayType(element_type=INNER)),
        StructField(name="a b", data_type=STRING),
    )
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a > 1", ["a"]),
        ("A > 1 AND S.X < 2", ["A", "S.X"]),
        ("year(a) = 1", ["a"]),
        ("`a b` LIKE 'year%'", ["a b"]),
        ("items.x IS NOT NULL", ["items"]),
        ("1 > 0", []),
        # What is not understood here.
        ("CASE WHEN a > 1 THEN s.y END = 'year'", ["a", "s.y"]),
        ("exists(items, i -> i.x > year)", ["items", "year"]),
        ("s.x.deeper(1) OR items[0].x > 1", ["items"]),
        ("year(", []),
        ("nonsense )) a", ["a"]),
    ],
)
def test_named_columns(text, paths):
    assert named_columns(text, SCHEMA) == {tuple(path.split(".")) for path in paths}


def test_all_uses_of_a_table():
    fields = list(SCHEMA.fields)
    fields[1] = StructField(
        name="year", data_type=LONG, metadata={"delta.generationExpression": "CASE WHEN a > 1 THEN s.x END"}
    )
    invariant = {"delta.invariants": '{"expression": {"expression": "s.y > 3"}}'}
    fields[2] = StructField(
        name="s",
        data_type=StructType((INNER.fields[0], StructField(name="y", data_type=LONG, metadata=invariant))),
    )
    configuration = {"delta.constraints.c1": "a > 0", "delta.Constraints.c2": "`a b` = a", "other": "a"}
    uses = column_uses(StructType(tuple(fields)), configuration, clustering_columns=[("s", "x")])
    assert set(uses) == {
        ColumnUse(kind=UseKind.CHECK, name="c1", path=("a",)),
        ColumnUse(kind=UseKind.CHECK, name="c2", path=("a",)),
        ColumnUse(kind=UseKind.CHECK, name="c2", path=("a b",)),
        ColumnUse(kind=UseKind.GENERATED, name="year", path=("a",), owner=("year",)),
        ColumnUse(kind=UseKind.GENERATED, name="year", path=("s", "x"), owner=("year",)),
        ColumnUse(kind=UseKind.INVARIANT, name="s.y", path=("s", "y"), owner=("s", "y")),
        ColumnUse(kind=UseKind.CLUSTERING, name="s.x", path=("s", "x")),
    }
    assert len(uses) == 7


def test_an_invariant_that_nobody_can_read_names_what_stands_in_it():
    field = StructField(name="z", data_type=LONG, metadata={"delta.invariants": "{a > 1"})
    uses = column_uses(StructType((*SCHEMA.fields, field)), {})
    assert [use.path for use in uses] == [("a",)]
