from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError
from delta_core.schema.given import given_fields, given_schema, given_type
from delta_core.schema.types import INTEGER, LONG, STRING, StructField, StructType

FIELD = StructField(name="n", data_type=INTEGER, nullable=False)
ARROW = pa.field("n", pa.int32(), nullable=False)


def test_what_arrow_and_we_have_is_the_same() -> None:
    assert given_schema(pa.schema([ARROW])) == given_schema(StructType((FIELD,))) == StructType((FIELD,))
    assert given_schema([ARROW]) == given_schema((FIELD,)) == StructType((FIELD,))
    assert given_fields(ARROW) == given_fields([FIELD]) == given_fields(FIELD) == [FIELD]
    assert given_fields((ARROW, StructField(name="t", data_type=STRING)))[1].name == "t"
    assert given_type(pa.int64()) == given_type(LONG) == LONG


@pytest.mark.parametrize(
    ("take", "given", "problem"),
    [
        (given_schema, {"a": "int"}, "is no schema"),
        (given_schema, None, "None is no schema"),
        (given_schema, ["id"], "'id' is no column"),
        (given_fields, "id", "'i' is no column"),
        (given_fields, {"id": "string"}, "'id' is no column"),
        (given_fields, 3, "3 is no column"),
        (given_type, "bigint", "'bigint' is no type"),
        (given_type, pa.duration("s"), "which Delta tables cannot hold"),
    ],
)
def test_what_is_none_is_named_with_a_way_out(take: Any, given: Any, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        take(given)
    assert caught.value.fix
