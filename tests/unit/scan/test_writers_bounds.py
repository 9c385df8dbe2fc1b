"""Bounds that lie inside of the values that they stand for, as engines really write them."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from delta_core.expressions.parse import parse_predicate
from delta_core.scan.data_skipping import files_may_match
from delta_core.scan.outer_bounds import outer_decimals
from delta_core.scan.scan import Scan
from delta_core.scan.statistics import parse_statistics
from delta_core.schema.types import STRING, TIMESTAMP, TIMESTAMP_NTZ, DecimalType, StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore


def bounds(text: str, kind):
    stats = parse_statistics(pa.array([text]), {("a",): kind}).columns[("a",)]
    return stats.minimum[0].as_py(), stats.maximum[0].as_py()


def string_of(low: str, high: str) -> str:
    return f'{{"numRecords":1,"minValues":{{"a":{low}}},"maxValues":{{"a":{high}}},"nullCount":{{"a":0}}}}'


def test_decimals_that_deltalake_wrote_as_doubles_lose_no_row(tmp_path):
    values = [Decimal("1234567890123456789012345678.9012345678"), Decimal("-" + "9" * 28)]
    for value in values:
        table = pa.table({"a": pa.array([value], pa.decimal128(38, 10))})
        write_deltalake(tmp_path, table, mode="append")
    log = next(tmp_path.glob("_delta_log/*0.json")).read_text()
    assert "1.2345678901234567e+27" in log
    snapshot = Snapshot.load(LocalLogStore(tmp_path))
    for value in values:
        for operator in ("=", ">=", "<="):
            rows = Scan(snapshot, predicate=f"a {operator} {value:f}").to_table()
            assert value in rows.column("a").to_pylist(), operator


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("digits", ["9" * 38, "1", "0", "12345678901234567890"])
def test_bounds_of_long_decimals_stay_in_their_type_and_enclose_the_text(sign, digits):
    value = (
        Decimal(f"{sign}{digits}").scaleb(-4, context=None) if len(digits) < 30 else Decimal(sign + digits)
    )
    kind = DecimalType(38, 4) if len(digits) < 30 else DecimalType(38, 0)
    low, high = bounds(string_of(f"{value:f}", f"{value:f}"), kind)
    assert low <= value <= high


@pytest.mark.parametrize(("precision", "scale"), [(16, 2), (18, 4), (18, 18), (19, 0), (20, 2), (38, 10)])
def test_bounds_of_many_decimals(precision, scale):
    rng = random.Random(precision * 100 + scale)
    digits = [0, 1, -1, 10**16 - 1, 1 - 10**16, 2**53 + 1, 2**47, -(2**47)]
    digits += [rng.randrange(-(10**16) + 1, 10**16) for _ in range(1000)]
    digits += [] if precision < 20 else [10**19 * n for n in (-3, 1, 7)]
    values = [None, None, *(Decimal(n).scaleb(-scale) for n in digits)]
    bounds = pa.array(values, pa.decimal128(precision, scale)).slice(1)
    low, high = (outer_decimals(bounds, maximum=maximum) for maximum in (False, True))
    low.validate(full=True)
    high.validate(full=True)
    greatest = Decimal((0, (9,) * precision, -scale))
    for value, below, above in zip(*(array.to_pylist() for array in (bounds, low, high)), strict=True):
        if value is None:
            assert below is None
            assert above is None
            continue
        assert below <= value <= above
        # Whatever has this double, or the next one, lies within.
        near = [Decimal(math.nextafter(float(value), to)) for to in (-math.inf, math.inf)]
        if abs(value.scaleb(scale)) > 2**53:
            assert below <= max(near[0], -greatest)
            assert above >= min(near[1], greatest)


def test_no_bounds_at_all():
    none = pa.array([], pa.decimal128(20, 2))
    assert outer_decimals(none, maximum=True) == none


def test_bounds_of_short_decimals_are_exact():
    assert bounds(string_of("1.50", "12345678901.25"), DecimalType(15, 2)) == (
        Decimal("1.50"),
        Decimal("12345678901.25"),
    )


def test_offsets_of_old_zones_have_seconds_that_the_text_lacks():
    # Amsterdam was 19 minutes and 32 seconds ahead of UTC; what is printed is +00:19.
    low, high = bounds(
        string_of('"1850-01-01T00:00:00.000+00:19"', '"1850-01-01T00:00:00.000+00:19"'), TIMESTAMP
    )
    true = dt.datetime(1849, 12, 31, 23, 40, 28, tzinfo=dt.UTC)
    assert low <= true <= high
    # Since 1972 offsets are whole minutes everywhere.
    low, _ = bounds(
        string_of('"2013-01-01T00:00:00.000+01:00"', '"2013-01-01T00:00:00.000+01:00"'), TIMESTAMP
    )
    assert low == dt.datetime(2012, 12, 31, 23, tzinfo=dt.UTC)


def test_wall_clocks_as_deltalake_spells_them():
    low, high = bounds(string_of('"1850-01-01 00:00:00.999"', '"1850-01-01 00:00:00.999"'), TIMESTAMP_NTZ)
    assert low == dt.datetime(1850, 1, 1, 0, 0, 0, 999000)
    assert high == dt.datetime(1850, 1, 1, 0, 0, 1)


def test_a_maximum_that_was_cut_off_by_units_of_16_bits():
    # The value goes on with a character of two units; in UTF-8 those are above the one that was appended.
    schema = StructType((StructField(name="a", data_type=STRING),))
    value = "k" * 32 + "\U0001f600"
    listing = pa.table(
        {
            "partition_values": pa.array([[]], pa.map_(pa.string(), pa.string())),
            "stats": [string_of(json.dumps("k" * 32), json.dumps("k" * 32 + "\ufffd"))],
        }
    )
    for text in (f"a = '{value}'", f"a >= '{value}'", "a like 'kkk%'"):
        assert files_may_match(listing, parse_predicate(text, schema), schema, [])[0], text
    assert not files_may_match(listing, parse_predicate("a > 'y'", schema), schema, [])[0]


@pytest.mark.parametrize(
    ("cut_off", "bound"),
    [
        ("ab\ufffd", "ac"),
        ("a\U0010ffff\ufffd", "b"),
        ("\U0010ffff\ufffd", None),
        ("\ufffd", None),
        ("ab", "ab"),
    ],
)
def test_nothing_that_goes_on_from_what_was_kept_is_above_the_bound(cut_off, bound):
    # Appending characters instead would do for most values, but not for those with more of them.
    assert bounds(string_of('""', json.dumps(cut_off)), STRING)[1] == bound


def test_half_a_surrogate_pair_is_unknown():
    assert bounds(string_of(r'"\ud800"', r'"z"'), STRING) == (None, "z")
