from __future__ import annotations

import pytest

from delta_core.expressions.parse import parse_predicate
from delta_core.scan.data_skipping import needs_counts
from delta_core.schema.json import type_from_name
from delta_core.schema.types import StructField, StructType

TYPES = {"a": "long", "b": "long", "s": "string", "d": "date", "flag": "boolean"}
SCHEMA = StructType(
    fields=tuple(StructField(name=name, data_type=type_from_name(kind)) for name, kind in TYPES.items())
)


@pytest.mark.parametrize(
    ("predicate", "asks"),
    [
        ("a > 3", False),
        ("3 <= a AND s <> 'x'", False),
        ("a BETWEEN 1 AND 2 OR NOT a = 7", False),
        ("a IN (1, 2, NULL)", False),
        ("s LIKE 'x%'", False),
        ("a = b", False),
        ("a IS NULL", True),
        ("a > 3 AND b IS NOT NULL", True),
        ("a <=> 3", True),
        ("NOT (a <=> 3)", True),
        ("flag", True),
        ("a + 1 > 3", True),
        ("coalesce(a, b) > 3", True),
        ("CAST(a AS LONG) = 3", True),
        ("year(d) IN (2020)", True),
    ],
)
def test_only_comparisons_of_columns_with_constants_do_not(predicate: str, asks: bool) -> None:
    assert needs_counts(parse_predicate(predicate, SCHEMA)) == asks
