"""Pages that claim or hold more than the footer says are found before anything is unfolded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.parquet.footer import ColumnChunk, MalformedFooter, read_footer
from delta_core.parquet.pages import check_pages
from tests.unit.parquet.test_footer import TABLE, parquet, parsed, struct, with_footer

WIDE = pa.table({"text": [f"{n:>2000}" for n in range(300)], "n": range(300), "one": ["x" * 10_000] * 300})


def chunks(data: bytes) -> list[ColumnChunk]:
    return [chunk for group in read_footer(pa.BufferReader(data)).groups for chunk in group]


@pytest.mark.parametrize("table", [TABLE, WIDE, WIDE.slice(0, 0)], ids=["nested", "wide", "empty"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0"},
        {"compression": "gzip", "data_page_size": 1, "row_group_size": 7},
        {"write_page_checksum": True, "write_page_index": True, "write_statistics": False},
    ],
    ids=str,
)
def test_honest_pages_pass(table: pa.Table, options: dict[str, Any]) -> None:
    data = parquet(table, **options)
    for chunk in chunks(data):
        check_pages(pa.BufferReader(data), chunk)


def test_pages_of_other_writers_pass(golden_dir: Path) -> None:
    walked = 0
    for path in sorted(golden_dir.rglob("*.parquet"))[::7]:
        with pa.OSFile(str(path)) as source:
            for group in read_footer(source, limit_rows=False).groups:
                for chunk in group:
                    check_pages(source, chunk)
                    walked += 1
    assert walked > 1000


def bomb(claimed: int) -> bytes:
    """A column of 4 MB in a few kilobytes, of which the footer says something else."""
    data = parquet(pa.table({"x": ["0" * 4_000_000]}), compression="zstd", use_dictionary=False)
    assert len(data) < 100_000
    fields = parsed(data)
    fields[4][0][1][0][3][6] = claimed
    return with_footer(data, fields).read()


def test_a_page_that_unfolds_to_more_than_the_footer_says() -> None:
    honest = bomb(claimed=4_010_000)
    check_pages(pa.BufferReader(honest), chunks(honest)[0])
    lying = bomb(claimed=10_000)
    with pytest.raises(MalformedFooter, match="decompress to more than 10000 bytes"):
        check_pages(pa.BufferReader(lying), chunks(lying)[0])


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_long_text_that_every_row_names(compression: str, version: str) -> None:
    """A few kilobytes on the disk, and gigabytes as texts."""
    strings = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 4000, pa.int32()), ["x" * 300_000, "y"])
    data = parquet(pa.table({"x": strings}), compression=compression, data_page_version=version)
    (chunk,) = chunks(data)
    with pytest.raises(MalformedFooter, match=r"8000 values of x .* up to 300000 bytes"):
        check_pages(pa.BufferReader(data), chunk)


def test_long_texts_that_few_rows_name_pass() -> None:
    """The dictionary is given up once it is too large, and the other rows have their texts themselves."""
    table = pa.table({"x": [f"{number:>30000}" for number in range(300)] + ["z"] * 200_000})
    data = parquet(table, compression="zstd", dictionary_pagesize_limit=1 << 20)
    (chunk,) = chunks(data)
    assert chunk.num_values * (1 << 20) > 1 << 30
    check_pages(pa.BufferReader(data), chunk)


def with_header(header: dict[int, Any] | bytes, **changes: int) -> tuple[pa.BufferReader, ColumnChunk]:
    """A file that begins with a page's header, and the column that is said to be in it."""
    data = header if isinstance(header, bytes) else struct(header)
    fields = {"start": 4, "stored_bytes": len(data) + 10, "unfolded_bytes": 100, "num_values": 5}
    chunk = ColumnChunk(path="x", nulls=None, **{**fields, **changes})
    return pa.BufferReader(b"PAR1" + data + bytes(10)), chunk


PAGE = {1: 0, 2: 10, 3: 10, 5: {1: 5}}


@pytest.mark.parametrize(
    ("header", "changes", "said"),
    [
        (PAGE | {2: 2**31 - 1}, {}, "decompress to more than"),
        (PAGE | {2: -1}, {}, "has a size of -1"),
        (PAGE | {2: 2**40}, {}, "has a size of"),
        (PAGE | {3: 11}, {}, "a page of x ends at"),
        (PAGE | {3: None}, {}, "has a size of None"),
        (PAGE | {5: 7}, {}, "has a size of None"),
        (PAGE | {5: {1: -5}}, {}, "has a size of -5"),
        (b"\xff" * 20, {}, "the page at 4"),
        (b"", {"stored_bytes": 0}, None),
        (PAGE, {}, None),
        (PAGE, {"stored_bytes": 5}, "the page at 4: it is cut off"),
    ],
    ids=range(11),
)
def test_headers(header: Any, changes: dict[str, int], said: str | None) -> None:
    if isinstance(header, dict):
        header = {key: value for key, value in header.items() if value is not None}
    source, chunk = with_header(header, **changes)
    if said is None:
        check_pages(source, chunk)
    else:
        with pytest.raises(MalformedFooter, match=said):
            check_pages(source, chunk)


def test_pages_without_values_do_not_go_on_forever() -> None:
    page = struct({1: 0, 2: 0, 3: 0, 5: {1: 0}})
    source = pa.BufferReader(b"PAR1" + page * 100_000)
    chunk = ColumnChunk(
        path="x", nulls=None, num_values=1, start=4, stored_bytes=100_000 * len(page), unfolded_bytes=1
    )
    with pytest.raises(MalformedFooter, match="has more than"):
        check_pages(source, chunk)


def test_a_header_with_long_values_is_read_whole() -> None:
    data = parquet(pa.table({"x": ["a" * 50_000, "b" * 50_000]}), use_dictionary=False)
    assert pq.read_metadata(pa.BufferReader(data)).num_rows == 2
    statistics = struct({1: b"z" * 5000, 2: b"a" * 5000})
    assert len(statistics) > 256
    header = {1: 0, 2: 10, 3: 10, 5: {1: 5, 5: {1: b"z" * 5000, 2: b"a" * 5000}}}
    check_pages(*with_header(header))
