"""Rewriting a checkpoint's Parquet files with the clone's paths.

Only the structs with paths are changed. Every other column, such as parsed statistics of another writer, is
copied unchanged.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.checkpoint.rows import write_parquet
from delta_core.log.checkpoint_part import BATCH_ROWS
from delta_core.maintenance.clone.history.path_mapping import PathMapping

_FILES = ("add", "remove")
_DELETION_VECTOR = "deletionVector"


def translate_part(
    source: pa.NativeFile,
    sink: pa.NativeFile,
    *,
    path_mapping: PathMapping,
    sidecar_bytes: Mapping[str, int] | None = None,
) -> None:
    """Copy a checkpoint part, or a sidecar, with the clone's paths. Memory: a few batches of rows.

    Args:
        source: the part.
        sink: the file to write.
        path_mapping: maps paths of the source to paths of the clone.
        sidecar_bytes: the sizes of the clone's sidecars, by file name.

    Raises:
        OSError, pyarrow.ArrowException: the part cannot be decoded.
        PathEscapeError: the part refers to a file outside the source and the allowed roots.
    """
    # Arrow reads INT96 as nanoseconds by default. Other readers do not support nanoseconds.
    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            columns = [
                _column(batch.column(index), field.name, path_mapping, sidecar_bytes)
                for index, field in enumerate(batch.schema)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    write_parquet(
        sink, file.schema_arrow.remove_metadata(), (one.replace_schema_metadata() for one in batches())
    )


def _column(
    column: pa.Array, name: str, path_mapping: PathMapping, sidecar_bytes: Mapping[str, int] | None
) -> pa.Array:
    if name in _FILES:
        column = _replaced(column, "path", lambda path: path_mapping.of_file(path).raw or path)
        if column.type.get_field_index(_DELETION_VECTOR) >= 0:
            column = _with(
                column, _DELETION_VECTOR, _deletion_vectors(column.field(_DELETION_VECTOR), path_mapping)
            )
    elif name == "sidecar" and sidecar_bytes is not None:
        sizes = [
            None if path is None else sidecar_bytes[posixpath.basename(path)]
            for path in column.field("path").to_pylist()
        ]
        column = _with(column, "sizeInBytes", pa.array(sizes, column.type.field("sizeInBytes").type))
    return column


def _deletion_vectors(dvs: pa.StructArray, path_mapping: PathMapping) -> pa.StructArray:
    kinds = dvs.field("storageType").to_pylist()
    strings = dvs.field("pathOrInlineDv").to_pylist()
    for index, (kind, string) in enumerate(zip(kinds, strings, strict=True)):
        if kind is None or string is None:
            continue
        referenced = path_mapping.of_deletion_vector({"storageType": kind, "pathOrInlineDv": string})
        if referenced is not None and referenced.raw is not None:
            kinds[index], strings[index] = "u", referenced.raw
    dvs = _with(dvs, "storageType", pa.array(kinds, pa.string()))
    return _with(dvs, "pathOrInlineDv", pa.array(strings, pa.string()))


def _replaced(rows: pa.StructArray, name: str, replace: Callable[[Any], Any]) -> pa.StructArray:
    values = [None if value is None else replace(value) for value in rows.field(name).to_pylist()]
    return _with(rows, name, pa.array(values, rows.type.field(name).type))


def _with(rows: pa.StructArray, name: str, values: pa.Array) -> pa.StructArray:
    """The structs with one field replaced; null structs stay null."""
    fields = list(rows.type)
    index = rows.type.get_field_index(name)
    children = [rows.field(number) for number in range(len(fields))]
    children[index] = values.cast(fields[index].type)
    return pa.StructArray.from_arrays(children, fields=fields, mask=rows.is_null())
