"""The pages of a Parquet column chunk, walked by their headers before Arrow unfolds them.

A footer says how much a column chunk unfolds to, and each page's header says it again for the page. Arrow
believes the header: it makes room for what that claims, and unfolds a page of a few kilobytes to gigabytes
if they are in it. So the headers are held against the footer first.

A dictionary unfolds once more: a text of a megabyte that a million rows name by its number is a terabyte.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.storage.parquet_footer import ColumnChunk, MalformedFooter
from delta_core.storage.thrift_compact import MalformedThrift, read_struct

_HEADER_BYTES = 256
# A header holds the page's least and greatest value, which may be long texts.
_MAX_HEADER_BYTES = 1 << 20
# Not every writer counts the headers, or the dictionary.
_UNFOLDED_FACTOR = 2
_UNFOLDED_GRACE_BYTES = 1 << 20
_MIN_PAGE_BYTES = 64
_PAGES_GRACE = 10_000

_SIZE, _STORED = 2, 3
_DATA_HEADERS = (5, 8)
# Where a page's header says how its values are encoded, and what says that they are numbers of a dictionary.
_ENCODINGS = {5: 2, 8: 4}
_BY_DICTIONARY = (2, 8)
_DICTIONARY_PAGE = 2
_STRINGS = 6
_MAX_STRING_BYTES = 2 << 30
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


def check_pages(source: pa.NativeFile, chunk: ColumnChunk) -> None:
    """Follow the pages of a column chunk. Reads a few hundred bytes of each.

    Raises:
        MalformedFooter: the pages unfold to more than the footer says, or do not lie where it says.
        OSError: the store failed.
    """
    at, end = chunk.start, chunk.start + chunk.stored_bytes
    unfolded, values, pages, numbered = 0, 0, 0, 0
    dictionary: tuple[int, int, int] | None = None
    allowed = _UNFOLDED_FACTOR * chunk.unfolded_bytes + _UNFOLDED_GRACE_BYTES
    while at < end and values < chunk.num_values:
        header, length = _header(source, at, end)
        size, stored = _size(header, _SIZE, chunk), _size(header, _STORED, chunk)
        if header.get(1) == _DICTIONARY_PAGE and dictionary is None:
            dictionary = (at + length, stored, size)
        at += length + stored
        pages += 1
        unfolded += size
        for kind in _DATA_HEADERS:
            if kind in header:
                count = _size(header[kind], 1, chunk)
                values += count
                numbered += count if header[kind].get(_ENCODINGS[kind]) in _BY_DICTIONARY else 0
        if at > end:
            raise MalformedFooter(f"a page of {chunk.path} ends at {at}, and the column at {end}")
        if unfolded > allowed:
            raise MalformedFooter(
                f"the pages of {chunk.path} unfold to more than {chunk.unfolded_bytes} bytes"
            )
        if pages > _PAGES_GRACE + chunk.stored_bytes // _MIN_PAGE_BYTES:
            raise MalformedFooter(f"the column {chunk.path} is in more than {pages} pages")
    if (
        dictionary is not None
        and chunk.physical_type == _STRINGS
        and numbered * dictionary[2] > _MAX_STRING_BYTES
    ):
        longest = _longest_string(source, chunk, *dictionary)
        if numbered * longest > _MAX_STRING_BYTES:
            raise MalformedFooter(
                f"{numbered} values of {chunk.path} are each one of some texts of up to {longest} bytes"
            )


def _longest_string(source: pa.NativeFile, chunk: ColumnChunk, at: int, stored: int, size: int) -> int:
    """Bytes of a dictionary's longest text; 0 where it cannot be read, and so will not be by Arrow."""
    data = bytes(source.read_at(stored, at))
    try:
        if chunk.codec != 0:
            data = pa.Codec(_CODECS[chunk.codec]).decompress(data, decompressed_size=size, asbytes=True)
    except KeyError:
        return 0  # the old form of LZ4, which no writer of logs uses
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedFooter(f"the dictionary of {chunk.path}: {error}") from error
    longest, place = 0, 0
    while place + 4 <= len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        longest = max(longest, min(length, len(data)))
        place += 4 + length
    return longest


def _header(source: pa.NativeFile, at: int, end: int) -> tuple[dict[int, Any], int]:
    count = _HEADER_BYTES
    while True:
        data = bytes(source.read_at(min(count, end - at), at))
        try:
            return read_struct(data)
        except MalformedThrift as error:
            if len(data) == end - at or count >= _MAX_HEADER_BYTES:
                raise MalformedFooter(f"the page at {at}: {error}") from error
        count *= 16


def _size(fields: Any, number: int, chunk: ColumnChunk) -> int:
    value = fields.get(number) if isinstance(fields, dict) else None
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise MalformedFooter(f"a page of {chunk.path} has a size of {value}")
    return value
