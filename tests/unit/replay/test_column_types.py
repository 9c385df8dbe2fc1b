"""Columns of a checkpoint in the types that writers choose, and in those that nobody can understand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_core.replay.column_types import MalformedColumn, as_type


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.uint64(), pa.int64()),
        (pa.int64(), pa.int32()),
        (pa.null(), pa.int64()),
    ],
    ids=str,
)
def test_an_integer_is_one_in_any_width(found: pa.DataType, wanted: pa.DataType) -> None:
    values = [None, None] if pa.types.is_null(found) else [7, None]
    assert as_type(pa.array(values, found), wanted) == pa.array(values, wanted)


@pytest.mark.parametrize(
    "found", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()], ids=str
)
def test_a_text_is_one_in_any_layout(found: pa.DataType) -> None:
    values = pa.array(["é", None], pa.string())
    assert as_type(values.cast(found), pa.string()) == values


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1], pa.timestamp("us")), pa.int64()),
        (pa.array([1], pa.date32()), pa.int32()),
        (pa.array([1.0]), pa.int64()),
        (pa.array([True]), pa.int64()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([1]), pa.bool_()),
        (pa.array(["true"]), pa.bool_()),
        (pa.array([[1]]), pa.int64()),
    ],
    ids=str,
)
def test_another_kind_of_value_is_not_guessed_at(values: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(MalformedColumn, match=r"expected .*, found "):
        as_type(values, wanted)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [(pa.array([2**40]), pa.int32()), (pa.array([2**63], pa.uint64()), pa.int64()), (b"\xff", pa.string())],
    ids=str,
)
def test_what_does_not_fit_is_refused(values: Any, wanted: pa.DataType) -> None:
    column = pa.array([values], pa.binary()) if isinstance(values, bytes) else values
    with pytest.raises(pa.ArrowInvalid):
        as_type(column, wanted)
