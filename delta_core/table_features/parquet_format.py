"""The encoding of a table's Parquet files (PROTOCOL.md, "Table Properties")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.errors import InvalidTablePropertyError
from delta_core.table_features.table_properties import (
    PARQUET_COMPRESSION_CODEC,
    PARQUET_FORMAT_VERSION,
    TableProperties,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """The encoding that a caller chooses for the data files of a statement.

    Attributes:
        codec: the codec, by the table property's name; the table's when None.
        row_group_rows: the maximum number of rows of a row group.
        arguments: arguments of pyarrow's `ParquetWriter`, such as `compression_level`.
    """

    codec: str | None = None
    row_group_rows: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """The encoding of Parquet files in the log; callers may choose another codec for data files.

    Attributes:
        codec: the codec, by the table property's name.
        page_version: `1.0` or `2.0`, the format of data pages.
    """

    codec: str = PARQUET_COMPRESSION_CODEC.default
    page_version: str = PARQUET_FORMAT_VERSION.default

    @classmethod
    def of_log(cls, properties: TableProperties) -> ParquetFormat:
        """The encoding of a table's checkpoints; an invalid property counts as unset.

        A checkpoint in another encoding is better than a table without checkpoints.
        """
        try:
            codec = PARQUET_COMPRESSION_CODEC.of(properties.configuration)
        except InvalidTablePropertyError:
            codec = PARQUET_COMPRESSION_CODEC.default
        try:
            page_version = page_version_of(properties)
        except InvalidTablePropertyError:
            page_version = PARQUET_FORMAT_VERSION.default
        return cls(codec=codec, page_version=page_version)

    def writer_options(self) -> dict[str, Any]:
        """The arguments for pyarrow's writer."""
        return {"compression": arrow_codec(self.codec), "data_page_version": self.page_version}


def page_version_of(properties: TableProperties) -> str:
    """The format of a table's data pages, by pyarrow's name.

    Raises:
        InvalidTablePropertyError: the table property is not a Parquet version with such a format.
    """
    return PARQUET_FORMAT_VERSION.of(properties.configuration)


def arrow_codec(codec: str) -> str:
    """The codec's name in pyarrow, where lz4 is Parquet's LZ4_RAW."""
    return "lz4" if codec == "lz4_raw" else codec
