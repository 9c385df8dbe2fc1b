from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from delta_core.maintenance.clustering.curve import (
    KEY_BITS,
    MAX_COLUMNS,
    Curve,
    column_bits,
    fit_curve,
    sorted_rows,
)
from delta_core.maintenance.clustering.hilbert import hilbert_axes
from delta_core.maintenance.clustering.in_memory import cut_points
from delta_core.maintenance.clustering.sample import Sampler
from delta_core.maintenance.clustering.values import column_at, sort_values
from tests.support.z_order import KINDS, interleave, random_column, range_id, sortable, z_values


def curve_of(table: pa.Table) -> Curve:
    return fit_curve(
        [(name,) for name in table.schema.names],
        [sort_values(column) for column in table.columns],
        floating=[pa.types.is_floating(field.type) for field in table.schema],
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_values_sort_as_they_should(kind: str, rng: random.Random) -> None:
    column = random_column(rng, kind, 300, nulls=0.1)
    found = sort_values(pa.chunked_array([column.slice(0, 100), column.slice(100)]))
    expected = [sortable(value, column.type) for value in column.to_pylist() if value is not None]
    kept = found.values if found.nulls is None else found.values[~found.nulls]
    if kept.dtype == np.int64:
        assert kept.tolist() == expected
    else:
        # numpy leaves zero bytes at the end out.
        assert kept.tolist() == [bytes(value).rstrip(b"\0") for value in expected]  # type: ignore[arg-type]
    assert column.null_count == (0 if found.nulls is None else int(found.nulls.sum()))


@pytest.mark.parametrize("kind", list(KINDS))
def test_ranges_are_those_of_a_search_in_plain_python(kind: str, rng: random.Random) -> None:
    sample = pa.table({"a": random_column(rng, kind, rng.choice([1, 5, 5000]), nulls=rng.choice([0, 0.4]))})
    curve = Curve.from_json(json.loads(json.dumps(curve_of(sample).to_json())))
    others = pa.table({"a": random_column(rng, kind, 400, nulls=0.2)})
    for table in (sample, others):
        assert curve.keys(table).tolist() == z_values(table, curve.to_json())


def test_keys_of_several_columns_are_interleaved_bits(rng: random.Random) -> None:
    for _ in range(12):
        kinds = rng.sample(list(KINDS), rng.randint(1, 5))
        table = pa.table({kind: random_column(rng, kind, 200, nulls=0.2) for kind in kinds})
        curve = curve_of(table)
        assert curve.bits == column_bits(len(kinds))
        assert curve.keys(table).tolist() == z_values(table, curve.to_json())
        assert int(curve.keys(table).max()) < 1 << KEY_BITS


def test_dictionaries_give_the_keys_of_their_values(rng: random.Random) -> None:
    column = random_column(rng, "string", 500, nulls=0.2)
    plain, encoded = pa.table({"a": column}), pa.table({"a": column.dictionary_encode()})
    curve = curve_of(plain)
    assert curve.keys(encoded).tolist() == curve.keys(plain).tolist()
    empty = pa.table({"a": pa.nulls(3, pa.dictionary(pa.int32(), pa.string()))})
    assert curve.keys(empty).tolist() == curve.keys(pa.table({"a": pa.nulls(3, pa.string())})).tolist()


def test_nulls_come_first_and_nan_last() -> None:
    values = [float("inf"), None, -1.0, float("nan"), -float("inf"), 0.0, None]
    table = pa.table({"a": pa.array(values, pa.float64())})
    order = sorted_rows(curve_of(table).keys(table)).tolist()
    assert order == [1, 6, 4, 2, 5, 0, 3]


def test_a_nan_that_the_sample_lacks_still_comes_last() -> None:
    curve = curve_of(pa.table({"a": pa.array([1.0, 2.0, float("inf")])}))
    keys = curve.keys(pa.table({"a": pa.array([float("nan"), float("inf"), 5.0])}))
    assert keys[0] > keys[1] >= keys[2]


def test_the_first_bit_halves_the_rows_whatever_their_distribution() -> None:
    flags = pa.table({"a": pa.array([False] * 500 + [True] * 500), "b": pa.array(range(1000))})
    keys = curve_of(flags).keys(flags)
    assert len(set((keys[:500] >> np.uint64(23)).tolist())) == 1
    assert keys[:500].max() < keys[500:].min(), "two values use the whole range of ids"
    skewed = pa.table({"a": pa.array([7] * 900 + list(range(1000, 1100)))})
    ids = curve_of(skewed).keys(skewed)
    assert ids[0] > 0.85 * 4096, "a frequent value takes as many ids as rows"


def test_a_nul_byte_at_a_texts_end_does_not_put_it_before_a_boundary() -> None:
    table = pa.table({"a": pa.array([b"ab\0", b"ab", b"ab\0\0c", b"b"], pa.binary())})
    curve = curve_of(table)
    assert curve.keys(table).tolist() == z_values(table, curve.to_json())
    assert curve.keys(table)[2] >= curve.keys(table)[1]


def test_rows_of_one_key_keep_their_order_in_both_ways_of_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([3, 1, 3, 1, 2] * 40, np.uint64)
    expected = np.argsort(keys, kind="stable").tolist()
    assert sorted_rows(keys).tolist() == expected
    assert sorted_rows(keys[:0]).tolist() == []
    monkeypatch.setattr("delta_core.maintenance.clustering.curve.KEY_BITS", 60)
    assert sorted_rows(keys).tolist() == expected, "keys that leave no room for a row's number"


def test_bits_are_shared_by_the_columns() -> None:
    assert [column_bits(n) for n in (1, 2, 3, 4, 5, MAX_COLUMNS)] == [12, 12, 12, 10, 8, 4]
    assert interleave([0b10, 0b01], 2) == 0b1001
    assert range_id(None, pa.int64(), {"null_id": 3}) == 3


def test_cuts_fall_between_keys_where_that_is_near() -> None:
    keys = np.array([1] * 30 + [2] * 30 + [3] * 40, np.uint64)
    assert cut_points(keys, 3) == [0, 30, 60, 100]
    assert cut_points(np.ones(100, np.uint64), 4) == [0, 25, 50, 75, 100]
    assert cut_points(np.zeros(0, np.uint64), 4) == [0, 0]
    assert cut_points(np.arange(3, dtype=np.uint64), 10) == [0, 1, 2, 3]


def test_a_sample_is_uniform_bounded_and_the_same_for_the_same_seed() -> None:
    numbers = sort_values(pa.array(range(50_000)))

    def drawn(seed: int, limit: int) -> Sampler:
        sampler = Sampler([seed], limit=limit)
        for start in range(0, 50_000, 5_000):
            sampler.add([numbers.take(slice(start, start + 5_000))])
        return sampler

    first, again, other = (drawn(seed, 1000).columns()[0].values for seed in (1, 1, 2))
    assert len(first) == 1000
    assert first.tolist() == again.tolist() != other.tolist()
    assert abs(float(np.median(first)) - 25_000) < 4_000
    assert len(drawn(1, 100_000).columns()[0].values) == 50_000, "a small set is taken whole"


def test_samples_of_parts_are_merged_from_json() -> None:
    whole = Sampler([9], limit=64)
    for part in range(4):
        sampler = Sampler([9, part], limit=64)
        column = pa.array([None if n % 3 == 0 else f"{part}-{n}" for n in range(100)], pa.string())
        sampler.add([sort_values(column), sort_values(pa.array(range(100)))])
        whole.merge(json.loads(json.dumps(sampler.to_json())))
    strings, numbers = whole.columns()
    assert len(strings.values) == len(numbers.values) == 64
    assert strings.nulls is not None
    for text, null, number in zip(strings.values, strings.nulls, numbers.values, strict=True):
        assert null == (number % 3 == 0)
        assert null or text.endswith(f"-{number}".encode())


@pytest.mark.parametrize(("columns", "bits"), [(1, 6), (2, 1), (2, 5), (3, 3), (4, 3), (10, 1)])
def test_hilberts_curve_visits_every_cell_once_and_never_jumps(columns: int, bits: int) -> None:
    grid = np.indices((1 << bits,) * columns).reshape(columns, -1).astype(np.uint64)
    axes = hilbert_axes(list(grid), bits)
    keys = [interleave([int(axis[row]) for axis in axes], bits) for row in range(grid.shape[1])]
    assert sorted(keys) == list(range(grid.shape[1]))
    along = grid[:, np.argsort(keys)].astype(np.int64)
    assert set(np.abs(np.diff(along, axis=1)).sum(axis=0).tolist()) == {1}


def test_a_curve_of_hilberts_survives_json_and_reads_nested_columns(rng: random.Random) -> None:
    pairs = [{"x": rng.randint(0, 99), "y": rng.random()} if rng.random() < 0.9 else None for _ in range(500)]
    table = pa.table({"s": pa.array(pairs), "z": [rng.choice("abcdef") for _ in range(500)]})
    paths = [("s", "x"), ("s", "y"), ("z",)]
    curve = fit_curve(
        paths,
        [sort_values(column_at(table, path)) for path in paths],
        floating=[False, True, False],
        shape="hilbert",
    )
    again = Curve.from_json(json.loads(json.dumps(curve.to_json())))
    assert again.keys(table).tolist() == curve.keys(table).tolist()
    flat = table.flatten()
    ids = [
        [range_id(value, column.type, ranges) for value in column.to_pylist()]
        for column, ranges in zip(flat.columns, curve.to_json()["columns"], strict=True)
    ]
    axes = hilbert_axes([np.array(column, np.uint64) for column in ids], curve.bits)
    expected = [interleave([int(axis[row]) for axis in axes], curve.bits) for row in range(500)]
    assert curve.keys(table).tolist() == expected
