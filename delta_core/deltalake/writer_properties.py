"""The Parquet options of the `deltalake` package, as arguments of pyarrow's writer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from delta_core.deltalake.exceptions import ArgumentTypeError, compatible_class
from delta_core.errors import ConfigurationError
from delta_core.table_features.parquet_format import ParquetOptions

# By the name of the codec: the name in a table's properties, the default level, and the range of levels.
_CODECS: Mapping[str, tuple[str, int | None, range]] = {
    "UNCOMPRESSED": ("none", None, range(0)),
    "SNAPPY": ("snappy", None, range(0)),
    "GZIP": ("gzip", 6, range(11)),
    "BROTLI": ("brotli", 1, range(12)),
    "LZ4": ("lz4_raw", None, range(0)),
    "ZSTD": ("zstd", 1, range(1, 23)),
    "LZ4_RAW": ("lz4_raw", None, range(0)),
}
_ENCODINGS = frozenset(
    {
        "PLAIN",
        "RLE",
        "DELTA_BINARY_PACKED",
        "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY",
        "BYTE_STREAM_SPLIT",
    }
)
_COMPRESSION = re.compile(r"([A-Z0-9_]+)(?:\((\d+)\))?")


@compatible_class
@dataclass(slots=True)
class BloomFilterProperties:
    """A Bloom filter of a column."""

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise ConfigurationError(
                "The fpp must be between 0 and 1 exclusive.", cause=f"It is {self.fpp!r}.", fix="Pass 0.01."
            )

    def __str__(self) -> str:
        return f"set_bloom_filter_enabled: {self.set_bloom_filter_enabled}, fpp: {self.fpp}, ndv: {self.ndv}"


@compatible_class
@dataclass(slots=True)
class ColumnProperties:
    """The encoding of a column."""

    dictionary_enabled: bool | None = None
    statistics_enabled: Literal["NONE", "CHUNK", "PAGE"] | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and self.dictionary_enabled:
            raise ConfigurationError(
                "Cannot specify dictionary_enabled=True and encoding.",
                cause="A dictionary is an encoding itself.",
                fix="Pass one of both.",
            )

    def __str__(self) -> str:
        return (
            f"dictionary_enabled: {self.dictionary_enabled}, "
            f"statistics_enabled: {self.statistics_enabled}, "
            f"bloom_filter_properties: {self.bloom_filter_properties}, encoding: {self.encoding}"
        )


@compatible_class
@dataclass(slots=True)
class WriterProperties:
    """The encoding of the data files of a call."""

    data_page_size_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    write_batch_size: int | None = None
    max_row_group_size: int | None = None
    compression: str | None = None
    compression_level: int | None = field(default=None, repr=False)
    statistics_truncate_length: int | None = None
    default_column_properties: ColumnProperties | None = None
    column_properties: dict[str, ColumnProperties] | None = None

    def __post_init__(self) -> None:
        level, self.compression_level = self.compression_level, None
        if self.compression is None:
            if level is not None:
                raise ConfigurationError(
                    "Providing a compression level without the compression type is not possible, "
                    "please provide the compression as well.",
                    fix="Pass compression='ZSTD', or another codec, too.",
                )
            return
        name = self.compression.upper() if isinstance(self.compression, str) else ""
        if name not in _CODECS:
            raise ConfigurationError(
                f"{self.compression!r} is not a valid Compression. Valid values are: {list(_CODECS)}",
                cause="It is not the name of a codec.",
                fix="Pass one of them.",
            )
        _, default, levels = _CODECS[name]
        if default is not None:
            chosen = default if level is None else level
            if chosen not in levels:
                raise ConfigurationError(
                    f"Compression level for {name} should fall between {levels[0]}-{levels[-1]}",
                    cause=f"It is {chosen!r}.",
                    fix="Pass a level in the range, or omit it.",
                )
            self.compression = f"{name}({chosen})"
        else:
            self.compression = name

    def __str__(self) -> str:
        columns = ", ".join(
            f"column '{name}': {value}" for name, value in (self.column_properties or {}).items()
        )
        return (
            f"WriterProperties(data_page_size_limit: {self.data_page_size_limit}, "
            f"dictionary_page_size_limit: {self.dictionary_page_size_limit}, "
            f"data_page_row_count_limit: {self.data_page_row_count_limit}, "
            f"write_batch_size: {self.write_batch_size}, max_row_group_size: {self.max_row_group_size}, "
            f"compression: {self.compression}, "
            f"statistics_truncate_length: {self.statistics_truncate_length},"
            f"default_column_properties: {self.default_column_properties}, "
            f"column_properties: {columns or None})"
        )


def parquet_options(properties: WriterProperties | None) -> ParquetOptions | None:
    """The properties as options of `delta_core`; None for none.

    Raises:
        ArgumentTypeError: the argument has another type.
        ConfigurationError: a codec or an encoding does not exist.
    """
    if properties is None:
        return None
    if not isinstance(properties, WriterProperties):
        raise ArgumentTypeError(
            f"A {type(properties).__name__} was passed as writer_properties.",
            fix="Pass WriterProperties(...).",
        )
    arguments: dict[str, Any] = {
        "data_page_size": properties.data_page_size_limit,
        "dictionary_pagesize_limit": properties.dictionary_page_size_limit,
        "max_rows_per_page": properties.data_page_row_count_limit,
        "write_batch_size": properties.write_batch_size,
    }
    codec = None
    if properties.compression is not None:
        match = _COMPRESSION.fullmatch(str(properties.compression).upper())
        if match is None or match[1] not in _CODECS:
            raise ConfigurationError(
                f"{properties.compression!r} is not a codec.", fix=f"Pass one of {', '.join(_CODECS)}."
            )
        codec = _CODECS[match[1]][0]
        arguments["compression_level"] = None if match[2] is None else int(match[2])
        if codec == "gzip" and arguments["compression_level"] == 0:
            arguments["compression_level"] = 1  # pyarrow has no gzip without compression
    columns = properties.column_properties or {}
    default = properties.default_column_properties or ColumnProperties()
    plain = default.dictionary_enabled is False or default.encoding is not None
    without = {name for name, own in columns.items() if own.dictionary_enabled is False or own.encoding}
    arguments |= _columns(default, columns)
    if plain:
        with_dictionary = {name for name, own in columns.items() if own.dictionary_enabled} - without
        arguments["use_dictionary"] = sorted(with_dictionary) or False
    return ParquetOptions(
        codec=codec,
        row_group_rows=properties.max_row_group_size,
        arguments={name: value for name, value in arguments.items() if value is not None},
        without_dictionary=frozenset() if plain else frozenset(without),
    )


def _columns(default: ColumnProperties, columns: Mapping[str, ColumnProperties]) -> dict[str, Any]:
    """The arguments about columns, without dictionaries."""
    encodings = {name: _encoding(own) for name, own in columns.items() if own.encoding is not None}
    blooms = {
        name: _bloom(own.bloom_filter_properties)
        for name, own in columns.items()
        if own.bloom_filter_properties is not None and own.bloom_filter_properties.set_bloom_filter_enabled
    }
    arguments: dict[str, Any] = {}
    if encodings:
        arguments["column_encoding"] = encodings
    elif default.encoding is not None:
        arguments["column_encoding"] = _encoding(default)
    if blooms:
        arguments["bloom_filter_options"] = blooms
    if default.statistics_enabled == "NONE":
        arguments["write_statistics"] = [
            name for name, own in columns.items() if own.statistics_enabled in ("CHUNK", "PAGE")
        ]
    return arguments


def _encoding(own: ColumnProperties) -> str:
    name = str(own.encoding).upper()
    if name not in _ENCODINGS:
        raise ConfigurationError(
            f"{own.encoding!r} is not a valid Encoding. Valid values are: {sorted(_ENCODINGS)}",
            fix="Pass one of them.",
        )
    return name


def _bloom(own: BloomFilterProperties) -> dict[str, Any]:
    options = {"ndv": own.ndv, "fpp": own.fpp}
    return {name: value for name, value in options.items() if value is not None}
