"""Writes one new data file from the rows of other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import AddFile
from delta_core.data.file_writer import data_file_name
from delta_core.data.statistics_collector import StatisticsAccumulator, statistics_of_leaves
from delta_core.errors import VerificationError
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.layout import Encoding, FileLayout
from delta_core.maintenance.rewriting.parity import TAG, ParityOutput
from delta_core.parquet.output import parquet_writer
from delta_core.schema.nullability import has_required_fields, without_hidden_nulls
from delta_core.schema.types import DOUBLE, FLOAT
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.parquet_format import ParquetFormat, ParquetOptions, page_version_of

ROW_GROUP_ROWS = 1 << 20
"""Most rows of one row group."""


def write_file(
    layout: FileLayout,
    encoding: Encoding,
    partition_values: Mapping[str, str | None],
    tables: Iterator[pa.Table],
    *,
    rows_expected: Callable[[], int],
    sequence: int = 0,
) -> dict[str, Any]:
    """Write the tables, in order, as one new file, each as a row group (at most 1,048,576 rows).

    The new file appears complete or not at all.

    Args:
        layout: the table's layout.
        encoding: the columns that are dictionaries in the tables, and those that the writer encodes as such.
        partition_values: the partition of the file, as in the log.
        tables: rows of `layout.file_schema(encoding)`.
        rows_expected: called at the end; returns the number of rows that should have been written.
        sequence: a number for the file's name.

    Returns:
        `path` (as in the log), `size_bytes`, `modification_time_ms`, `stats`, `rows` and `parity` (see
        `rewriting.parity`) of the file.

    Raises:
        VerificationError: the file does not have the expected number of rows. The file is deleted.
    """
    directory = layout.directory(partition_values)
    compression = layout.compression
    schema = layout.file_schema(encoding)
    path = "/".join(part for part in (directory, data_file_name(sequence, compression)) if part)
    encoded = ParquetFormat(codec=compression, page_version=page_version_of(layout.plan.properties))
    floats = StatisticsAccumulator(leaf for leaf in layout.leaves() if leaf.data_type in (FLOAT, DOUBLE))
    footers: list[pq.FileMetaData] = []
    chosen = _chosen_options(layout.parquet, encoding)
    row_group_rows = (layout.parquet and layout.parquet.row_group_rows) or ROW_GROUP_ROWS
    with (
        layout.store.open_output(path) as sink,
        pa.PythonFile(parity_output := ParityOutput(sink), mode="w") as output,
        parquet_writer(
            output,
            schema,
            store_schema=False,
            # As in files of Spark; also much faster than byte arrays.
            store_decimal_as_integer=True,
            write_page_checksum=True,
            metadata_collector=footers,
            **{**encoded.writer_options(), **chosen},
        ) as writer,
    ):
        for rows in tables:
            floats.update(rows)
            writer.write_table(_writable(rows), row_group_size=min(row_group_rows, ROW_GROUP_ROWS))
    footer = footers[0]
    expected = rows_expected()
    if expected != footer.num_rows:
        layout.store.delete(path)
        raise VerificationError(
            f"{expected} rows were read, but {footer.num_rows} rows were written.",
            cause="A data file changed while it was read, or a library lost rows.",
            fix="Run the operation again. The table is unchanged.",
        )
    info = layout.store.head(path)
    return {
        "path": encode_data_path(path),
        "size_bytes": info.size_bytes,
        "modification_time_ms": info.modified_ms,
        "stats": _statistics(layout, footer, floats),
        "rows": footer.num_rows,
        "parity": parity_output.parity.hex(),
    }


def _chosen_options(parquet: ParquetOptions | None, encoding: Encoding) -> dict[str, Any]:
    """The caller's options for the writer, and the columns that become dictionaries."""
    columns = list(encoding.dictionary)
    if parquet is None:
        return {"use_dictionary": columns}
    if parquet.without_dictionary:
        columns = [name for name in columns if name.split(".")[0] not in parquet.without_dictionary]
    return {"use_dictionary": columns, **parquet.arguments}


def added_file(
    result: JsonObject,
    partition_values: Mapping[str, str | None],
    *,
    tags: Mapping[str, str | None] | None = None,
    clustering_provider: str | None = None,
) -> AddFile:
    """The `add` action for a result of `write_file`, with `dataChange` false."""
    return AddFile(
        path=result["path"],
        partition_values=dict(partition_values),
        size_bytes=result["size_bytes"],
        modification_time_ms=result["modification_time_ms"],
        data_change=False,
        stats=result["stats"],
        tags={**(tags or {}), TAG: result["parity"]},
        clustering_provider=clustering_provider,
    )


def _writable(rows: pa.Table) -> pa.Table:
    """The rows without nulls in required fields of null structs, which the Parquet writer rejects."""
    for index, item in enumerate(rows.schema):
        if has_required_fields(item.type):
            chunks = [without_hidden_nulls(chunk) for chunk in rows.column(index).chunks]
            rows = rows.set_column(index, item, pa.chunked_array(chunks, item.type))
    return rows


def _statistics(layout: FileLayout, footer: pq.FileMetaData, floats: StatisticsAccumulator) -> str:
    """The footer's statistics; bounds of floating-point columns from the rows, since footers ignore NaN."""
    return statistics_of_leaves(footer, layout.leaves()).with_columns(floats.found()).to_json()
