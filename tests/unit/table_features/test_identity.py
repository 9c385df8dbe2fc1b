"""Identity columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import ConstraintViolationError, SchemaError
from delta_core.schema.column_mapping import NAME_KEY
from delta_core.schema.types import INTEGER, LONG, StructField, StructType
from delta_core.table_features.identity import (
    IdentityColumn,
    define_identity,
    differ_only_in_high_water_marks,
    identity_columns,
    identity_of,
    keep_high_water_marks,
    validate_identity,
    with_high_water_marks,
)

MAX, MIN = 2**63 - 1, -(2**63)
LONGS = st.integers(MIN, MAX)
PLAIN = StructField(name="id", data_type=LONG, metadata={"comment": "c"})
FIELD = define_identity(PLAIN, start=5, step=3)


def schema(*fields: StructField) -> StructType:
    return StructType((*fields, StructField(name="v", data_type=LONG)))


def marked(mark: int | None, **changes: int) -> StructType:
    extra = {} if mark is None else {"delta.identity.highWaterMark": mark}
    field = define_identity(PLAIN, **{"start": 5, "step": 3, **changes})
    return schema(replace(field, metadata={**field.metadata, **extra}))


def test_definition_and_back():
    assert FIELD.metadata == {
        "comment": "c",
        "delta.identity.start": 5,
        "delta.identity.step": 3,
        "delta.identity.allowExplicitInsert": False,
    }
    assert identity_of(FIELD) == IdentityColumn(name="id", start=5, step=3)
    assert identity_of(PLAIN) is None
    assert identity_columns(marked(11)) == (IdentityColumn(name="id", start=5, step=3, high_water_mark=11),)
    again = define_identity(marked(11).fields[0], allow_explicit_insert=True)
    assert identity_of(again) == IdentityColumn(name="id", allow_explicit_insert=True)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"delta.identity.step": 0}, "step is 0"),
        ({"delta.identity.step": "1"}, "not a long|range of long"),
        ({"delta.identity.start": None}, "not a long|range of long"),
        ({"delta.identity.start": 2**63}, "not a long|range of long"),
        ({"delta.identity.start": True}, "not a long|range of long"),
        ({"delta.identity.highWaterMark": 1.5}, "not a long|range of long"),
        ({"delta.identity.allowExplicitInsert": None}, "neither true nor false"),
        ({"delta.identity.allowExplicitInsert": 1}, "neither true nor false"),
    ],
)
def test_wrong_entries(change, cause):
    with pytest.raises(SchemaError, match=f"(?i){cause}"):
        identity_of(replace(FIELD, metadata={**FIELD.metadata, **change}))


def test_incomplete_entries():
    with pytest.raises(SchemaError, match="cannot be an identity column"):
        identity_of(replace(PLAIN, metadata={"delta.identity.start": 1}))
    with pytest.raises(SchemaError, match="step is 0"):
        define_identity(PLAIN, step=0)


@pytest.mark.parametrize(
    ("table", "partitions", "cause"),
    [
        (schema(replace(FIELD, data_type=INTEGER)), (), "of type integer"),
        (schema(FIELD), ("ID",), "partitioned by it"),
        (schema(StructField(name="s", data_type=schema(FIELD))), (), "within another column"),
        (
            schema(replace(FIELD, metadata={**FIELD.metadata, "delta.generationExpression": "v"})),
            (),
            "also has a generation expression",
        ),
        (
            schema(replace(FIELD, metadata={**FIELD.metadata, "CURRENT_DEFAULT": "1"})),
            (),
            "also has a default",
        ),
    ],
)
def test_where_identity_columns_cannot_be(table, partitions, cause):
    validate_identity(schema(FIELD), ("v",))
    with pytest.raises(SchemaError, match=f"(?i){cause}"):
        validate_identity(table, partitions)


@pytest.mark.parametrize(
    ("start", "step", "mark", "following"),
    [
        (1, 1, None, [1, 2, 3]),
        (5, 3, None, [5, 8, 11]),
        (5, 3, 11, [14, 17]),
        (5, 3, 12, [14, 17]),
        (5, 3, 13, [14, 17]),
        (5, 3, -100, [5, 8]),
        (5, -3, None, [5, 2, -1]),
        (5, -3, -1, [-4, -7]),
        (5, -3, 0, [-1, -4]),
        (5, -3, 1, [-1, -4]),
        (5, -3, 100, [5, 2]),
        (MAX - 1, 1, None, [MAX - 1, MAX]),
        (MIN, MAX, None, [MIN, -1, MAX - 1]),
        (MAX, MIN, None, [MAX, -1]),
    ],
)
def test_values(start, step, mark, following):
    column = IdentityColumn(name="id", start=start, step=step, high_water_mark=mark)
    reserved = column.reserve(len(following))
    assert reserved.values().to_pylist() == following
    assert reserved.values().type == pa.int64()
    assert column.after(reserved).high_water_mark == following[-1]
    parts = [reserved.values(0, 1), reserved.values(1)]
    assert pa.concat_arrays(parts).to_pylist() == following


def test_no_values():
    column = IdentityColumn(name="id", start=MAX, step=1, high_water_mark=MAX)
    reserved = column.reserve(0)
    assert reserved.values().to_pylist() == []
    assert column.after(reserved) is column


@pytest.mark.parametrize(
    ("column", "num_values"),
    [
        (IdentityColumn(name="id", start=MAX), 2),
        (IdentityColumn(name="id", start=1, high_water_mark=MAX), 1),
        (IdentityColumn(name="id", start=0, step=2**62), 3),
        (IdentityColumn(name="id", start=MIN, step=-1), 2),
    ],
)
def test_overflow(column, num_values):
    with pytest.raises(ConstraintViolationError, match="too few values left"):
        column.reserve(num_values)


@given(
    start=LONGS,
    step=LONGS.filter(bool),
    mark=st.none() | LONGS,
    num_values=st.integers(1, 50),
    split=st.integers(0, 50),
)
def test_values_are_of_the_series_and_beyond_the_mark(start, step, mark, num_values, split):
    column = IdentityColumn(name="id", start=start, step=step, high_water_mark=mark)
    try:
        reserved = column.reserve(num_values)
    except ConstraintViolationError:
        last = column.next_value + step * (num_values - 1)
        assert not MIN <= last <= MAX
        return
    values = reserved.values().to_pylist()
    assert len(set(values)) == num_values
    assert all((value - start) % step == 0 and (value - start) // step >= 0 for value in values)
    assert all(later - earlier == step for earlier, later in pairwise(values))
    if mark is not None:
        assert all((value - mark) * step > 0 for value in values)
        # None was passed over.
        assert values[0] == start or (values[0] - step - mark) * step <= 0
    at = min(split, num_values)
    assert reserved.values(0, at).to_pylist() + reserved.values(at).to_pylist() == values
    # What comes next starts behind all of it.
    assert column.after(reserved).next_value == values[-1] + step


@pytest.mark.parametrize(
    ("step", "mark", "extreme", "synced"),
    [
        (3, None, None, None),
        (3, None, 5, 5),
        (3, None, 6, 8),
        (3, None, 4, None),
        (3, 11, 9, 11),
        (3, 11, 12, 14),
        (3, 11, None, 11),
        (-3, None, 5, 5),
        (-3, None, 4, 2),
        (-3, None, 6, None),
        (-3, 2, -2, -4),
        (-3, -4, 4, -4),
    ],
)
def test_sync(step, mark, extreme, synced):
    column = IdentityColumn(name="id", start=5, step=step, high_water_mark=mark)
    assert column.synced(extreme).high_water_mark == synced


def test_sync_overflow():
    with pytest.raises(ConstraintViolationError, match="outside of the range of long"):
        IdentityColumn(name="id", start=0, step=10).synced(MAX)


@given(start=LONGS, step=LONGS.filter(bool), mark=st.none() | LONGS, extreme=LONGS)
def test_sync_never_goes_back_and_passes_what_there_is(start, step, mark, extreme):
    column = IdentityColumn(name="id", start=start, step=step, high_water_mark=mark)
    try:
        synced = column.synced(extreme)
    except ConstraintViolationError:
        return
    if mark is not None:
        assert synced.high_water_mark is not None
        assert (synced.high_water_mark - mark) * step >= 0
    # The next value is beyond all that rows have, unless these lie before the start.
    assert (synced.next_value - extreme) * step > 0


def test_marks_in_a_schema_only_go_on():
    table = marked(11)
    (column,) = identity_columns(table)
    further = with_high_water_marks(table, [replace(column, high_water_mark=20)])
    assert further == marked(20)
    assert further.fields[0].metadata["comment"] == "c"
    assert with_high_water_marks(further, [column]) == further
    assert with_high_water_marks(marked(None), [column]) == table
    assert with_high_water_marks(table, [IdentityColumn(name="v", high_water_mark=3)]) == table


def test_marks_survive_an_older_schema():
    assert keep_high_water_marks(marked(2), marked(11)) == marked(11)
    assert keep_high_water_marks(marked(None), marked(11)) == marked(11)
    assert keep_high_water_marks(marked(20), marked(11)) == marked(20)
    down = keep_high_water_marks(marked(-2, step=-3), marked(-8, step=-3))
    assert down == marked(-8, step=-3)
    assert keep_high_water_marks(marked(2), marked(-8, step=-3)) == marked(2)
    assert keep_high_water_marks(schema(PLAIN), marked(11)) == schema(PLAIN)


def test_marks_follow_a_renamed_column():
    def mapped(table: StructType, name: str) -> StructType:
        first, *rest = table.fields
        return StructType((replace(first, name=name, metadata={**first.metadata, NAME_KEY: "p"}), *rest))

    assert keep_high_water_marks(mapped(marked(2), "old"), mapped(marked(11), "new")) == mapped(
        marked(11), "old"
    )


def test_what_differs_in_marks_alone():
    assert differ_only_in_high_water_marks(marked(2), marked(11))
    assert differ_only_in_high_water_marks(marked(None), marked(11))
    assert not differ_only_in_high_water_marks(marked(2), marked(2))
    assert not differ_only_in_high_water_marks(marked(2), marked(11, start=6))
    assert not differ_only_in_high_water_marks(marked(2), StructType(marked(11).fields[:1]))
