"""Checks of the pages of a Parquet column chunk by their headers, before Arrow decompresses them.

A footer states the decompressed size of a column chunk, and each page's header states it for the page. Arrow
trusts the header: it allocates the stated size, and decompresses a page of a few kilobytes to gigabytes if
the page contains them. The headers are therefore compared with the footer first.

A dictionary expands once more: a string of a megabyte that a million rows refer to is a terabyte.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.parquet.footer import ColumnChunk, MalformedFooter
from delta_core.parquet.thrift_compact import MalformedThrift, read_struct

_HEADER_BYTES = 256
# A header contains the minimum and maximum of the page, which may be long strings.
_MAX_HEADER_BYTES = 1 << 20
# Some writers do not count the headers or the dictionary.
_UNFOLDED_FACTOR = 2
_UNFOLDED_GRACE_BYTES = 1 << 20
_MIN_PAGE_BYTES = 64
_PAGES_GRACE = 10_000

_SIZE, _STORED = 2, 3
_DATA_HEADERS = (5, 8)
# The field of a page header with the encoding, and the encodings that refer to the dictionary.
_ENCODINGS = {5: 2, 8: 4}
_BY_DICTIONARY = (2, 8)
_DICTIONARY_PAGE = 2
_STRINGS = 6
_MAX_STRING_BYTES = 2 << 30
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


def check_pages(source: pa.NativeFile, chunk: ColumnChunk) -> None:
    """Check the headers of all pages of a column chunk. Reads a few hundred bytes of each page.

    Raises:
        MalformedFooter: the pages decompress to more than the footer states, or are at other offsets.
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
            raise MalformedFooter(f"a page of {chunk.path} ends at {at}, but the column ends at {end}")
        if unfolded > allowed:
            raise MalformedFooter(
                f"the pages of {chunk.path} decompress to more than {chunk.unfolded_bytes} bytes"
            )
        if pages > _PAGES_GRACE + chunk.stored_bytes // _MIN_PAGE_BYTES:
            raise MalformedFooter(f"the column {chunk.path} has more than {pages} pages")
    if (
        dictionary is not None
        and chunk.physical_type == _STRINGS
        and numbered * dictionary[2] > _MAX_STRING_BYTES
    ):
        longest = _longest_string(source, chunk, *dictionary)
        if numbered * longest > _MAX_STRING_BYTES:
            raise MalformedFooter(
                f"{numbered} values of {chunk.path} refer to strings of up to {longest} bytes"
            )


def _longest_string(source: pa.NativeFile, chunk: ColumnChunk, at: int, stored: int, size: int) -> int:
    """The length in bytes of the longest string in a dictionary page; 0 when unknown (the old LZ4 codec).

    Args:
        source: the file.
        chunk: the column chunk of the dictionary.
        at: the offset of the dictionary's data in the file.
        stored: the size of the data in the file, in bytes.
        size: the size of the data after decompression, in bytes.
    """
    data = bytes(source.read_at(stored, at))
    try:
        if chunk.codec != 0:
            data = pa.Codec(_CODECS[chunk.codec]).decompress(data, decompressed_size=size, asbytes=True)
    except KeyError:
        return 0  # the old LZ4 codec, which writers of logs do not use
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
