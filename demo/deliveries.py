"""Further deliveries of the source, in addition to the published year: bad, mixed, and late corrections.

Every file is derived from the published rows by fixed rules, so that every demonstration delivers the same.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from demo import raw_data
from demo.profiles import YEAR

BAD_TAIL_NUMBER = "BAD000"
"""Marks every row that must never be published, so that a published one is detected."""

BAD_BATCHES = ("wrong_type", "null_key", "extra_column")
"""Deliveries that violate the contract: in every fourth row, or as a whole."""

ROTTEN = "many_bad_rows"
"""A delivery that satisfies the contract, but has wrong values in every fourth row."""

ROTTEN_EVERY = 4

MIXED = "few_bad_rows"
"""A delivery with some wrong values, and some flights that are listed again under another number."""

SPOILED_EVERY, TWICE_EVERY, CHANGED_EVERY, SUPERSEDED_EVERY = 400, 900, 600, 3
TWICE_NUMBER = 20_000
"""Added to the number of a flight that is listed a second time."""

FAULTS: tuple[dict[str, str], ...] = (
    {"dep_time": "2513"},
    {"carrier": "ZZ"},
    {"distance": "12000"},
    {"air_time": "-7", "dep_time": "0"},
)
"""The faults of the bad rows, in turn: column and value."""

Row = dict[str, str]


def write_bad_batches(directory: Path, *, month: int) -> dict[str, Path]:
    """Write deliveries of one month of flights, none of which may be published; returns files by name."""
    header, rows = _published(month)
    rows = [row | {"tailnum": BAD_TAIL_NUMBER} for row in rows]
    written = {}
    for name in BAD_BATCHES:
        path = directory / f"{name}.csv"
        _write(path, *_DEFECTS[name](header, rows))
        written[name] = path
    written[ROTTEN] = directory / f"{ROTTEN}.csv"
    _write(
        written[ROTTEN], header, (_spoiled(row, index, every=ROTTEN_EVERY) for index, row in enumerate(rows))
    )
    return written


def write_mixed_batch(directory: Path, *, month: int) -> Path:
    """Write a delivery of one month of flights, most of whose rows are good; returns the file."""
    header, rows = _published(month)
    path = directory / f"{MIXED}.csv"
    spoiled = (_spoiled(row, index, every=SPOILED_EVERY) for index, row in enumerate(rows))
    _write(path, header, (*spoiled, *_listed_twice(rows)))
    return path


def write_corrections(directory: Path, *, month: int, earlier_month: int) -> Path:
    """Write the corrections of the mixed batch and of an earlier month; returns the file.

    The column `correction` distinguishes three kinds of rows: `change` (the delays were different), `delete`
    (a flight that was listed twice) and `add` (a row that was bad before and is now right). A flight may be
    corrected more than once. The row with the highest `sequence` applies, at any position in the file.
    """
    header, rows = _published(month)
    _, earlier = _published(earlier_month)
    good = [row for index, row in enumerate(rows) if index % SPOILED_EVERY != SPOILED_EVERY // 2]
    late = [row for index, row in enumerate(rows) if index % SPOILED_EVERY == SPOILED_EVERY // 2]
    flown = [row for row in (*earlier, *good) if row["arr_delay"] not in ("NA", "")]
    delivered: list[Row] = []
    for index, row in enumerate(flown[::CHANGED_EVERY]):
        delivered.append(_changed(row, minutes=7) | {"correction": "change", "sequence": "2"})
        if index % SUPERSEDED_EVERY == 0:
            delivered.append(_changed(row, minutes=99) | {"correction": "change", "sequence": "1"})
    delivered += [row | {"correction": "delete", "sequence": "1"} for row in _listed_twice(rows)]
    delivered += [row | {"correction": "add", "sequence": "1"} for row in late]
    path = directory / "corrections.csv"
    _write(path, [*header, "correction", "sequence"], delivered)
    return path


def _published(month: int) -> tuple[list[str], list[Row]]:
    header, *lines = raw_data.raw_bytes("flights").decode().splitlines()
    reader = csv.DictReader([header, *(line for line in lines if line.startswith(f"{YEAR},{month},"))])
    return header.split(","), list(reader)


def _write(path: Path, header: Iterable[str], rows: Iterable[Row]) -> None:
    """Write a CSV file without quotes. A null is an empty field, which every reader parses as null."""
    names = list(header)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONE)
        writer.writerow(names)
        writer.writerows(["" if row[name] == "NA" else row[name] for name in names] for row in rows)


def _spoiled(row: Row, index: int, *, every: int) -> Row:
    if index % every != every // 2:
        return row
    return row | FAULTS[index // every % len(FAULTS)] | {"tailnum": BAD_TAIL_NUMBER}


def _listed_twice(rows: list[Row]) -> Iterator[Row]:
    for row in rows[::TWICE_EVERY]:
        yield row | {"flight": str(int(row["flight"]) + TWICE_NUMBER)}


def _changed(row: Row, *, minutes: int) -> Row:
    return row | {name: str(int(row[name]) + minutes) for name in ("dep_delay", "arr_delay")}


Content = tuple[list[str], Iterable[Row]]


def _wrong_type(header: list[str], rows: list[Row]) -> Content:
    return header, [*_every_fourth(rows, {"dep_delay": "late"})]


def _null_key(header: list[str], rows: list[Row]) -> Content:
    return header, [*_every_fourth(rows, {"flight": "NA"})]


def _extra_column(header: list[str], rows: list[Row]) -> Content:
    return [*header, "gate"], [row | {"gate": "B7"} for row in rows]


def _every_fourth(rows: list[Row], fault: Row) -> Iterator[Row]:
    for index, row in enumerate(rows):
        yield row if index % ROTTEN_EVERY else row | fault


_DEFECTS: dict[str, Callable[[list[str], list[Row]], Content]] = {
    "wrong_type": _wrong_type,
    "null_key": _null_key,
    "extra_column": _extra_column,
}
