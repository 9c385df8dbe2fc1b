"""Statistics as columns become the JSON that commits hold."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.replay.parsed_statistics import statistics_to_json
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add

BOUNDS = pa.struct(
    [
        ("i", pa.int64()),
        ("d", pa.decimal128(38, 10)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("old", pa.timestamp("ns", "UTC")),
        ("day", pa.date32()),
        ("b", pa.bool_()),
        ("nested", pa.struct([("x", pa.int32()), ("old", pa.timestamp("ns"))])),
    ]
)
STATISTICS = pa.struct(
    [("numRecords", pa.int64()), ("minValues", BOUNDS), ("nullCount", pa.struct([("i", pa.int64())]))]
)


def test_values_keep_their_exact_form() -> None:
    low = {
        "i": -(2**62) - 1,
        "d": Decimal("12345678901234567890123456.0123456789"),
        "f": 0.1,
        "s": 'q"\u00fc\n',
        "t": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "n": datetime(1, 1, 1),
        "old": 1,
        "day": date(1, 1, 1),
        "b": False,
        "nested": {"x": 1, "old": 1},
    }
    values = pa.array([{"numRecords": 3, "minValues": low, "nullCount": {"i": 0}}, None], STATISTICS)
    text, absent = statistics_to_json(values).to_pylist()
    assert absent is None
    assert json.loads(text, parse_float=Decimal) == {
        "numRecords": 3,
        "minValues": {
            "i": -(2**62) - 1,
            "d": Decimal("12345678901234567890123456.0123456789"),
            "f": Decimal("0.1"),
            "s": 'q"\u00fc\n',
            "t": "9999-12-31T23:59:59.999999Z",
            "n": "0001-01-01T00:00:00.000000",
            "day": "0001-01-01",
            "b": False,
            "nested": {"x": 1},
        },
        "nullCount": {"i": 0},
    }


def test_times_are_written_in_utc_wherever_they_are_of_and_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    data_type = pa.struct([("minValues", pa.struct([("t", pa.timestamp("us", "Asia/Tokyo"))]))])
    at = datetime(2024, 2, 29, 23, 30, tzinfo=UTC)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        (text,) = statistics_to_json(pa.array([{"minValues": {"t": at}}], data_type)).to_pylist()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert json.loads(text) == {"minValues": {"t": "2024-02-29T23:30:00.000000Z"}}


def test_what_json_cannot_say_is_left_out() -> None:
    rows = [{"numRecords": 1, "minValues": {"f": value}} for value in (float("nan"), float("-inf"), None)]
    strings = statistics_to_json(pa.array(rows, STATISTICS)).to_pylist()
    assert [json.loads(text) for text in strings] == [{"numRecords": 1, "minValues": {}}] * 3


def test_a_checkpoint_with_columns_only(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t")
    log.create(add("a"), add("b"))
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    path = log.log / f"{0:020d}.checkpoint.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["add"]:
            row["add"]["stats"] = None
            row["add"]["stats_parsed"] = {"numRecords": 7}
    add_type = CHECKPOINT_SCHEMA.field("add").type
    parsed = pa.struct([*add_type, pa.field("stats_parsed", STATISTICS)])
    schema = CHECKPOINT_SCHEMA.set(1, pa.field("add", parsed))
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    stats = snapshot.files.to_table(["stats"]).column(0).to_pylist()
    assert [json.loads(text) for text in stats] == [{"numRecords": 7}] * 2


def test_years_without_iso_text_are_left_out():
    far = pa.array([3_000_000, 1], pa.int32()).cast(pa.date32())
    late = pa.array([253_402_300_800_000_000, 0], pa.timestamp("us"))
    bounds = pa.StructArray.from_arrays([far, late], names=["d", "n"])
    strings = statistics_to_json(pa.StructArray.from_arrays([bounds], names=["maxValues"])).to_pylist()
    assert strings[0] == '{"maxValues":{}}'
    assert strings[1] == '{"maxValues":{"d":"1970-01-02","n":"1970-01-01T00:00:00.000000"}}'
