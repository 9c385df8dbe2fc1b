"""The deliveries are what the checks take them for, and the model of the corrections is right."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from demo import deliveries, raw_data
from demo.checks.corrections import KEY, corrected
from demo.table_reader import duplicate_keys, same_rows

pytestmark = pytest.mark.slow

MONTH = 2


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return deliveries.write_bad_batches(tmp_path_factory.mktemp("bad"), month=MONTH)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_bad_batch_has_one_defect_and_every_row_is_marked(bad: dict[str, Path]) -> None:
    published = raw_data.read("flights", months=(MONTH,))
    for name in deliveries.BAD_BATCHES:
        rows = rows_of(bad[name])
        assert len(rows) == published.num_rows
        assert {row["tailnum"] for row in rows} == {deliveries.BAD_TAIL_NUMBER}
    fourth = published.num_rows // 4
    assert abs([row["dep_delay"] for row in rows_of(bad["wrong_type"])].count("late") - fourth) <= 1
    assert abs([row["flight"] for row in rows_of(bad["null_key"])].count("") - fourth) <= 1
    assert {row["gate"] for row in rows_of(bad["extra_column"])} == {"B7"}


def test_a_quarter_of_the_rotten_batch_is_wrong_and_every_row_is_marked(bad: dict[str, Path]) -> None:
    rows = rows_of(bad[deliveries.ROTTEN])
    wrong = [
        row
        for row in rows
        if any(all(row[name] == value for name, value in fault.items()) for fault in deliveries.FAULTS)
    ]
    assert abs(len(wrong) - len(rows) / 4) <= 1
    assert {row["tailnum"] for row in rows} == {deliveries.BAD_TAIL_NUMBER}


def test_the_mixed_batch_without_its_faults_is_the_published_month(tmp_path: Path) -> None:
    rows = raw_data.read_delivered(deliveries.write_mixed_batch(tmp_path, month=MONTH))
    published = raw_data.read("flights", months=(MONTH,))
    spoiled = pc.fill_null(pc.equal(rows["tailnum"], deliveries.BAD_TAIL_NUMBER), False)
    twice = pc.greater(rows["flight"], deliveries.TWICE_NUMBER)
    good = rows.filter(pc.invert(pc.or_(spoiled, twice)))
    assert good.num_rows == published.num_rows - pc.sum(spoiled).as_py()
    assert good.join(published.select(KEY), KEY, join_type="left anti").num_rows == 0
    wrong = rows.filter(spoiled).to_pylist()
    assert wrong
    for index, row in enumerate(wrong):
        fault = deliveries.FAULTS[index % len(deliveries.FAULTS)]
        assert {name: str(row[name]) for name in fault} == fault


def test_the_corrections_make_the_mixed_batch_whole(tmp_path: Path) -> None:
    mixed = raw_data.read_delivered(deliveries.write_mixed_batch(tmp_path, month=MONTH))
    spoiled = pc.fill_null(pc.equal(mixed["tailnum"], deliveries.BAD_TAIL_NUMBER), False)
    delivered = raw_data.read_delivered(deliveries.write_corrections(tmp_path, month=MONTH, earlier_month=1))
    published = raw_data.read("flights", months=(1, MONTH))
    loaded = pa.concat_tables([raw_data.read("flights", months=(1,)), mixed.filter(pc.invert(spoiled))])
    assert set(delivered["correction"].to_pylist()) == {"change", "delete", "add"}
    assert duplicate_keys(delivered, KEY) > 0

    by_file, by_year = corrected(loaded, delivered), corrected(published, delivered)
    assert same_rows(by_file.rows, by_year.rows)
    assert by_file.inserted == pc.sum(spoiled).as_py()
    assert (by_file.deleted > 0, by_year.deleted, by_year.inserted) == (True, 0, 0)
    months = set(pc.unique(delivered["month"]).to_pylist())
    assert months == {1, MONTH}


@pytest.mark.parametrize(
    ("corrections", "expected", "counts"),
    [
        ([("a", 5, "change", 1)], [("a", 5), ("b", 2)], (1, 0, 0)),
        ([("c", 7, "add", 1)], [("a", 1), ("b", 2), ("c", 7)], (0, 0, 1)),
        ([("b", 0, "delete", 1)], [("a", 1)], (0, 1, 0)),
        ([("c", 0, "delete", 1)], [("a", 1), ("b", 2)], (0, 0, 0)),
        ([("a", 9, "change", 2), ("a", 5, "change", 1)], [("a", 9), ("b", 2)], (1, 0, 0)),
        ([("a", 5, "change", 1), ("a", 0, "delete", 2)], [("b", 2)], (0, 1, 0)),
    ],
)
def test_the_newest_correction_of_a_key_holds(
    corrections: list[tuple], expected: list[tuple], counts: tuple[int, int, int]
) -> None:
    key = {"time_hour": 0, "flight": 1, "origin": "EWR"}
    rows = [{**key, "carrier": carrier, "delay": delay} for carrier, delay in (("a", 1), ("b", 2))]
    delivered = [
        {**key, "carrier": carrier, "delay": delay, "correction": kind, "sequence": sequence}
        for carrier, delay, kind, sequence in corrections
    ]
    table = pa.Table.from_pylist(rows)
    # As a table whose contract says so, unlike the file.
    required = pa.schema([field.with_nullable(False) for field in table.schema])
    result = corrected(table.cast(required), pa.Table.from_pylist(delivered))
    assert sorted((row["carrier"], row["delay"]) for row in result.rows.to_pylist()) == expected
    assert (result.updated, result.deleted, result.inserted) == counts
