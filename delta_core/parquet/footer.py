"""Reading and checking a Parquet footer before Arrow decodes what it describes.

Arrow trusts a footer in places: a wrong list length in it ends the process, and Arrow allocates a forged
number of values before it reads the first one. Code that opens files of unknown origin therefore reads the
footer here first. A footer is refused when its numbers contradict each other or the size of the file, or
when the file would decompress to far more than a genuine file of its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from delta_core.parquet.thrift_compact import MalformedThrift, read_struct

MAX_FOOTER_BYTES = 16 << 20
"""The limit allows for checkpoints with thousands of row groups."""

_CHECKED_FOOTER_BYTES = 128 << 10
_MAGIC = b"PAR1"
_TAIL_BYTES = 1 << 16
_MAX_SCHEMA_DEPTH = 104
"""More than Arrow's limit of 100."""

# The JSON of a log compresses to a thirtieth and constant columns further, but no genuine file this far.
_MAX_RATIO = 200
_RATIO_GRACE_BYTES = 64 << 20
_MAX_BYTES_PER_ROW = 1 << 16
_ROWS_GRACE_BYTES = 1 << 30
# Every row of a table or a log takes some bytes, at least to differ from the next row.
_MAX_ROWS_PER_BYTE = 4
_ROWS_GRACE = 1 << 20
_MAX_VALUES_PER_BYTE = 1024


class MalformedFooter(ValueError):  # noqa: N818 - a signal to the caller, who names the file
    """The footer cannot be trusted. The message is the reason."""


class Leaf(NamedTuple):
    """A column with values: its dotted path, physical type, and maximum levels."""

    path: str
    physical_type: int
    max_definition: int
    max_repetition: int


