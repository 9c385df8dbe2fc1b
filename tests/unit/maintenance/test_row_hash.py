from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.maintenance.verify.row_hash import hash_array, hash_batches, hash_rows

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [0, 1, -1, 2**63 - 1, None]),
    "int8": (pa.int8(), [0, 1, -1, None, 127]),
    "bool": (pa.bool_(), [True, False, None, True, False]),
    "float64": (pa.float64(), [0.0, 1.5, math.nan, None, -1e300]),
    "float32": (pa.float32(), [0.0, 1.5, math.nan, None, -2.0]),
    "string": (pa.string(), ["", "a", "ab", None, "ünïcode 😀"]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", None, b"x"]),
    "date": (
        pa.date32(),
        [dt.date(1970, 1, 1), dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 1, 1)],
    ),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None, None, None, None],
    ),
    "decimal": (
        pa.decimal128(38, 4),
        [Decimal("1.5"), Decimal("-1.5"), None, Decimal("0"), Decimal("9" * 30)],
    ),
    "list": (pa.list_(pa.int64()), [[1, 2], [2, 1], [], None, [None]]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, None, {"a": 1, "b": None}, {"a": None, "b": None}],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("k", 2)], [], None, [("k", None)]]),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_hashes_the_same_wherever_it_stands(name: str) -> None:
    kind, values = VALUES[name]
    array = pa.array(values, kind)
    one_by_one = [int(hash_array(pa.array([value], kind))[0]) for value in values]
    assert hash_array(array).tolist() == one_by_one
    assert hash_array(array.slice(1, 3)).tolist() == one_by_one[1:4]
    assert hash_array(pa.concat_arrays([array, array])).tolist() == one_by_one * 2


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("bool", "timestamp")])
def test_different_values_differ(name: str) -> None:
    kind, values = VALUES[name]
    assert len(set(hash_array(pa.array(values, kind)).tolist())) == 5


def test_zeros_and_nans_are_one_value_each() -> None:
    hashes = hash_array(pa.array([0.0, -0.0, math.nan, -math.nan]))
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]


def test_a_dictionary_hashes_as_its_values() -> None:
    plain = pa.array(["a", "b", None, "a"])
    assert hash_array(plain.dictionary_encode()).tolist() == hash_array(plain).tolist()


def batch(ids: list[int], strings: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids), "t": pa.array(strings)})


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-5, 5), st.text(max_size=4)), min_size=1, max_size=30), st.randoms())
def test_order_and_batches_do_not_matter(rows: list[tuple[int, str]], random: Any) -> None:
    whole = hash_batches([batch([r[0] for r in rows], [r[1] for r in rows])], ["id", "t"])
    random.shuffle(rows)
    parts = [batch([r[0]], [r[1]]) for r in rows]
    assert hash_batches(parts, ["id", "t"]) == whole
    assert whole.minus(hash_batches(parts, ["id", "t"])).is_zero


def test_values_that_changed_rows_are_noticed_although_the_columns_agree() -> None:
    left = hash_batches([batch([1, 2], ["a", "b"])], ["id", "t"])
    right = hash_batches([batch([1, 2], ["b", "a"])], ["id", "t"])
    assert left.columns == right.columns
    assert not left.minus(right).is_zero


def test_a_row_twice_is_not_the_row_once() -> None:
    once = hash_batches([batch([1, 2], ["a", "b"])], ["id", "t"])
    twice = hash_batches([batch([1, 1], ["a", "a"])], ["id", "t"])
    assert once.rows == twice.rows
    assert not once.minus(twice).is_zero


def test_the_changed_column_has_a_name() -> None:
    left = hash_batches([batch([1, 2], ["a", "b"])], ["id", "t"])
    right = hash_batches([batch([1, 2], ["a", "c"])], ["id", "t"])
    assert [name for name, value in left.minus(right).columns if value] == ["t"]


def test_many_random_rows_do_not_collide() -> None:
    random = np.random.default_rng(7)
    hashes = hash_array(pa.array(random.permutation(200_000)))
    assert len(np.unique(hashes)) == 200_000


def test_texts_that_any_polynomial_confuses_differ() -> None:
    """Thue-Morse words: their polynomials modulo 2^64 agree for every odd base."""
    word, other = "a", "b"
    for _ in range(11):
        word, other = word + other, other + word
    one, two = hash_array(pa.array([word, other])).tolist()
    assert one != two


@pytest.mark.parametrize("name", VALUES)
def test_another_seed_gives_other_bits_to_every_value(name: str) -> None:
    kind, values = VALUES[name]
    array = pa.array([value for value in values if value is not None], kind)
    plain, seeded = hash_array(array).tolist(), hash_array(array, seed=2**64 - 5).tolist()
    assert not set(plain) & set(seeded)
    assert len(set(plain)) == len(set(seeded))


def test_rows_of_no_columns_are_all_the_same() -> None:
    assert hash_rows([], 3).tolist() == [0, 0, 0]
