"""Maps of texts by key: the compact form holds what the map holds."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.replay.map_strings import coded_map, coded_strings, map_values, plain_map

Rows = list[Mapping[str, str | None]]


def _encoded(rows: Rows) -> pa.MapArray:
    """As a checkpoint is decoded: keys and items by dictionary."""
    plain = pa.array([list(row.items()) for row in rows], STRING_MAP)
    return pa.MapArray.from_arrays(
        plain.offsets, plain.keys.dictionary_encode(), plain.items.dictionary_encode()
    )


def _rows(values: pa.MapArray) -> list[list[tuple[str, str | None]]]:
    return plain_map(values).to_pylist()


@pytest.mark.parametrize("seed", range(20))
def test_the_compact_form_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    keys = rng.sample(["day", "Day", "ü", "", "a.b"], rng.randint(1, 4))
    texts = [None, "", "x", "y z", "2013-01-01"]
    rows: Rows = [{key: rng.choice(texts) for key in keys} for _ in range(rng.randint(1, 30))]
    values = _encoded(rows)
    for cut in (values, values.slice(len(rows) // 2), values.slice(0, 1)):
        found = coded_map(cut)
        assert found is not None
        assert found.keys == tuple(keys)
        assert _rows(found.to_map()) == _rows(cut)
        for key in keys:
            expected = [dict(row)[key] for row in _rows(cut)]
            assert found.get(key).to_array().to_pylist() == expected
            assert map_values(cut, key).to_pylist() == expected


def test_many_distinct_texts_need_wide_codes() -> None:
    rows: Rows = [{"k": str(number)} for number in range(40_000)]
    found = coded_map(_encoded(rows))
    assert found is not None
    assert found.get("k").codes.dtype == np.int32
    assert _rows(found.to_map())[-1] == [("k", "39999")]
    few = coded_map(_encoded(rows[:100]))
    assert few is not None
    assert few.get("k").codes.dtype == np.int16


def test_keys_are_found_without_case_if_none_has_the_spelling() -> None:
    found = coded_map(_encoded([{"Day": "1"}, {"Day": None}]))
    assert found is not None
    assert found.get("DAY").to_array().to_pylist() == ["1", None]
    assert found.get("other").to_array().to_pylist() == [None, None]
    both = coded_map(_encoded([{"Day": "1", "day": "2"}, {"Day": None, "day": "3"}]))
    assert both is not None
    assert both.get("day").to_array().to_pylist() == ["2", "3"]
    assert both.get("DAY").to_array().to_pylist() == ["1", "3"]


@pytest.mark.parametrize(
    "rows",
    [[], [{"a": "1"}, {}], [{"a": "1"}, {"b": "1"}], [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}], [{}, {}]],
)
def test_rows_that_differ_in_their_keys_have_no_compact_form(rows: Rows) -> None:
    values = _encoded(rows)
    assert coded_map(values) is None
    assert coded_strings(values, "a").to_array().to_pylist() == [row.get("a") for row in rows]


@pytest.mark.parametrize(
    "data_type",
    [
        pa.string(),
        pa.binary(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.list_(pa.string()),
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.float64(), pa.string()),
    ],
    ids=str,
)
def test_what_is_no_map_of_texts_is_refused(data_type: pa.DataType) -> None:
    with pytest.raises(TypeError, match="expected a map of strings"):
        plain_map(pa.nulls(2, data_type))


@pytest.mark.parametrize("text", [pa.large_string(), pa.binary(), pa.string_view()], ids=str)
def test_other_types_of_texts_are_read(text: pa.DataType) -> None:
    rows = [[("a", "1"), ("b", None)], [("a", "2"), ("b", "é")]]
    values = pa.array(rows, pa.map_(text, text))
    assert plain_map(values) == pa.array(rows, STRING_MAP)
    assert coded_strings(values, "b").to_array().to_pylist() == [None, "é"]
