"""Statistics as their texts state them: the quick readers say what reading text by text says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.scan import statistics
from delta_core.scan.statistics import stated_statistics
from delta_core.schema.types import DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, DecimalType

LEAVES = {
    ("i",): INTEGER,
    ("d",): DOUBLE,
    ("s",): STRING,
    ("m",): DecimalType(10, 2),
    ("at",): TIMESTAMP,
    ("in", "x"): LONG,
}
FULL = (
    '{{"numRecords":{0},"minValues":{{"i":{0},"d":{0}.5,"s":"s{0}","m":1.25,"at":"2024-01-01T00:00:00.123Z",'
    '"in":{{"x":{0}}}}},"maxValues":{{"i":{0},"d":{0}.5,"s":"s{0}"}},"nullCount":{{"i":0,"in":{{"x":1}}}}}}'
)
FEW = '{{"numRecords":{0},"minValues":{{"i":{0}}},"maxValues":{{"i":{0}}},"nullCount":{{"i":0}}}}'
OTHER = '{{"numRecords":{0},"minValues":{{"d":{0}}},"maxValues":{{"i":{0}}},"nullCount":{{"i":0}}}}'
BARE = '{{"numRecords":{0}}}'
UNKNOWN = '{{"numRecords":{0},"minValues":{{"new":{0}}},"maxValues":{{"new":{0}}},"nullCount":{{"new":0}}}}'


@pytest.mark.parametrize(
    "strings",
    [
        [FULL] * 3,
        [FEW] * 3,
        [BARE] * 3,
        [UNKNOWN] * 2,
        ["{{}}", "{{}}"],
        [FEW, FEW, OTHER],
        [OTHER, FEW],
        [FEW, BARE, FULL, UNKNOWN],
        [FEW, "{{", FULL],
        ['{{"numRecords":{0},"minValues":{{"i":"x"}}}}', FEW],
    ],
)
def test_it_is_what_each_text_says(strings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array([text.format(number + 1) for number, text in enumerate(strings)] + [None], pa.string())
    found = stated_statistics(column, LEAVES)
    monkeypatch.setattr(statistics, "_read_joined", lambda *_, **__: None)
    wanted = stated_statistics(column, LEAVES)
    assert found.num_records.to_pylist() == wanted.num_records.to_pylist()
    for path in LEAVES:
        for side in ("minimum", "maximum", "null_count"):
            values, expected = (getattr(one.columns[path], side) for one in (found, wanted))
            shown = [None] * len(column) if values is None else values.to_pylist()
            nothing = expected is None
            assert shown == ([None] * len(column) if nothing else expected.to_pylist()), (path, side)


def test_nothing_is_moved_or_dropped() -> None:
    """Reading for skipping does both: a maximum may be too small, and may hide NaN."""
    text = '{"numRecords":1,"minValues":{"d":9.0,"i":7},"maxValues":{"d":0.1,"i":5},"nullCount":{"i":3}}'
    found = stated_statistics(pa.array([text]), LEAVES)
    assert found.columns["d",].maximum.to_pylist() == [0.1]
    assert found.columns["d",].minimum.to_pylist() == [9.0]
    assert found.columns["i",].minimum.to_pylist() == [7]
    assert found.columns["i",].null_count.to_pylist() == [3]
    plain = statistics.parse_statistics(pa.array([text]), LEAVES)
    assert plain.columns["d",].maximum.to_pylist() == [None]
    assert plain.columns["i",].null_count.to_pylist() == [None]