class ColumnChunk(NamedTuple):
    """A column of a row group.

    Attributes:
        path: the dotted path of the column.
        nulls: the null count; None when the writer did not record it.
        num_values: the number of values, including nulls and empty lists.
        start: the offset of the first page.
        stored_bytes: the size of the pages in the file.
        unfolded_bytes: the size of the pages after decompression.
        physical_type: 6 is BYTE_ARRAY, used for strings and binary values.
        codec: the number of the compression codec.
    """

    path: str
    nulls: int | None
    num_values: int
    start: int
    stored_bytes: int
    unfolded_bytes: int
    physical_type: int = 0
    codec: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The content of a footer that is needed before the file is decoded.

    Attributes:
        leaves: the columns, in order.
        group_rows: the number of rows of each row group.
        groups: for each row group, the column chunk of each leaf.
    """

    leaves: tuple[Leaf, ...]
    group_rows: tuple[int, ...]
    groups: tuple[tuple[ColumnChunk, ...], ...]

    @property
    def num_rows(self) -> int:
        """The number of rows of the file."""
        return sum(self.group_rows)


def read_footer(source: pa.NativeFile, *, limit_rows: bool = True) -> Footer:
    """Read and check the footer. One or two small reads.

    Args:
        source: the file; its position does not matter and changes.
        limit_rows: refuse more rows, values or bytes than a file of its size can hold when all rows differ,
            as the rows of a checkpoint do. The rows of a data file may all be equal.

    Raises:
        MalformedFooter: the file is not Parquet, is contradictory, or is a decompression bomb.
        OSError: the store failed.
    """
    size = source.size()
    if size < 12:
        raise MalformedFooter(f"it has {size} bytes, too few for a Parquet file")
    tail = _read_at(source, max(0, size - _TAIL_BYTES), min(size, _TAIL_BYTES))
    if tail[-4:] != _MAGIC:
        raise MalformedFooter("it does not end as a Parquet file does")
    length = int.from_bytes(tail[-8:-4], "little")
    if length > size - 12 or length > MAX_FOOTER_BYTES:
        raise MalformedFooter(f"its footer claims {length} bytes of {size}")
    start = size - 8 - length
    data = tail[-8 - length : -8] if length + 8 <= len(tail) else _read_at(source, start, length)
    try:
        fields, _ = read_struct(data)
        return _checked(fields, size=size, body_end=start, limit_rows=limit_rows)
    except MalformedThrift as error:
        raise MalformedFooter(f"its footer: {error}") from error
    except (TypeError, LookupError, AttributeError, UnicodeDecodeError) as error:
        raise MalformedFooter(
            f"a field in its footer does not have the type that the Parquet format defines ({error})"
        ) from error


def check_data_file(source: pa.NativeFile) -> None:
    """Check the footer of a data file, up to 128 KiB: checking a larger one takes longer than reading it.

    Three small reads.

    Raises:
        MalformedFooter: the file is not Parquet, or is contradictory.
        OSError: the store failed.
    """
    size = source.size()
    length = int.from_bytes(_read_at(source, size - 8, 8)[:4], "little") if size >= 12 else 0
    if length <= _CHECKED_FOOTER_BYTES or length > size:
        read_footer(source, limit_rows=False)
    source.seek(0)


def _read_at(source: pa.NativeFile, at: int, count: int) -> bytes:
    source.seek(at)
    data = bytes(source.read(count))
    if len(data) != count:
        raise MalformedFooter("it ended while it was read")
    return data


def _checked(fields: dict[int, Any], *, size: int, body_end: int, limit_rows: bool) -> Footer:
    leaves = _leaves(fields[2])
    groups = fields[4]
    rows = tuple(_count(group, 3, "rows of a row group") for group in groups)
    if sum(rows) != fields[3]:
        raise MalformedFooter(f"its row groups have {sum(rows)} rows, but its footer states {fields[3]}")
    if limit_rows and sum(rows) > _ROWS_GRACE + _MAX_ROWS_PER_BYTE * size:
        raise MalformedFooter(f"it claims {sum(rows)} rows, too many for {size} bytes")
    chunks = []
    for group, group_rows in zip(groups, rows, strict=True):
        columns = group[1]
        if len(columns) != len(leaves):
            raise MalformedFooter(f"a row group has {len(columns)} columns, but the schema has {len(leaves)}")
        chunks.append(
            tuple(
                _column(column, leaf, group_rows, body_end, limit_rows)
                for column, leaf in zip(columns, leaves, strict=True)
            )
        )
    unfolded = sum(chunk.unfolded_bytes for group in chunks for chunk in group)
    # Statistics of a thousand columns are nearly the same JSON a thousand times, and compress extremely well.
    allowed = _RATIO_GRACE_BYTES + _MAX_RATIO * size + min(_ROWS_GRACE_BYTES, _MAX_BYTES_PER_ROW * sum(rows))
    if limit_rows and unfolded > allowed:
        raise MalformedFooter(f"its {size} bytes would decompress to {unfolded} bytes, more than plausible")
    return Footer(leaves=tuple(leaves), group_rows=rows, groups=tuple(chunks))


def _column(column: dict[int, Any], leaf: Leaf, rows: int, body_end: int, limit_rows: bool) -> ColumnChunk:
    meta = column.get(3)
    if meta is None:
        raise MalformedFooter(f"the column {leaf.path} has no metadata; it may be encrypted")
    path = ".".join(part.decode() for part in meta[3])
    if path != leaf.path:
        raise MalformedFooter(f"a row group has the column {path[:200]} in place of {leaf.path}")
    if meta[1] != leaf.physical_type:
        raise MalformedFooter(f"a row group and the schema differ in the physical type of the column {path}")
    values = _count(meta, 5, f"values of {path}")
    unfolded = _count(meta, 6, f"bytes of {path}")
    stored = _count(meta, 7, f"stored bytes of {path}")
    start = _count(meta, 9, f"offset of {path}")
    pages = start
    if (dictionary := meta.get(11)) is not None and 0 < dictionary < start:
        start = dictionary
    end = start + stored
    if values and not 4 <= start <= end <= body_end:
        raise MalformedFooter(f"the column {path} is at bytes {start} to {end}, outside of 4 to {body_end}")
    if values and pages >= end:
        raise MalformedFooter(
            f"the data pages of the column {path} begin at byte {pages}, but the column ends at byte {end}"
        )
    if leaf.max_repetition == 0 and values != rows:
        raise MalformedFooter(f"the column {path} has {values} values for {rows} rows, instead of one each")
    if values < rows or (limit_rows and values - rows > _MAX_VALUES_PER_BYTE * unfolded):
        raise MalformedFooter(
            f"the column {path} claims {values} values, which do not fit {rows} rows and {unfolded} bytes"
        )
    sizes = meta.get(16) or {}
    for field, highest in ((2, leaf.max_repetition), (3, leaf.max_definition)):
        if len(sizes.get(field) or ()) not in (0, highest + 1):
            raise MalformedFooter(f"the column {path} has a histogram whose length does not fit its nesting")
    nulls = (meta.get(12) or {}).get(3)
    if nulls is not None and not (type(nulls) is int and 0 <= nulls <= values):
        raise MalformedFooter(f"the column {path} has {nulls} nulls, but {values} values")
    return ColumnChunk(path, nulls, values, start, stored, unfolded, leaf.physical_type, meta.get(4))


def _count(fields: dict[int, Any], number: int, what: str) -> int:
    value = fields.get(number)
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise MalformedFooter(f"the number of {what} is {value}")
    return value


def _leaves(elements: list[dict[int, Any]]) -> list[Leaf]:
    """The columns of a schema, which is stored as a tree in depth-first order."""
    leaves: list[Leaf] = []
    end = _walk(elements, 0, (), 0, 0, leaves)
    if end != len(elements):
        raise MalformedFooter(f"its schema has {len(elements)} elements, of which {end} belong to it")
    return leaves


def _walk(
    elements: list[dict[int, Any]],
    at: int,
    path: tuple[str, ...],
    definition: int,
    repetition: int,
    leaves: list[Leaf],
) -> int:
    """Walk through the element with the index `at` and its children. Returns the next element's index."""
    if at >= len(elements) or len(path) > _MAX_SCHEMA_DEPTH:
        raise MalformedFooter("its schema ends early or is nested too deep")
    element = elements[at]
    name = element[4].decode()
    if at:
        repeated = element.get(3)
        if repeated not in (0, 1, 2):
            raise MalformedFooter(f"the column {name[:200]} has an invalid repetition type")
        path = (*path, name)
        definition += repeated != 0
        repetition += repeated == 2
    children = element.get(5) or 0
    if at and not children and element.get(1) is not None:
        leaves.append(Leaf(".".join(path), element[1], definition, repetition))
        return at + 1
    if not 0 <= children < len(elements) or (at and not children):
        raise MalformedFooter(f"the column {name[:200]} has {children} children")
    at += 1
    for _ in range(children):
        at = _walk(elements, at, path, definition, repetition, leaves)
    return at
