"""The encoding of a table's Parquet files (PROTOCOL.md, "Table Properties")."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_core.errors import InvalidTablePropertyError
from delta_core.table_features.table_properties import (
    PARQUET_COMPRESSION_CODEC,
    PARQUET_FORMAT_VERSION,
    TableProperties,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """The encoding that a caller chooses for the data files of a statement.

    Attributes:
        codec: the codec, by the table property's name; the table's when None.
        row_group_rows: the maximum number of rows of a row group.
        arguments: arguments of pyarrow's `ParquetWriter`, such as `compression_level`.
        without_dictionary: the top-level columns that get no dictionary; all others do.
    """

    codec: str | None = None
    row_group_rows: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    without_dictionary: frozenset[str] = frozenset()

    def writer_arguments(self, schema: pa.Schema) -> dict[str, Any]:
        """The arguments of pyarrow's writer for files of a schema."""
        if not self.without_dictionary:
            return dict(self.arguments)
        import pyarrow.parquet as pq  # most processes that read these options write no file

        # The writer takes the paths of the leaves that get a dictionary, and only Parquet knows the paths.
        sink = io.BytesIO()
        pq.write_table(schema.empty_table(), sink)
        leaves = pq.ParquetFile(sink).schema
        paths = [leaves.column(position).path for position in range(len(leaves))]
        chosen = [path for path in paths if path.split(".")[0] not in self.without_dictionary]
        return {**self.arguments, "use_dictionary": chosen or False}

    def to_json(self) -> dict[str, Any]:
        """The options as a JSON object."""
        return {
            "codec": self.codec,
            "row_group_rows": self.row_group_rows,
            "arguments": dict(self.arguments),
            "without_dictionary": sorted(self.without_dictionary),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ParquetOptions:
        """The options that `to_json` wrote."""
        return cls(**{**document, "without_dictionary": frozenset(document["without_dictionary"])})


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
