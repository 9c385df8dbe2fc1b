"""The codecs of data files: their names in the API, in table properties, in file names and in pyarrow."""

from __future__ import annotations

from typing import Literal, cast

from delta_core.errors import ConfigurationError
from delta_core.table_features.table_properties import PARQUET_COMPRESSION_CODEC, TableProperties

Compression = Literal["snappy", "zstd", "gzip", "brotli", "lz4_raw", "none"]

DEFAULT: Compression = "snappy"

EXTENSIONS: dict[str, str] = {
    "snappy": "snappy.parquet",
    "zstd": "zstd.parquet",
    "gzip": "gz.parquet",
    "brotli": "br.parquet",
    "lz4_raw": "lz4raw.parquet",
    "none": "parquet",
}
"""By codec, how the names of its files end."""


def choose_compression(asked: str | None, properties: TableProperties) -> Compression:
    """The codec that a caller asked for, else that of the table, else snappy.

    Raises:
        ConfigurationError: no such codec.
        InvalidTablePropertyError: the table's property names a codec that cannot be written here.
    """
    found = PARQUET_COMPRESSION_CODEC.of(properties.configuration) if asked is None else asked
    if not isinstance(found, str) or found not in EXTENSIONS:
        raise ConfigurationError(
            f"Unknown compression {found!r}",
            cause="Every reader of the table must know the codec",
            fix=f"Use one of {', '.join(EXTENSIONS)}",
        )
    return cast(Compression, found)
