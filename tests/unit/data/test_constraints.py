from __future__ import annotations

import json

import pyarrow as pa
import pytest

from delta_core.data.constraints import ConstraintChecker, table_constraints
from delta_core.errors import ConstraintViolationError, ExpressionError
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import INTEGER, StructField, StructType

DATA = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", None, "z"]})
SCHEMA = from_arrow(DATA.schema)


def test_rows_that_satisfy_everything():
    ConstraintChecker(schema=SCHEMA, configuration={"delta.constraints.pos": "A > 0", "other": "x"}).check(
        DATA
    )


def test_false_and_null_both_violate():
    with pytest.raises(ConstraintViolationError) as caught:
        ConstraintChecker(schema=SCHEMA, configuration={"delta.constraints.named": "b <> 'z'"}).check(DATA)
    text = str(caught.value)
    assert "CHECK constraint named (b <> 'z') is violated by 2 of 3 rows" in text
    assert "row 1: {'a': 2, 'b': None}" in text


def test_invariant():
    metadata = {"delta.invariants": json.dumps({"expression": {"expression": "a < 3"}})}
    schema = StructType((StructField(name="a", data_type=INTEGER, metadata=metadata),))
    with pytest.raises(ConstraintViolationError, match=r"invariant of column a \(a < 3\).* 1 of 3"):
        ConstraintChecker(schema=schema, configuration={}).check(DATA.select(["a"]))
    broken = StructType((StructField(name="a", data_type=INTEGER, metadata={"delta.invariants": "{"}),))
    with pytest.raises(ExpressionError, match="cannot be read"):
        table_constraints(broken, {})


def test_not_null():
    schema = StructType((StructField(name="b", data_type=SCHEMA.fields[1].data_type, nullable=False),))
    with pytest.raises(ConstraintViolationError, match="column b is null in 1 of 3 rows"):
        ConstraintChecker(schema=schema, configuration={}).check(DATA)


def test_condition_that_is_not_understood():
    with pytest.raises(ExpressionError, match=r"Constraint odd .* cannot be enforced"):
        table_constraints(SCHEMA, {"delta.constraints.odd": "my_udf(a) = 1"})


def test_streaming():
    checker = ConstraintChecker(schema=SCHEMA, configuration={"delta.constraints.small": "a < 3"})
    assert [c.name for c in checker.constraints] == ["small"]
    reader = checker.checked(DATA.to_reader(max_chunksize=1))
    assert reader.read_next_batch().num_rows == 1
    with pytest.raises(ConstraintViolationError):
        reader.read_all()
