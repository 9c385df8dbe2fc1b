"""How a table wants its Parquet files encoded (PROTOCOL.md, "Table Properties")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delta_core.errors import InvalidTablePropertyError
from delta_core.table_features.table_properties import (
    PARQUET_COMPRESSION_CODEC,
    PARQUET_FORMAT_VERSION,
    TableProperties,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """What files of the log are written with; data files may get another codec from their caller.

    Attributes:
        codec: as the table property calls it.
        page_version: `1.0` or `2.0`, the format of data pages.
    """

    codec: str = PARQUET_COMPRESSION_CODEC.default
    page_version: str = PARQUET_FORMAT_VERSION.default

    @classmethod
    def of_log(cls, properties: TableProperties) -> ParquetFormat:
        """That of a table's checkpoints: a property that means nothing here is as if it were not set.

        A table whose log nobody can shorten would be worse off than one with another codec.
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
    """The format of a table's data pages, as pyarrow names it.

    Raises:
        InvalidTablePropertyError: the table's property is no version of Parquet that has one.
    """
    return PARQUET_FORMAT_VERSION.of(properties.configuration)


def arrow_codec(codec: str) -> str:
    """The name in pyarrow, whose lz4 is what Parquet calls LZ4_RAW."""
    return "lz4" if codec == "lz4_raw" else codec
