"""Partition values as strings (PROTOCOL.md, "Partition Value Serialization").

For every type the empty string means null, when reading and writing: a partition column cannot store the
empty string, as with every other Delta writer. A value of a `timestamp` column without a zone is read as UTC.
Values are written with a zone.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from hashlib import sha256
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import CorruptLogError, SchemaError
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_INTEGRAL = (LONG, INTEGER, SHORT, BYTE)
_FRACTIONAL = (FLOAT, DOUBLE)
# Characters that are escaped in Hive-style directory names, and characters that engines encode differently.
_ESCAPED = re.compile(r"[\"#%'*/:=?\\{\[\]^]|[^ -}]")
_ENCODED_DIFFERENTLY = re.compile(r"[^ -}]")
_CUT_ESCAPE = re.compile(r"%[0-9A-F]?$")
_CUT_NAME = re.compile(r"-[0-9a-f]{32}$")
# File systems, including HDFS and ADLS, allow names of 255 bytes.
MAX_NAME_BYTES = 255
_TIMESTAMP = re.compile(
    r"(\d{4,6})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?"
)
# Python's default context rounds to 28 digits; decimals have up to 38.
_WIDE = Context(prec=76)


def serialize(value: object, data_type: DataType) -> str | None:
    """One partition value as a string in the log; None for null and for the empty string.

    Raises:
        SchemaError: the type is not allowed for partition columns, or the value is not of the type.
    """
    if value is None or value in ("", b"") or data_type == VOID:
        return None
    match value:
        case bool() if data_type == BOOLEAN:
            return "true" if value else "false"
        case int() if data_type in _INTEGRAL:
            return str(value)
        case float() | int() if data_type in _FRACTIONAL:
            return _float_string(float(value))
        case str() if data_type == STRING:
            return value
        case bytes() if data_type == BINARY:
            return _binary_string(value)
        case dt.datetime() if data_type == TIMESTAMP:
            utc = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
            return utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
        case dt.datetime() if data_type == TIMESTAMP_NTZ and value.tzinfo is None:
            string = value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
            return f"{string}.{value.microsecond:06d}" if value.microsecond else string
        case dt.date() if data_type == DATE and not isinstance(value, dt.datetime):
            return value.isoformat()
        case Decimal() | int() if isinstance(data_type, DecimalType):
            return format(rescale(Decimal(value), data_type.scale), "f")
    raise SchemaError(
        f"{value!r} is not a partition value of type {data_type}.",
        cause="Partition columns contain primitive values of their own type.",
        fix="Cast the column before writing, or partition by another column.",
    )


def empty_as_null(column: Column, data_type: DataType) -> Column:
    """A partition column as readers see it: the empty string is null. Copies a column only if it has one.

    Args:
        column: in the Arrow type of `data_type`.
        data_type: the column's type.
    """
    if data_type not in (STRING, BINARY):
        return column
    empty = pc.equal(pc.binary_length(column), 0)
    if not pc.any(empty).as_py():
        return column
    return pc.if_else(pc.fill_null(empty, False), pa.scalar(None, column.type), column)


def parse(string: str | None, data_type: DataType) -> object:
    """Parse the string of a partition value.

    Raises:
        CorruptLogError: the string is not of the type.
    """
    return parse_column(pa.array([string], pa.string()), data_type)[0].as_py()


def parse_column(values: pa.Array, data_type: DataType) -> pa.Array:
    """Convert partition values of one column from strings to the column's Arrow type. Columnar.

    A dictionary array is parsed once per distinct value.

    Raises:
        CorruptLogError: a string is not of the type; the message has the first such string.
    """
    if isinstance(values, pa.DictionaryArray):
        return parse_column(values.dictionary, data_type).take(values.indices)
    target = type_to_arrow(data_type)
    if data_type == VOID:
        return pa.nulls(len(values), target)
    strings = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    if data_type == STRING:
        return strings
    _require_plain_numbers(strings, data_type)
    try:
        if data_type in _INTEGRAL or data_type in _FRACTIONAL or data_type == DATE:
            return strings.cast(target)
        if data_type == BOOLEAN:
            return pc.utf8_lower(strings).cast(target)
    except pa.ArrowInvalid:
        # The loop below accepts more than Arrow's casts, and its error has the invalid string.
        pass
    listed = strings.to_pylist()
    parsed = [_parse_one(string, data_type) for string in listed]
    try:
        return pa.array(parsed, target)
    except (pa.ArrowInvalid, OverflowError) as error:
        wrong = next(string for string, value in zip(listed, parsed, strict=True) if not _fits(value, target))
        raise _corrupt(wrong, data_type) from error


def rescale(value: Decimal, scale: int) -> Decimal:
    """The decimal with exactly `scale` fractional digits, for up to 76 digits in total.

    Raises:
        InvalidOperation: the value is not finite. For callers inside the library.
    """
    return value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)


def value_of(values: Mapping[str, str | None], name: str) -> str | None:
    """The value of a partition column in a file's `partitionValues`. Names match without regard to case.

    Raises:
        CorruptLogError: the file has no value for the column.
    """
    if name in values:
        return values[name]
    folded = name.casefold()
    for key, value in values.items():
        if key.casefold() == folded:
            return value
    raise CorruptLogError(
        f"A file has no value for the partition column {name!r}.",
        cause=f"Its partitionValues are {dict(values)!r}.",
        fix="Restore the table to a version before the file was added.",
    )


def hive_directory(column: str, value: str | None) -> str:
    """The directory name of one partition value: `column=value`, both escaped, with null in Hive's form.

    The name is printable ASCII without `~`; other characters become the `%XX` of their UTF-8 bytes. Delta
    leaves the names to the writer. Engines encode such characters differently in the log and compare the
    strings, so that delta-spark's VACUUM would delete live files in such a directory, or deltalake's DELETE
    would miss rows.

    The name never begins with `_` or `.`, since engines ignore such directories and they must not contain
    data files (PROTOCOL.md, "Data Files"). A name that is too long for a file system is truncated and ends in
    a digest; the full value is in the log.
    """
    name = _escape(column)
    if name.startswith(("_", ".")):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return _fitted(f"{name}={HIVE_NULL if value in (None, '') else _escape(str(value))}")


def canonical_directory(directory: str) -> str:
    """A directory's path in an encoding that is the same in every engine; unchanged if it already is."""
    if not _ENCODED_DIFFERENTLY.search(directory):
        return directory
    return "/".join(
        _fitted(_ENCODED_DIFFERENTLY.sub(_percent_escapes, name)) for name in directory.split("/")
    )


