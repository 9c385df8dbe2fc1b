from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError
from delta_core.schema.schema_arguments import coerce_fields, coerce_schema, coerce_type
from delta_core.schema.types import INTEGER, LONG, STRING, StructField, StructType

FIELD = StructField(name="n", data_type=INTEGER, nullable=False)
ARROW = pa.field("n", pa.int32(), nullable=False)


def test_what_arrow_and_we_have_is_the_same() -> None:
    assert coerce_schema(pa.schema([ARROW])) == coerce_schema(StructType((FIELD,))) == StructType((FIELD,))
    assert coerce_schema([ARROW]) == coerce_schema((FIELD,)) == StructType((FIELD,))
    assert coerce_fields(ARROW) == coerce_fields([FIELD]) == coerce_fields(FIELD) == [FIELD]
    assert coerce_fields((ARROW, StructField(name="t", data_type=STRING)))[1].name == "t"
    assert coerce_type(pa.int64()) == coerce_type(LONG) == LONG


@pytest.mark.parametrize(
    ("take", "given", "problem"),
    [
        (coerce_schema, {"a": "int"}, "is not a valid schema"),
        (coerce_schema, None, "None is not a valid schema"),
        (coerce_schema, ["id"], "'id' is not a valid column"),
        (coerce_fields, "id", "'i' is not a valid column"),
        (coerce_fields, {"id": "string"}, "'id' is not a valid column"),
        (coerce_fields, 3, "3 is not a valid column"),
        (coerce_type, "bigint", "'bigint' is not a valid type"),
        (coerce_type, pa.duration("s"), "which Delta tables cannot store"),
    ],
)
def test_what_is_none_is_named_with_a_way_out(take: Any, given: Any, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        take(given)
    assert caught.value.fix
