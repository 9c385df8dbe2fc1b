"""The codecs of data files: names in the API, in table properties, in file names and in pyarrow."""

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
"""The file name extension of each codec."""


def choose_compression(requested: str | None, properties: TableProperties) -> Compression:
    """The requested codec, else the codec of the table's property, else snappy.

    Raises:
        ConfigurationError: the codec is unknown.
        InvalidTablePropertyError: the table's property has a codec that this library cannot write.
    """
    codec = PARQUET_COMPRESSION_CODEC.of(properties.configuration) if requested is None else requested
    if not isinstance(codec, str) or codec not in EXTENSIONS:
        raise ConfigurationError(
            f"The compression {codec!r} is unknown.",
            cause="Every reader of the table must support the codec.",
            fix=f"Use one of {', '.join(EXTENSIONS)}.",
        )
    return cast(Compression, codec)