def is_shortened(directory: str) -> bool:
    """Whether a name looks truncated by `hive_directory`, so that it does not contain the value."""
    return len(directory) >= MAX_NAME_BYTES - len("%X") and _CUT_NAME.search(directory) is not None


def unescape_hive(escaped: str) -> str:
    """The inverse of the escaping in `hive_directory`, for one name or value."""
    return unquote(escaped)


def _escape(string: str) -> str:
    return _ESCAPED.sub(_percent_escapes, string)


def _percent_escapes(character: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in character[0].encode("utf-8", errors="surrogateescape"))


def _fitted(name: str) -> str:
    if len(name) <= MAX_NAME_BYTES:
        return name
    digest = sha256(name.encode()).hexdigest()[:32]
    return f"{_CUT_ESCAPE.sub('', name[: MAX_NAME_BYTES - 1 - len(digest)])}-{digest}"


def _float_string(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _binary_string(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(
            "A binary partition value is not valid UTF-8.",
            cause="The log stores partition values as strings, which cannot represent other bytes.",
            fix="Partition by a string column, such as hex(value).",
        ) from error


def _parse_one(string: str | None, data_type: DataType) -> object:
    if string is None:
        return None
    try:
        if data_type in _INTEGRAL:
            return int(string)
        if data_type in _FRACTIONAL:
            return float(string)
        if data_type == BINARY:
            return string.encode("utf-8")
        if isinstance(data_type, DecimalType):
            return rescale(Decimal(string), data_type.scale)
        if data_type == BOOLEAN and string.lower() in ("true", "false"):
            return string.lower() == "true"
        if data_type == DATE:
            return parse_timestamp(string).date()
        if data_type == TIMESTAMP:
            return parse_timestamp(string, zone=dt.UTC)
        if data_type == TIMESTAMP_NTZ:
            return parse_timestamp(string)
    except (ValueError, InvalidOperation, OverflowError):
        pass
    raise _corrupt(string, data_type)


def _require_plain_numbers(strings: pa.Array, data_type: DataType) -> None:
    """Refuse strings that Arrow or Python reads as numbers but no writer writes: 0x10, 1_0, ٣."""
    if data_type in _INTEGRAL:
        form = r"^\s*[+-]?[0-9]+\s*$"
    elif data_type in _FRACTIONAL or isinstance(data_type, DecimalType):
        form = r"^[-+0-9.a-zA-Z\s]+$"
    else:
        return
    odd = strings.filter(pc.invert(pc.match_substring_regex(strings, form)))
    if len(odd):
        raise _corrupt(odd[0].as_py(), data_type)


def _fits(value: object, target: pa.DataType) -> bool:
    try:
        pa.scalar(value, target)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _corrupt(string: str, data_type: DataType) -> CorruptLogError:
    return CorruptLogError(
        f"The partition value {string!r} is not of type {data_type}.",
        cause="The partition values in the log contradict the table's schema.",
        fix="Repair the add action with the value, or restore an earlier version.",
    )


def parse_timestamp(string: str, zone: dt.tzinfo | None = None) -> dt.datetime:
    """Parse a timestamp or date; the time and the zone may be missing.

    Args:
        string: `2013-01-02`, `2013-01-02 03:04:05.678`, `2013-01-02T03:04:05Z`, `...+01:00`.
        zone: None returns a wall-clock value without a zone (the string may only have the zone UTC);
            otherwise the result is in UTC, and a string without a zone is read in `zone`.

    Raises:
        ValueError: the string has no such form. For callers inside the library, which name the column.
    """
    match = _TIMESTAMP.fullmatch(string.strip())
    if match is None:
        raise ValueError(string)
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    naive = dt.datetime(year, month, day, hour, minute, second, micros)
    if zone is None:
        if match[8] not in (None, "Z", "UTC", "+00:00", "+0000"):
            raise ValueError(string)
        return naive
    if match[8] is None:
        return naive.replace(tzinfo=zone).astimezone(dt.UTC)
    return naive.replace(tzinfo=_zone(match[8])).astimezone(dt.UTC)


def _zone(string: str) -> dt.tzinfo:
    if string in ("Z", "UTC"):
        return dt.UTC
    sign = -1 if string[0] == "-" else 1
    return dt.timezone(sign * dt.timedelta(hours=int(string[1:3]), minutes=int(string[-2:])))
